//! What Pods have of their nodes, as long as their statuses do not tell it, and who waits for more.
//!
//! As long as no status tells it, the [ledger](Ledger) of the runtime does, so that an agent that was
//! killed between two steps of a resize is followed by one that knows of the first: what was given to
//! a Pod whose containers do not exist yet, and which containers were stopped only to be started with
//! other resources. A kubelet has `allocated_pods_state` and `actuated_pods_state` for this.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::stream::{self, Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use serde::{Deserialize, Serialize};
use steersman::ObjectKey;
use steersman_scheduler::framework::Resources;
use tokio::sync::watch;

use super::admission::{Neighbour, fits};
use super::sizes::{Allocation, Pending, Progress, Sizes, is_told};
use crate::rejection::Rejection;
use crate::runtime::Ledger;

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
    /// Where what is held is found by whoever comes after, if anybody does.
    ledger: Option<Arc<dyn Ledger>>,
}

/// What the next agent has to know of what a Pod has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Kept {
    allocated: Allocation,
    restarting: BTreeMap<String, i32>,
}

impl Kept {
    fn of(sizes: &Sizes) -> Self {
        Self { allocated: sizes.allocated.clone(), restarting: sizes.restarting.clone() }
    }
}

impl Allocations {
    /// What is held is kept in a ledger.
    pub(in crate::pods) fn kept_in(ledger: Option<Arc<dyn Ledger>>) -> Self {
        Self { ledger, ..Self::default() }
    }

    /// What a Pod has.
    pub(in crate::pods) fn of(&self, pod: &Pod) -> Sizes {
        self.known(&locked(&self.held), pod)
    }

    /// Notes something about what a Pod has.
    pub(in crate::pods) fn change(&self, pod: &Pod, change: impl FnOnce(&mut Sizes)) {
        let mut held = locked(&self.held);
        let mut sizes = self.known(&held, pod);
        change(&mut sizes);
        self.hold(&mut held, pod, sizes);
    }

    /// Notes what a Pod that its node takes is given, as long as its status cannot tell: what it wants
    /// later is something else.
    pub(in crate::pods) fn admit(&self, pod: &Pod) {
        if is_told(pod) {
            return;
        }
        let mut held = locked(&self.held);
        if !held.contains_key(uid_of(pod)) {
            let sizes = self.known(&held, pod);
            self.hold(&mut held, pod, sizes);
        }
    }

    /// What is known of what a Pod has.
    fn known(&self, held: &HashMap<String, Sizes>, pod: &Pod) -> Sizes {
        if let Some(sizes) = held.get(uid_of(pod)) {
            return sizes.clone();
        }
        let mut sizes = Sizes::told(pod);
        let kept = self.ledger.as_ref().and_then(|ledger| ledger.read(uid_of(pod)));
        // What cannot be read is as good as nothing.
        if let Some(kept) = kept.and_then(|text| serde_json::from_str::<Kept>(&text).ok()) {
            (sizes.allocated, sizes.restarting) = (kept.allocated, kept.restarting);
        }
        sizes
    }

    fn hold(&self, held: &mut HashMap<String, Sizes>, pod: &Pod, sizes: Sizes) {
        let kept = Kept::of(&sizes);
        let before = held.insert(uid_of(pod).to_owned(), sizes);
        if let Some(ledger) = &self.ledger
            && before.is_none_or(|before| Kept::of(&before) != kept)
            && let Ok(text) = serde_json::to_string(&kept)
        {
            ledger.write(uid_of(pod), &text);
        }
    }

    fn erase(&self, uid: &str) {
        if let Some(ledger) = &self.ledger {
            ledger.erase(uid);
        }
    }

    /// Forgets what a Pod's status tells as well. If that is how it was resized, those who wait for
    /// room on its node look again: before, they would have seen what it had.
    pub(in crate::pods) fn forget_told(&self, pod: &Pod, node: &str) {
        let mut held = locked(&self.held);
        let Some(sizes) = held.get_mut(uid_of(pod)) else { return };
        sizes.forget_ended(pod);
        let completed = sizes.completed;
        if is_told(pod) && *sizes == (Sizes { completed, ..Sizes::told(pod) }) {
            held.remove(uid_of(pod));
            self.erase(uid_of(pod));
            drop(held);
            if completed {
                self.make_room(Some(node));
            }
        }
    }

    /// Forgets a Pod that has ended or is gone.
    pub(in crate::pods) fn forget(&self, uid: &str) {
        if locked(&self.held).remove(uid).is_some() {
            self.erase(uid);
        }
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
                let sizes = self.known(&held, &pod);
                Neighbour { pod, sizes }
            })
            .collect();
        let mut sizes = self.known(&held, pod);
        fits(pod, &sizes, &others, allocatable)?;
        sizes.allocated = Allocation::of(pod);
        sizes.pending = None;
        // Whatever became of the one before.
        sizes.again = None;
        sizes.progress = Some(Progress { generation: pod.metadata.generation, error: None });
        self.hold(&mut held, pod, sizes);
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

    /// Lets these look again.
    pub(in crate::pods) fn wake(&self, pods: impl IntoIterator<Item = ObjectKey>) {
        locked(&self.woken).extend(pods);
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

fn uid_of(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
