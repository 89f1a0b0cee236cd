//! How fast nodes are given up: each zone has a queue of nodes whose Pods are to be sent away, and a
//! rate at which it is worked off.
//!
//! Zones fail as a whole more often than many of their nodes do by themselves. A zone of which not
//! one node is ready is worked off as usual, since its Pods can go elsewhere; one of which many are
//! not is worked off slowly, or not at all if it is small. If no node of any zone is ready, nobody is
//! sent away: there is nowhere to go, and perhaps only this controller is cut off.

use std::collections::{BTreeMap, HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};

use super::settings::{NodeLifecycleSettings, interval};

/// How often Kubernetes looks at its queues: a node is not given up in the moment it is found to be
/// lost, so that those lost with it are known.
const PERIOD: SignedDuration = SignedDuration::from_millis(100);

/// How a zone is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZoneState {
    Normal,
    PartialDisruption,
    FullDisruption,
}

/// How a node counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) zone: String,
    pub(super) ready: bool,
    /// Whether it counts for how the zone is: some ask not to.
    pub(super) counts: bool,
}

/// When a node's turn is to be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    At(Timestamp),
    /// When something else happens.
    Later,
}

/// All zones.
#[derive(Debug, Default)]
pub(super) struct Zones {
    nodes: HashMap<Box<str>, Member>,
    zones: BTreeMap<String, Zone>,
    /// Whether no node of any zone is ready.
    all_lost: bool,
    settings: NodeLifecycleSettings,
}

#[derive(Debug)]
struct Zone {
    ready: usize,
    not_ready: usize,
    state: Option<ZoneState>,
    limiter: Limiter,
    /// Who waits, and since when.
    queue: VecDeque<(Box<str>, Timestamp)>,
}

/// Lets one pass, and the next one after an interval.
#[derive(Clone, Copy, Debug)]
struct Limiter {
    /// Without one, nobody passes.
    interval: Option<SignedDuration>,
    next: Timestamp,
}

impl Limiter {
    /// Another rate. Whoever waits does not pass at once because of it.
    fn change(&mut self, interval: Option<SignedDuration>, now: Timestamp) {
        if self.interval == interval {
            return;
        }
        let waits = self.interval.is_none() || now < self.next;
        self.next = if waits { now + interval.unwrap_or_default() } else { now };
        self.interval = interval;
    }
}

impl Zone {
    /// One of which nothing is known.
    fn new(settings: &NodeLifecycleSettings) -> Self {
        let limiter = Limiter { interval: interval(settings.eviction_rate), next: Timestamp::MIN };
        Self { ready: 0, not_ready: 0, state: None, limiter, queue: VecDeque::new() }
    }

    fn count(&mut self, ready: bool) -> &mut usize {
        if ready { &mut self.ready } else { &mut self.not_ready }
    }

    fn size(&self) -> usize {
        self.ready + self.not_ready
    }

    /// How it is now.
    fn found(&self, settings: &NodeLifecycleSettings) -> ZoneState {
        let (ready, lost) = (self.ready, self.not_ready);
        let part = lost as f64 / (lost + ready).max(1) as f64;
        match () {
            () if ready == 0 && lost > 0 => ZoneState::FullDisruption,
            () if lost > 2 && part >= settings.unhealthy_zone_threshold => {
                ZoneState::PartialDisruption
            }
            () => ZoneState::Normal,
        }
    }

    fn enter(&mut self, state: ZoneState, now: Timestamp, settings: &NodeLifecycleSettings) {
        let rate = match state {
            ZoneState::Normal | ZoneState::FullDisruption => settings.eviction_rate,
            ZoneState::PartialDisruption if self.size() > settings.large_zone_threshold => {
                settings.secondary_eviction_rate
            }
            ZoneState::PartialDisruption => 0.0,
        };
        self.limiter.change(interval(rate), now);
        self.state = Some(state);
    }

    fn waiting(&self) -> Vec<Box<str>> {
        self.queue.iter().map(|(name, _)| name.clone()).collect()
    }
}

impl Zones {
    /// None, which are given up like this.
    pub(super) fn new(settings: NodeLifecycleSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Takes in how a node is; nothing if it is gone. Gives whether that is new.
    pub(super) fn observe(&mut self, name: &str, member: Option<Member>) -> bool {
        if self.nodes.get(name) == member.as_ref() {
            return false;
        }
        if let Some(old) = self.nodes.remove(name) {
            if let Some(zone) = self.zones.get_mut(&old.zone).filter(|_| old.counts) {
                *zone.count(old.ready) -= 1;
            }
            if member.as_ref().is_none_or(|member| member.zone != old.zone) {
                self.leave(&old.zone, name);
            }
        }
        if let Some(member) = member {
            let zone = self.zones.entry(member.zone.clone());
            let zone = zone.or_insert_with(|| Zone::new(&self.settings));
            if member.counts {
                *zone.count(member.ready) += 1;
            }
            self.nodes.insert(name.into(), member);
        }
        true
    }

    /// Draws conclusions from how all nodes are. Gives those that have to be looked at again.
    pub(super) fn conclude(&mut self, now: Timestamp) -> Vec<Box<str>> {
        self.zones.retain(|_, zone| zone.size() > 0 || !zone.queue.is_empty());
        let mut counted = self.zones.values().filter(|zone| zone.size() > 0).peekable();
        let any = counted.peek().is_some();
        let all_lost =
            any && counted.all(|zone| zone.found(&self.settings) == ZoneState::FullDisruption);
        let turned = all_lost != self.all_lost;
        self.all_lost = all_lost;
        if all_lost {
            for zone in self.zones.values_mut() {
                zone.state = Some(ZoneState::FullDisruption);
                zone.limiter.change(None, now);
            }
            return if turned { self.nodes.keys().cloned().collect() } else { Vec::new() };
        }
        let mut changed = Vec::new();
        for zone in self.zones.values_mut().filter(|zone| zone.size() > 0) {
            let found = zone.found(&self.settings);
            if turned || zone.state != Some(found) {
                zone.enter(found, now, &self.settings);
                changed.extend(zone.waiting());
            }
        }
        match turned {
            true => self.nodes.keys().cloned().collect(),
            false => changed,
        }
    }

    /// Whether no node of any zone is ready.
    pub(super) fn all_lost(&self) -> bool {
        self.all_lost
    }

    /// Lines a node up to be given up, and says whether it is its turn, which then is over.
    pub(super) fn line_up(&mut self, zone: &str, name: &str, now: Timestamp) -> Turn {
        let Some(zone) = self.zones.get_mut(zone) else { return Turn::Later };
        let waiting = zone.queue.iter().position(|(waiting, _)| **waiting == *name);
        let place = waiting.unwrap_or_else(|| {
            zone.queue.push_back((name.into(), now));
            zone.queue.len() - 1
        });
        let Some(interval) = zone.limiter.interval else { return Turn::Later };
        let first = zone.queue.front().map_or(now, |(_, since)| *since + PERIOD);
        let first = first.max(zone.limiter.next);
        if place == 0 && first <= now {
            zone.limiter.next = now + interval;
            zone.queue.pop_front();
            return Turn::Now;
        }
        let places = i32::try_from(place).unwrap_or(i32::MAX);
        Turn::At((first + interval * places).max(now + PERIOD))
    }

    /// A node whose turn it was could not be given up: it is its turn again.
    pub(super) fn give_back(&mut self, zone: &str, name: &str, now: Timestamp) {
        if let Some(zone) = self.zones.get_mut(zone) {
            zone.queue.push_front((name.into(), now - PERIOD));
            zone.limiter.next = now;
        }
    }

    /// A node is not to be given up. Gives those that are earlier now.
    pub(super) fn leave(&mut self, zone: &str, name: &str) -> Vec<Box<str>> {
        let Some(zone) = self.zones.get_mut(zone) else { return Vec::new() };
        let place = zone.queue.iter().position(|(waiting, _)| **waiting == *name);
        match place.and_then(|place| zone.queue.remove(place)) {
            Some(_) => zone.waiting(),
            None => Vec::new(),
        }
    }

    /// How many nodes each zone has, and how many of them are not ready.
    pub(super) fn sizes(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.zones.iter().map(|(name, zone)| (name.as_str(), zone.size(), zone.not_ready))
    }
}
