//! What the controller knows of all nodes: when each was last heard of, and how their zones are.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use steersman::events::{NewEvent, Recorder, Reference};
use steersman::informer::Event;
use steersman::{Metrics, ObjectKey, clock};

use super::health::{self, Health, Verdict};
use super::metrics::NodeMetrics;
use super::plan;
use super::settings::NodeLifecycleSettings;
use super::zones::{Turn, Zones};
use super::{COMPONENT, LEASES};
use crate::node;
use crate::pulse::Pulse;
use crate::wakes::Wakes;

/// What is known of all nodes.
pub(super) struct Monitor {
    known: Mutex<Known>,
    wakes: Wakes,
    metrics: NodeMetrics,
    pulse: Option<Arc<dyn Pulse>>,
    settings: NodeLifecycleSettings,
    /// By whom people are told, from the first reconcile on.
    recorder: OnceLock<Recorder>,
}

#[derive(Default)]
struct Known {
    health: HashMap<Box<str>, Health>,
    leases: HashMap<Box<str>, Renewal>,
    zones: Zones,
    /// Those that people were told of.
    registered: HashSet<Box<str>>,
    /// Those that were not ready before they fell silent, and so have told of their Pods themselves.
    told: HashSet<Box<str>>,
    /// Nobody counts as silent for longer than since then.
    all_heard: Option<Timestamp>,
    /// All nodes that there were at the start are known.
    complete: bool,
}

/// A Lease was renewed.
struct Renewal {
    renew_time: Option<MicroTime>,
    /// When it was seen here.
    seen: Timestamp,
}

impl Monitor {
    pub(super) fn new(
        metrics: &Metrics,
        pulse: Option<Arc<dyn Pulse>>,
        settings: NodeLifecycleSettings,
    ) -> Self {
        let known = Known { zones: Zones::new(settings), ..Known::default() };
        Self {
            known: Mutex::new(known),
            settings,
            wakes: Wakes::default(),
            metrics: metrics.families(),
            pulse,
            recorder: OnceLock::new(),
        }
    }

    /// Those that have to be looked at for the sake of others.
    pub(super) fn wakes(&self) -> &Wakes {
        &self.wakes
    }

    pub(super) fn metrics(&self) -> &NodeMetrics {
        &self.metrics
    }

    /// Takes a change of a Node into account.
    pub(super) fn observe(&self, event: &Event<Node>) {
        let Some(node) = event.object().object() else { return };
        let name = node::name(&node);
        let mut known = self.lock();
        let gone = matches!(event, Event::Deleted { .. });
        let changed = known.zones.observe(name, (!gone).then(|| plan::member(&node)));
        if gone {
            known.health.remove(name);
            known.told.remove(name);
            if known.registered.remove(name) {
                self.tell(&node, "RemovingNode", &format!("Removing Node {name} from Controller"));
            }
        }
        if known.complete && changed {
            self.conclude(&mut known);
        }
    }

    /// Takes a change of a Lease into account. Nobody has to be looked at because of it: it is seen
    /// when the time comes.
    pub(super) fn renewed(&self, event: &Event<Lease>) {
        let key = event.object().key();
        if key.namespace.as_deref() != Some(LEASES) {
            return;
        }
        let mut known = self.lock();
        if let Event::Deleted { .. } = event {
            known.leases.remove(&*key.name);
            return;
        }
        let lease = event.object().object();
        let renew_time = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.clone());
        let before = known.leases.get(&*key.name).map(|renewal| &renewal.renew_time);
        if before.is_none_or(|before| *before < renew_time) {
            let seen = clock::now();
            known.leases.insert((&*key.name).into(), Renewal { renew_time, seen });
        }
    }

    /// A node's pulse stops or is there again: it was alive until now, in any case.
    pub(super) fn noted(&self, name: &str) {
        let now = clock::now();
        if let Some(health) = self.lock().health.get_mut(name) {
            health.probe = now;
        }
    }

    /// Meets a Node. From the first one on, people are told, and conclusions drawn.
    pub(super) fn meet(&self, node: &Node, recorder: &Recorder) {
        self.recorder.get_or_init(|| recorder.reporting(COMPONENT));
        let name = node::name(node);
        let mut known = self.lock();
        if !known.complete {
            known.complete = true;
            self.conclude(&mut known);
        }
        if known.registered.insert(name.into()) {
            self.tell(node, "RegisteredNode", &format!("Registered Node {name} in Controller"));
        }
    }

    /// What is to be done about a node's silence.
    pub(super) fn verdict(&self, node: &Node, now: Timestamp) -> Verdict {
        let name = node::name(node);
        let mut known = self.lock();
        let mut health = Health::seen(known.health.get(name), node, now);
        let beats = self.pulse.as_ref().is_some_and(|pulse| pulse.beats(name));
        if beats {
            health.probe = now;
        }
        let renewed = known.leases.get(name).map(|renewal| renewal.seen);
        let signs = [Some(health.probe), renewed, known.all_heard];
        let last_seen = signs.into_iter().flatten().max().unwrap_or(now);
        known.health.insert(name.into(), health);
        if beats { Verdict::Fine } else { health::verdict(node, last_seen, now, &self.settings) }
    }

    /// A node is found to be silent that said this of itself before.
    pub(super) fn falls_silent(&self, node: &Node) {
        let name = node::name(node);
        let mut known = self.lock();
        if node::readiness(node) == Some("True") {
            known.told.remove(name);
        } else {
            known.told.insert(name.into());
        }
    }

    /// Whether the Pods of a node that is silent are to be told. Who starts does not know how it was
    /// before, and makes sure.
    pub(super) fn tells_pods_of(&self, node: &Node) -> bool {
        node::readiness(node) == Some("Unknown") && !self.lock().told.contains(node::name(node))
    }

    /// Whether no node of any zone is ready.
    pub(super) fn all_lost(&self) -> bool {
        self.lock().zones.all_lost()
    }

    /// Lines a node up whose Pods are to go.
    pub(super) fn line_up(&self, node: &Node, now: Timestamp) -> Turn {
        self.lock().zones.line_up(&plan::zone(node), node::name(node), now)
    }

    /// A node whose turn it was could not be tainted.
    pub(super) fn give_back(&self, node: &Node, now: Timestamp) {
        self.lock().zones.give_back(&plan::zone(node), node::name(node), now);
    }

    /// The Pods of a node may stay.
    pub(super) fn leave(&self, node: &Node) {
        let earlier = self.lock().zones.leave(&plan::zone(node), node::name(node));
        self.wake(earlier);
    }

    fn conclude(&self, known: &mut Known) {
        let now = clock::now();
        let was_lost = known.zones.all_lost();
        let concerned = known.zones.conclude(now);
        if was_lost && !known.zones.all_lost() {
            // Perhaps nobody could be heard.
            known.all_heard = Some(now);
        }
        for (zone, size, not_ready) in known.zones.sizes() {
            self.metrics.zone(zone, size, not_ready);
        }
        self.wake(concerned);
    }

    fn wake(&self, nodes: Vec<Box<str>>) {
        self.wakes.wake(nodes.into_iter().map(|name| ObjectKey::named(&*name)));
    }

    fn tell(&self, node: &Node, reason: &str, what: &str) {
        if let Some(recorder) = self.recorder.get() {
            let note = format!("Node {} event: {what}", node::name(node));
            recorder.event(Reference::of(node), NewEvent::normal(reason).note(note));
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
