//! What Pods have of their nodes, as long as their statuses do not tell it, and who waits for more.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use steersman::ObjectKey;
use steersman_scheduler::framework::Resources;
use tokio::sync::watch;

use super::admission::{Neighbour, fits};
use super::sizes::{Allocation, Pending, Progress, Sizes};
use crate::addresses::Rejection;

/// What all Pods have of their nodes.
#[derive(Debug, Default)]
pub(in crate::pods) struct Allocations {
    /// By uid, if it is something else than the status tells. Whoever decides that a node has room
    /// holds the lock until that is noted.
    held: Mutex<HashMap<String, Sizes>>,
    /// Those who wait for room, and on which node.
    waiting: Mutex<BTreeMap<ObjectKey, String>>,
    /// Those of them who are to look again.
    woken: Arc<Mutex<BTreeSet<ObjectKey>>>,
    /// There are some.
    wake: watch::Sender<()>,
}

impl Allocations {
    /// What a Pod has.
    pub(in crate::pods) fn of(&self, pod: &Pod) -> Sizes {
        of(&locked(&self.held), pod)
    }

    /// Notes something about what a Pod has.
    pub(in crate::pods) fn change(&self, pod: &Pod, change: impl FnOnce(&mut Sizes)) {
        let mut held = locked(&self.held);
        let mut sizes = of(&held, pod);
        change(&mut sizes);
        held.insert(uid_of(pod).to_owned(), sizes);
    }

    /// Forgets what a Pod's status tells as well. If that is how it was resized, those who wait for
    /// room on its node look again: before, they would have seen what it had.
    pub(in crate::pods) fn forget_told(&self, pod: &Pod, node: &str) {
        let mut held = locked(&self.held);
        let Some(sizes) = held.get_mut(uid_of(pod)) else { return };
        sizes.forget_ended(pod);
        let completed = sizes.completed;
        if *sizes == (Sizes { completed, ..Sizes::told(pod) }) {
            held.remove(uid_of(pod));
            drop(held);
            if completed {
                self.make_room(Some(node));
            }
        }
    }

    /// Forgets a Pod that has ended or is gone.
    pub(in crate::pods) fn forget(&self, uid: &str) {
        locked(&self.held).remove(uid);
    }

    /// Gives a Pod what it wants if there is room for it beside the others of its node.
    pub(in crate::pods) fn decide(
        &self,
        pod: &Pod,
        others: impl Iterator<Item = Arc<Pod>>,
        allocatable: &Resources,
    ) -> Result<(), Rejection> {
        let mut held = locked(&self.held);
        let others: Vec<Neighbour> = others
            .map(|pod| {
                let sizes = of(&held, &pod);
                Neighbour { pod, sizes }
            })
            .collect();
        let mut sizes = of(&held, pod);
        fits(pod, &sizes, &others, allocatable)?;
        sizes.allocated = Allocation::of(pod);
        sizes.pending = None;
        // Whatever became of the one before.
        sizes.again = None;
        sizes.progress = Some(Progress { generation: pod.metadata.generation, error: None });
        held.insert(uid_of(pod).to_owned(), sizes);
        Ok(())
    }

    /// Notes why a Pod was not given what it wants, and tells whether that is news.
    pub(in crate::pods) fn defer(&self, pod: &Pod, node: &str, message: String) -> bool {
        let mut news = false;
        self.change(pod, |sizes| {
            let generation = pod.metadata.generation;
            let before = sizes.pending.as_ref().map(|pending| pending.generation);
            news = before != Some(generation);
            sizes.pending = Some(Pending { message, generation });
        });
        locked(&self.waiting).insert(ObjectKey::of(pod), node.to_owned());
        news
    }

    /// Lets those look again who wait for room on a node, or on any.
    pub(in crate::pods) fn make_room(&self, node: Option<&str>) {
        let mut waiting = locked(&self.waiting);
        if waiting.is_empty() {
            return;
        }
        let is_there = |on: &String| node.is_none_or(|node| node == on);
        let (woken, others) =
            mem::take(&mut *waiting).into_iter().partition(|(_, on)| is_there(on));
        *waiting = others;
        let woken: BTreeMap<ObjectKey, String> = woken;
        locked(&self.woken).extend(woken.into_keys());
        self.wake.send_replace(());
    }

    /// Those who are to look again.
    pub(in crate::pods) fn woken(&self) -> impl Stream<Item = ObjectKey> + Send + 'static {
        let woken = Arc::clone(&self.woken);
        let changed = stream::unfold(self.wake.subscribe(), |mut wake| async move {
            wake.changed().await.ok().map(|()| ((), wake))
        });
        changed.flat_map(move |()| stream::iter(mem::take(&mut *locked(&woken))))
    }
}

fn of(held: &HashMap<String, Sizes>, pod: &Pod) -> Sizes {
    held.get(uid_of(pod)).cloned().unwrap_or_else(|| Sizes::told(pod))
}

fn uid_of(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
