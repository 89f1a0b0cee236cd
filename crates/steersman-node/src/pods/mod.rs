//! Pod workers: make each Pod that is bound to one of our nodes run, report it, and end it.
//!
//! [`plan`] decides which containers are started, started again or stopped, with the [`backoff`]s
//! of those that keep failing; [`status`] says what is reported of it, by [`phase`] and
//! [`conditions`] (all pure). [`reconcile`] carries it out through the runtime and writes, and
//! [`events`] tells people of it.

mod backoff;
mod conditions;
mod events;
mod phase;
mod plan;
mod reconcile;
mod removal;
mod status;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use futures::stream::{self, Stream, StreamExt};
use k8s_openapi::api::core::v1::Pod;
use steersman::controller::source::Source;
use steersman::informer::Event;
use steersman::{Controller, ObjectKey};
use tokio::sync::watch;

use crate::addresses::Addresses;
use crate::outages::Outages;
use crate::registration::Machine;
use crate::runtime::ContainerRuntime;
use backoff::Memory;
use reconcile::PodWorker;

/// How many Pods are worked on at the same time.
const CONCURRENCY: usize = 32;

/// The machines of this agent, by the name of their Node.
pub(crate) type Machines = Arc<HashMap<String, Machine>>;

/// The Pods of our machines.
type Known = Arc<Mutex<BTreeSet<ObjectKey>>>;

/// The pod workers of these machines, which look at all their Pods when scripts change or a machine
/// is back. A machine that is lost does nothing.
pub(crate) fn controller(
    machines: Machines,
    runtime: impl ContainerRuntime,
    scripts: watch::Receiver<()>,
    outages: Outages,
) -> Controller {
    let ours = Arc::clone(&machines);
    let returns = outages.changes();
    let bound = Arc::clone(&machines);
    let changes = runtime.changes();
    let worker = PodWorker {
        machines,
        addresses: Arc::new(Addresses::default()),
        runtime: Arc::new(runtime),
        memory: Arc::new(Memory::default()),
    };
    let following = worker.clone();
    let known = Known::default();
    let (woken, returned) = (Arc::clone(&known), Arc::clone(&known));
    let works = move |node: &str| ours.contains_key(node) && outages.since(node).is_none();
    Controller::of::<Pod>()
        .named("kubelet")
        .only(move |pod| bound_to(pod).is_some_and(&works))
        .observes(move |event| {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            // A Pod removed by force is never reconciled again.
            if let Event::Deleted { object, .. } = event {
                following.forget(object.uid().unwrap_or_default());
                known.remove(object.key());
            } else if let Some(pod) = event.object().object()
                && let Some(node) = bound_to(&pod).filter(|node| bound.contains_key(*node))
            {
                following.follow(&pod, node);
                known.insert(event.object().key().clone());
            }
        })
        .source(Source::stream(all_when(scripts, woken)).named("scripts"))
        .source(Source::stream(all_when(returns, returned)).named("outages"))
        .source(Source::stream(changes).named("containers"))
        .concurrency(CONCURRENCY)
        .reconcile(worker)
}

/// All Pods, each time something changes.
fn all_when<T: Send + Sync + 'static>(
    changes: watch::Receiver<T>,
    known: Known,
) -> impl Stream<Item = ObjectKey> + Send {
    let changed = stream::unfold(changes, |mut changes| async move {
        changes.changed().await.ok().map(|()| ((), changes))
    });
    changed.flat_map(move |()| {
        let known = known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        stream::iter(known)
    })
}

/// The node that a Pod is bound to.
fn bound_to(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}
