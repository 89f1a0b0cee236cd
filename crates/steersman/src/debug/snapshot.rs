//! What a manager is at, at one moment.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Inspection;
use crate::clock;
use crate::controller::{ControllerHistory, ControllerPhase};
use crate::informer::InformerStatus;
use crate::object::ObjectKey;
use crate::shard::Seat;
use crate::workqueue::{Dump, KeyDump, KeyState};

/// Keys shown of each queue; those that run and those that wait longest come first.
const KEYS_MAX: usize = 100;

/// What a manager is at.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Snapshot {
    /// When that was.
    pub time: String,
    /// The last group of work that has started.
    pub started: Option<String>,
    /// Only what concerns this key is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The controllers.
    pub controllers: Vec<ControllerSnapshot>,
    /// The Leases that this replica competes for, or by which it has a part of the keys.
    pub leases: Vec<LeaseSnapshot>,
    /// The caches.
    pub caches: Vec<CacheSnapshot>,
    /// The queues of the controllers.
    pub queues: Vec<QueueSnapshot>,
    /// What the controllers do and did lately, and why.
    pub history: Vec<ControllerHistory>,
}

/// A controller.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ControllerSnapshot {
    /// Its name.
    pub name: String,
    /// How far it has come.
    pub phase: ControllerPhase,
}

/// A Lease that this replica competes for, or by which it has a part of the keys.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct LeaseSnapshot {
    /// Its namespace and name.
    pub lease: String,
    /// Who this replica is.
    pub identity: String,
    /// Whether this replica holds it, and may write.
    pub held: bool,
    /// How often it has changed hands, while this replica holds it.
    pub epoch: Option<i32>,
    /// The controller whose keys it gives a part of, if they are shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    /// By how many members they are shared; none while this replica is no member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<usize>,
}

impl LeaseSnapshot {
    /// The Lease of a member of a group that shares the keys of a controller.
    fn of_seat(controller: &str, seat: &Seat) -> Self {
        Self {
            lease: seat.fence.lease().to_owned(),
            identity: seat.identity.to_string(),
            held: seat.fence.is_open(),
            epoch: seat.fence.epoch(),
            controller: Some(controller.to_owned()),
            members: Some(seat.members()),
        }
    }
}

/// A cache.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CacheSnapshot {
    /// How its informer is doing.
    #[serde(flatten)]
    pub informer: InformerStatus,
}

/// A queue.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct QueueSnapshot {
    /// The controller's name.
    pub name: String,
    /// How many keys are in each state.
    pub counts: BTreeMap<KeyState, usize>,
    /// The first of them.
    pub keys: Vec<KeyDump<ObjectKey>>,
}

impl Inspection {
    /// What the manager is at; with a key, only what concerns it.
    pub(crate) fn snapshot(&self, key: Option<&str>) -> Snapshot {
        let controllers = self.controllers.phases().into_iter();
        let caches = self.metrics.informers().into_iter();
        let seats = self.queues.seats().into_iter();
        let shared = seats.map(|(controller, seat)| LeaseSnapshot::of_seat(&controller, &seat));
        Snapshot {
            time: clock::now().to_string(),
            started: self.replica.started(),
            key: key.map(str::to_owned),
            controllers: controllers
                .map(|(name, phase)| ControllerSnapshot { name: name.to_string(), phase })
                .collect(),
            leases: self.replica.lease().into_iter().chain(shared).collect(),
            caches: caches.map(|informer| CacheSnapshot { informer }).collect(),
            queues: self.queues.dump().into_iter().map(|dump| queue(dump, key)).collect(),
            history: self.queues.history().into_iter().map(|it| lately(it, key)).collect(),
        }
    }
}

fn queue(dump: Dump<ObjectKey>, key: Option<&str>) -> QueueSnapshot {
    let mut counts = BTreeMap::new();
    for key in &dump.keys {
        *counts.entry(key.state).or_default() += 1;
    }
    let concerned = |dumped: &KeyDump<ObjectKey>| concerns(&dumped.key, key);
    let keys = dump.keys.into_iter().filter(concerned).take(KEYS_MAX).collect();
    QueueSnapshot { name: dump.name, counts, keys }
}

fn lately(mut history: ControllerHistory, key: Option<&str>) -> ControllerHistory {
    history.running.retain(|running| concerns(&running.key, key));
    history.recent.retain(|record| concerns(&record.key, key));
    history.failing.retain(|record| concerns(&record.key, key));
    history.failing.truncate(KEYS_MAX);
    history.hot_loops.retain(|hot_loop| concerns(&hot_loop.key, key));
    history
}

/// Whether a key is the wanted one, if one is wanted.
fn concerns(key: &ObjectKey, wanted: Option<&str>) -> bool {
    wanted.is_none_or(|wanted| key.to_string() == wanted)
}
