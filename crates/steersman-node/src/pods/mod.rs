//! Pod workers: make each Pod that is bound to one of our nodes run, report it, and end it.
//!
//! [`plan`] decides which containers are started, started again or stopped, with the [`backoff`]s
//! of those that keep failing; [`status`] says what is reported of it, by [`phase`], [`conditions`],
//! [`resources`] and [`terminated`], and [`resize`] who gets other resources (all pure).
//! [`reconcile`] and [`resizing`] carry it out through the runtime and write, and [`events`] tells people
//! of it.

mod anew;
mod backoff;
mod conditions;
mod events;
mod phase;
mod plan;
mod reconcile;
mod removal;
mod resize;
mod resizing;
mod resources;
mod static_pod;
mod status;
mod terminated;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::stream::{self, Stream, StreamExt};
use k8s_openapi::api::core::v1::{Node, Pod};
use steersman::controller::source::{Source, Watch};
use steersman::events::EventForm;
use steersman::handler::Requests;
use steersman::informer::Event;
use steersman::workqueue::ExponentialBackoff;
use steersman::{Controller, ObjectKey};
use tokio::sync::watch;

use crate::outages::Outages;
use crate::registration::Machine;
use crate::runtime::ContainerRuntime;
use crate::static_pods::is_mirror;
use crate::static_pods::mirrors::Mirrors;
use reconcile::PodWorker;
pub(crate) use static_pod::StaticPods;

/// When a Pod is looked at again that could not be brought on: soon at first, and in the end as often
/// as a kubelet does. A runtime that was away for a while must not keep its Pods for long.
const RETRY: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(10));
/// How many Pods are worked on at the same time.
const CONCURRENCY: usize = 32;

/// The machines of this agent, by the name of their Node.
pub(crate) type Machines = Arc<HashMap<String, Machine>>;

/// The Pods of our machines.
type Known = Arc<Mutex<BTreeSet<ObjectKey>>>;

/// The pod workers of these machines, and who runs their static Pods.
pub(crate) struct Workers<R> {
    pub(crate) controller: Controller,
    pub(crate) static_pods: StaticPods<R>,
}

/// What wakes pod workers beside Pods.
pub(crate) struct Signals {
    /// Scripts have changed.
    pub(crate) scripts: watch::Receiver<()>,
    /// Machines that are lost do nothing.
    pub(crate) outages: Outages,
}

/// The pod workers of these machines, which look at all their Pods when scripts change or a machine
/// is back. A machine that is lost does nothing.
pub(crate) fn controller(
    machines: Machines,
    runtime: impl ContainerRuntime,
    signals: Signals,
) -> Controller {
    build(PodWorker::new(machines, runtime), signals, None)
}

/// The same for machines that have static Pods: Pods that show them are not run.
pub(crate) fn workers<R: ContainerRuntime>(
    machines: Machines,
    runtime: R,
    signals: Signals,
) -> Workers<R> {
    let worker = PodWorker::new(machines, runtime);
    let mirrors = Mirrors::default();
    let static_pods = StaticPods::new(worker.clone(), mirrors.clone());
    Workers { controller: build(worker, signals, Some(mirrors)), static_pods }
}

fn build<R: ContainerRuntime>(
    worker: PodWorker<R>,
    Signals { scripts, outages }: Signals,
    mirrors: Option<Mirrors>,
) -> Controller {
    let ours = Arc::clone(&worker.machines);
    let returns = outages.changes();
    let bound = Arc::clone(&worker.machines);
    let changes = worker.runtime.changes();
    let room = worker.allocations.woken();
    let (following, standing) = (worker.clone(), worker.clone());
    let known = Known::default();
    let (woken, returned) = (Arc::clone(&known), Arc::clone(&known));
    let works = move |node: &str| ours.contains_key(node) && outages.since(node).is_none();
    let shows = mirrors.is_some();
    Controller::of::<Pod>()
        .named("kubelet")
        .only(move |pod| !(shows && is_mirror(pod)) && bound_to(pod).is_some_and(&works))
        .observes(move |event| {
            if mirrors.as_ref().is_some_and(|mirrors| mirrors.take_in(event)) {
                return;
            }
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            // A Pod removed by force is never reconciled again.
            if let Event::Deleted { object, .. } = event {
                following.forget(object.uid().unwrap_or_default());
                following.allocations.make_room(None);
                known.remove(object.key());
            } else if let Some(pod) = event.object().object()
                && let Some(node) = bound_to(&pod).filter(|node| bound.contains_key(*node))
            {
                following.follow(&pod, node);
                known.insert(event.object().key().clone());
            }
        })
        // It concerns those that come to a node from then on, and nobody who is there.
        .watches_with(Watch::<Node>::of(), move |event: &Event<Node>, _: &mut Requests| {
            let machine = standing.machines.get(&*event.object().key().name);
            if let Some((machine, node)) = machine.zip(event.object().object()) {
                standing.addresses.take_in_node(&node, machine);
            }
        })
        .source(Source::stream(all_when(scripts, woken)).named("scripts"))
        .source(Source::stream(all_when(returns, returned)).named("outages"))
        .source(Source::stream(changes).named("containers"))
        .source(Source::stream(room).named("room"))
        .rate_limit(ExponentialBackoff::new(RETRY.0, RETRY.1))
        .concurrency(CONCURRENCY)
        .reconcile(worker)
        .event_form(EventForm::Counted)
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
