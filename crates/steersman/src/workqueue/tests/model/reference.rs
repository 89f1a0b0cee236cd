//! The naive queue: lists that are searched from one end to the other.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use super::{FAST, SLOW};
use crate::workqueue::{HEAD_START, Priority};

/// Which queue the model stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// Whether it notes for every key when it was added, as queues with metrics do.
    pub(super) timed: bool,
    /// Whether groups take turns.
    pub(super) fair: bool,
}

impl Kind {
    /// First in, first out is what groups do that are only one.
    pub(super) fn group_of(self, key: u8) -> u8 {
        if self.fair { key % 3 } else { 0 }
    }
}

/// A key that is wanted now, once for each priority that it has been given meanwhile.
#[derive(Clone, Debug)]
struct Place {
    key: u8,
    /// Not known if nobody needed to know.
    added: Option<Duration>,
    /// Whether the key came out of the lane of another priority. Its place stays until it is
    /// next, and so does the turn of its group.
    left: bool,
}

/// The places of one priority, and the groups in the order of their turns.
#[derive(Clone, Debug, Default)]
struct Lane {
    places: Vec<Place>,
    turns: Vec<u8>,
}

/// A key that is wanted later.
#[derive(Clone, Debug)]
struct Later {
    key: u8,
    priority: Priority,
    due: Duration,
}

/// A key that is worked on.
#[derive(Clone, Debug)]
struct Run {
    key: u8,
    priority: Priority,
    began: Duration,
}

/// A key that is worked on and wanted again.
#[derive(Clone, Debug)]
struct Again {
    key: u8,
    priority: Priority,
    added: Option<Duration>,
}

#[derive(Debug)]
pub(super) struct Model {
    kind: Kind,
    now: Duration,
    /// What a worker could take.
    lanes: BTreeMap<Priority, Lane>,
    /// When a key of another priority than the normal one came to wait; until none waits.
    mixed: Option<Duration>,
    later: Vec<Later>,
    running: Vec<Run>,
    again: Vec<Again>,
    failures: Vec<u8>,
    backing_off: Vec<(u8, Duration)>,
    draining: bool,
    stopped: bool,
}

impl Lane {
    fn push(&mut self, place: Place, kind: Kind) {
        let group = kind.group_of(place.key);
        if !self.turns.contains(&group) {
            self.turns.push(group);
        }
        self.places.push(place);
    }

    /// Where the next place is: the first of the group whose turn it is.
    fn head(&mut self, kind: Kind) -> Option<usize> {
        while let Some(group) = self.turns.first().copied() {
            let of_group = |place: &Place| kind.group_of(place.key) == group;
            match self.places.iter().position(of_group) {
                Some(at) if self.places[at].left => _ = self.places.remove(at),
                Some(at) => return Some(at),
                None => _ = self.turns.remove(0),
            }
        }
        None
    }

    fn pop(&mut self, at: usize, kind: Kind) -> u8 {
        let key = self.places.remove(at).key;
        let group = self.turns.remove(0);
        if self.places.iter().any(|place| kind.group_of(place.key) == group) {
            self.turns.push(group);
        }
        key
    }

    fn holds(&self, key: u8) -> bool {
        self.places.iter().any(|place| place.key == key && !place.left)
    }
}

impl Model {
    pub(super) fn new(kind: Kind) -> Self {
        Self {
            kind,
            now: Duration::ZERO,
            lanes: BTreeMap::new(),
            mixed: None,
            later: Vec::new(),
            running: Vec::new(),
            again: Vec::new(),
            failures: Vec::new(),
            backing_off: Vec::new(),
            draining: false,
            stopped: false,
        }
    }

    pub(super) fn add(&mut self, key: u8, after: Duration, priority: Option<Priority>) {
        if self.draining || self.stopped {
            return;
        }
        let time_matters = self.kind.timed
            || priority != Some(Priority::NORMAL)
            || self.mixed.is_some()
            || !self.later.is_empty();
        let added = time_matters.then_some(self.now);
        let priority = priority.or(self.priority_of(key)).unwrap_or(Priority::NORMAL);
        let due = self.now + after;
        if let Some(again) = self.again.iter_mut().find(|again| again.key == key) {
            if again.priority < priority {
                again.priority = priority;
                again.added = again.added.or(added);
            }
        } else if self.is_waiting(key) {
            if self.priority_of(key) < Some(priority) {
                self.wait(key, priority, added);
            }
        } else if let Some(at) = self.later.iter().position(|later| later.key == key) {
            let old = self.later[at].clone();
            let priority = old.priority.max(priority);
            self.later[at].priority = priority;
            if due < old.due {
                self.later.remove(at);
                self.want(Later { key, priority, due }, added);
            }
        } else {
            self.want(Later { key, priority, due }, added);
        }
    }

    fn want(&mut self, wanted: Later, added: Option<Duration>) {
        let Later { key, priority, due } = wanted;
        if due > self.now {
            self.later.push(wanted);
        } else if self.is_running(key) {
            self.again.push(Again { key, priority, added });
        } else {
            self.wait(key, priority, added);
        }
    }

    fn wait(&mut self, key: u8, priority: Priority, added: Option<Duration>) {
        if priority != Priority::NORMAL && self.mixed.is_none() {
            self.mixed = Some(added.expect("who has another priority is timed"));
        }
        self.lanes.entry(priority).or_default().push(Place { key, added, left: false }, self.kind);
    }

    fn priority_of(&self, key: u8) -> Option<Priority> {
        let lanes = self.lanes.iter().filter(|(_, lane)| lane.holds(key)).map(|(p, _)| *p);
        let again = self.again.iter().filter(|again| again.key == key).map(|a| a.priority);
        let later = self.later.iter().filter(|later| later.key == key).map(|l| l.priority);
        let running = self.running.iter().filter(|run| run.key == key).map(|r| r.priority);
        lanes.chain(again).chain(later).max().or(running.max())
    }

    pub(super) fn add_rate_limited(&mut self, key: u8) {
        let run = self.running.iter().find(|run| run.key == key);
        let began = run.map_or(self.now, |run| run.began);
        let rest = match self.backing_off.iter().find(|(other, _)| *other == key) {
            Some((_, until)) if *until > began => until.saturating_sub(self.now),
            _ => {
                self.failures.push(key);
                let delay = if self.failures(key) <= 2 { FAST } else { SLOW };
                self.backing_off.retain(|(other, _)| *other != key);
                self.backing_off.push((key, self.now + delay));
                delay
            }
        };
        self.add(key, rest, None);
    }

    pub(super) fn forget(&mut self, key: u8) {
        self.failures.retain(|other| *other != key);
        self.backing_off.retain(|(other, _)| *other != key);
    }

    pub(super) fn failures(&self, key: u8) -> u32 {
        self.failures.iter().filter(|other| **other == key).count() as u32
    }

    /// The next key: of the first of each priority, the one that ranks lowest.
    pub(super) fn get(&mut self) -> Option<Option<u8>> {
        let kind = self.kind;
        let mixed = self.mixed;
        let heads = self.lanes.iter_mut().filter_map(|(priority, lane)| {
            let at = lane.head(kind)?;
            // Who waits untimed counts as added when another priority came.
            let added = lane.places[at].added.or(mixed).unwrap_or_default();
            let head_start = HEAD_START.as_millis() as i64 * i64::from(priority.0);
            Some((added.as_millis() as i64 - head_start, Reverse(*priority), at))
        });
        let Some((_, Reverse(lane), at)) = heads.min() else {
            let ended = self.stopped || (self.draining && self.again.is_empty());
            return ended.then_some(None);
        };
        let key = self.lanes[&lane].places[at].key;
        let priority = self.priority_of(key).unwrap();
        self.lanes.get_mut(&lane).unwrap().pop(at, kind);
        for place in self.lanes.values_mut().flat_map(|lane| &mut lane.places) {
            place.left |= place.key == key;
        }
        if self.len() == 0 {
            self.mixed = None;
        }
        self.running.push(Run { key, priority, began: self.now });
        Some(Some(key))
    }

    fn is_running(&self, key: u8) -> bool {
        self.running.iter().any(|run| run.key == key)
    }

    fn is_waiting(&self, key: u8) -> bool {
        self.lanes.values().any(|lane| lane.holds(key))
    }

    pub(super) fn done(&mut self, key: u8) {
        self.running.retain(|run| run.key != key);
        if let Some(at) = self.again.iter().position(|again| again.key == key) {
            let Again { key, priority, added } = self.again.remove(at);
            self.wait(key, priority, added);
        }
    }

    pub(super) fn pass(&mut self, time: Duration) {
        self.now += time;
        self.later.sort_by_key(|later| later.due); // stable: first asked, first due
        while self.later.first().is_some_and(|later| later.due <= self.now) {
            let due = self.later.remove(0);
            let added = Some(due.due);
            self.want(due, added);
        }
    }

    pub(super) fn drain(&mut self) {
        self.draining = true;
        self.later.clear();
    }

    pub(super) fn shut_down(&mut self) {
        self.stopped = true;
        self.later.clear();
        self.lanes.clear();
        self.again.clear();
    }

    pub(super) fn len(&self) -> usize {
        (0..=u8::MAX).filter(|key| self.is_waiting(*key)).count()
    }

    pub(super) fn is_drained(&self) -> bool {
        (self.draining || self.stopped) && self.len() == 0 && self.running.is_empty()
    }
}
