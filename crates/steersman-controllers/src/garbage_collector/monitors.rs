//! Monitors: one reflector per resource, each feeding the graph.
//!
//! There is no cache beside the graph; it holds all that is needed of every object.

use std::collections::{HashMap, HashSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use steersman::reflector::{Delta, Deltas, Reflector, Selection};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::Collector;
use super::graph::{Node, Uid, Work};
use super::objects::Metadata;
use crate::discovery::{ResourceName, ServedResource};

/// Deltas waiting between a reflector and the graph.
const DELTAS_MAX: usize = 256;
/// How long to wait before a monitor that panicked starts anew.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The monitors of all resources, by the resource's name.
#[derive(Default)]
pub(super) struct Monitors {
    running: HashMap<ResourceName, Monitor>,
}

/// Follows one resource for as long as it lives.
struct Monitor {
    resource: Arc<ServedResource>,
    synced: watch::Receiver<bool>,
    _task: AbortOnDropHandle<()>,
}

impl Monitors {
    /// Starts and stops monitors so that there is one for every resource that can be collected.
    /// If a resource is served in another version than before, its objects are the same: the
    /// graph keeps them until the new monitor tells what is there.
    pub(super) fn follow(&mut self, served: Vec<ServedResource>, collector: &Arc<Collector>) {
        let wanted = served.into_iter().filter(is_collectable);
        let wanted: HashMap<_, _> = wanted.map(|resource| (resource.name(), resource)).collect();
        self.running.retain(|name, monitor| {
            let stays = wanted.contains_key(name);
            if !stays {
                let work = collector.graph().retain(&monitor.resource, &HashSet::new());
                collector.enqueue(work);
            }
            stays
        });
        for (name, resource) in wanted {
            if self.running.get(&name).is_none_or(|monitor| *monitor.resource != resource) {
                self.running.remove(&name); // the old one stops before the new one starts
                self.running.insert(name, Monitor::start(resource, collector));
            }
        }
    }

    /// Waits until every monitor has told what is there.
    pub(super) async fn synced(&self) {
        for monitor in self.running.values() {
            let mut synced = monitor.synced.clone();
            let _ = synced.wait_for(|synced| *synced).await; // fails only if the monitor stopped
        }
    }
}

/// Whether objects of a resource can be followed and deleted. Kubernetes' own Events are too
/// many, expire by themselves, and own nothing; what others call events is like all else.
pub(super) fn is_collectable(resource: &ServedResource) -> bool {
    let group = resource.api.group.as_str();
    let are_events = resource.api.plural == "events" && matches!(group, "" | "events.k8s.io");
    !are_events && resource.has_verbs(&["list", "watch", "delete"])
}

impl Monitor {
    fn start(resource: ServedResource, collector: &Arc<Collector>) -> Self {
        let resource = Arc::new(resource);
        let (tell_synced, synced) = watch::channel(false);
        let task = monitor(Arc::clone(&resource), Arc::clone(collector), tell_synced);
        Self { resource, synced, _task: AbortOnDropHandle::new(tokio::spawn(task)) }
    }
}

/// Follows a resource for ever. A panic may have lost a delta, so then everything is read anew.
async fn monitor(
    resource: Arc<ServedResource>,
    collector: Arc<Collector>,
    synced: watch::Sender<bool>,
) {
    loop {
        let client = collector.client.kube().clone();
        let everything = Selection::default();
        let (reflector, deltas) = Reflector::channel(client, &resource.api, everything, DELTAS_MAX);
        let both = async {
            tokio::join!(reflector.run(), feed(&resource, &collector, deltas, &synced));
        };
        if AssertUnwindSafe(both).catch_unwind().await.is_err() {
            tracing::error!(resource = resource.api.plural, "monitor panicked; relisting");
        }
        tokio::time::sleep(RESTART_DELAY).await;
    }
}

/// Takes a resource's deltas into the graph.
async fn feed(
    resource: &Arc<ServedResource>,
    collector: &Collector,
    mut deltas: Deltas<Metadata>,
    synced: &watch::Sender<bool>,
) {
    let kind = resource.api.kind.as_str();
    let defines_resources = matches!(kind, "CustomResourceDefinition" | "APIService");
    loop {
        let batch = deltas.pop_batch(DELTAS_MAX).await;
        if batch.is_empty() {
            return;
        }
        for delta in batch {
            let changed = !matches!(delta, Delta::Bookmark { .. });
            let Some(work) = take(resource, collector, delta) else { return };
            collector.enqueue(work);
            synced.send_replace(true);
            if defines_resources && changed {
                collector.resources_changed.notify_one();
            }
        }
    }
}

/// Takes one delta into the graph. `None` if it cannot tell which node it is about; then
/// everything must be read anew.
fn take(
    resource: &Arc<ServedResource>,
    collector: &Collector,
    delta: Delta<Metadata>,
) -> Option<Vec<Work>> {
    let node = |object: Metadata| Node::new(Arc::clone(resource), object.into_inner());
    let mut graph = collector.graph();
    Some(match delta {
        Delta::Replaced { objects, .. } => {
            let nodes: Vec<Node> = objects.into_iter().filter_map(node).collect();
            let present: HashSet<Uid> = nodes.iter().map(|node| Arc::clone(&node.uid)).collect();
            let mut work = graph.retain(resource, &present);
            work.extend(nodes.into_iter().flat_map(|node| graph.observe(node)));
            work
        }
        Delta::Applied(object) | Delta::Reread(object) => {
            node(object).map(|node| graph.observe(node)).unwrap_or_default()
        }
        Delta::Deleted(object) => node(object).map(|node| graph.delete(node)).unwrap_or_default(),
        // The graph knows objects by uid.
        Delta::DeletedKey { .. } => return None,
        Delta::Bookmark { .. } => Vec::new(),
    })
}
