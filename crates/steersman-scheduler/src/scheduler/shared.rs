//! What informers tell and decisions need, behind one lock.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::pre_binding::PreBinding;
use super::waiting::WaitingPods;
use crate::cache::Cache;
use crate::framework::{Action, ClusterEvent, Nominator, PodInfo, Resource, named};
use crate::metrics::{Kept, Reading, WorkMetrics};
use crate::plugins::Handle;
use crate::queue::{Depth, SchedulingQueue};

/// What all tasks of a scheduler share.
pub(super) struct Shared {
    /// Never held across an await, nor while a decision is made.
    state: Mutex<State>,
    /// Notified when there may be a Pod to try.
    pub(super) wake: Notify,
    /// Counts changes of claims and volumes, for who waits for one.
    pub(super) storage: watch::Sender<u64>,
    /// Counts changes of claims for devices, for who waits until a device is ready.
    pub(super) device_claims: watch::Sender<u64>,
    /// Pods that wait to be permitted.
    pub(super) waiting: WaitingPods,
    /// Pods for which something is done before they are bound.
    pub(super) pre_binding: PreBinding,
    /// What plug-ins share.
    pub(super) handle: Arc<Handle>,
    /// Where it is told how long events take, if somebody wants to know.
    work: OnceLock<WorkMetrics>,
}

/// What is known.
pub(super) struct State {
    pub(super) cache: Cache,
    pub(super) queue: SchedulingQueue,
    pub(super) nominator: Arc<Nominator>,
}

impl Shared {
    pub(super) fn new(queue: SchedulingQueue, handle: Arc<Handle>, waiting: WaitingPods) -> Self {
        let (cache, nominator) = Default::default();
        Self {
            state: Mutex::new(State { cache, queue, nominator }),
            wake: Notify::new(),
            storage: watch::Sender::new(0),
            device_claims: watch::Sender::new(0),
            waiting,
            pre_binding: PreBinding::default(),
            handle,
            work: OnceLock::new(),
        }
    }

    /// Tells from now on how long it takes to take in events.
    pub(super) fn measure(&self, work: WorkMetrics) {
        let _ = self.work.set(work);
    }

    /// Such an event has been taken in since then.
    pub(super) fn handled(&self, resource: Resource, action: Action, since: Instant) {
        if let Some(work) = self.work.get() {
            work.handled(named(resource, action), since);
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a Pod from being bound, if that has not begun: it goes back into the queue. Whether it was
    /// not too late.
    pub(super) fn cancel_binding(&self, uid: &str, by: &'static str) -> bool {
        self.waiting.preempt(uid, by) || self.pre_binding.cancel(uid, by)
    }

    /// Something happened: who may be helped by it is tried again.
    pub(super) fn happened(&self, event: &ClusterEvent) {
        if self.lock().queue.happened(event) {
            self.wake.notify_one();
        }
    }

    /// The same if it can help only Pods of this priority at most.
    pub(super) fn happened_for(&self, event: &ClusterEvent, priority_max: i32) {
        if self.lock().queue.happened_for(event, priority_max) {
            self.wake.notify_one();
        }
    }
}

impl State {
    /// Counts a Pod nowhere but where it is. The Pod, if it was to go to a node.
    pub(super) fn unnominate(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        self.nominator.node_of(uid)?; // mostly there is nothing to copy
        Arc::make_mut(&mut self.nominator).remove(uid)
    }
}

impl Kept for Shared {
    fn reading(&self) -> Reading {
        let state = self.lock();
        let Depth { active, backoff, unschedulable, gated } = state.queue.depth();
        let [nodes, pods, assumed] = state.cache.sizes();
        Reading {
            pending: [
                ("active", active),
                ("backoff", backoff),
                ("unschedulable", unschedulable),
                ("gated", gated),
            ],
            cached: [("nodes", nodes), ("pods", pods), ("assumed_pods", assumed)],
            refused: state.queue.refused(),
            in_flight: state.queue.in_flight(),
        }
    }
}
