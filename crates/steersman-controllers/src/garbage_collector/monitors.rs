//! Monitors: one reflector per resource, each feeding the graph.
//!
//! There is no cache beside the graph; it holds all that is needed of every object.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use steersman::reflector::{Delta, Reflector, Selection};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use super::Collector;
use super::graph::{Node, Uid, Work};
use super::objects::Metadata;
use crate::discovery::ServedResource;

/// Deltas waiting between a reflector and the graph.
const DELTAS_MAX: usize = 256;

/// The monitors of all resources, by the resource's path.
#[derive(Default)]
pub(super) struct Monitors {
    running: HashMap<String, Monitor>,
}

/// Follows one resource for as long as it lives.
struct Monitor {
    resource: Arc<ServedResource>,
    synced: watch::Receiver<bool>,
    _tasks: [AbortOnDropHandle<()>; 2],
}

impl Monitors {
    /// Starts and stops monitors so that there is one for every resource that can be collected.
    pub(super) fn follow(&mut self, served: Vec<ServedResource>, collector: &Arc<Collector>) {
        let wanted = served.into_iter().filter(is_collectable);
        let wanted: HashMap<_, _> =
            wanted.map(|resource| (resource.path(None), resource)).collect();
        self.running.retain(|path, monitor| {
            let stays = wanted.contains_key(path);
            if !stays {
                let work = collector.graph().retain(&monitor.resource, &HashSet::new());
                collector.enqueue(work);
            }
            stays
        });
        for (path, resource) in wanted {
            self.running.entry(path).or_insert_with(|| Monitor::start(resource, collector));
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

/// Whether objects of a resource can be followed and deleted. Events are too many, expire by
/// themselves, and own nothing.
fn is_collectable(resource: &ServedResource) -> bool {
    resource.api.plural != "events" && resource.has_verbs(&["list", "watch", "delete"])
}

impl Monitor {
    fn start(resource: ServedResource, collector: &Arc<Collector>) -> Self {
        let resource = Arc::new(resource);
        let (send, deltas) = mpsc::channel(DELTAS_MAX);
        let (tell_synced, synced) = watch::channel(false);
        let client = collector.client.kube().clone();
        let reflector = Reflector::new(client, &resource.api, Selection::default(), send);
        let feed = feed(Arc::clone(&resource), Arc::clone(collector), deltas, tell_synced);
        let tasks = [tokio::spawn(reflector.run()), tokio::spawn(feed)];
        Self { resource, synced, _tasks: tasks.map(AbortOnDropHandle::new) }
    }
}

/// Takes a resource's deltas into the graph.
async fn feed(
    resource: Arc<ServedResource>,
    collector: Arc<Collector>,
    mut deltas: mpsc::Receiver<Delta<Metadata>>,
    synced: watch::Sender<bool>,
) {
    let defines_resources = resource.api.kind == "CustomResourceDefinition";
    while let Some(delta) = deltas.recv().await {
        let changed = !matches!(delta, Delta::Bookmark { .. });
        let work = take(&resource, &collector, delta);
        collector.enqueue(work);
        synced.send_replace(true);
        if defines_resources && changed {
            collector.resources_changed.notify_one();
        }
    }
}

fn take(
    resource: &Arc<ServedResource>,
    collector: &Collector,
    delta: Delta<Metadata>,
) -> Vec<Work> {
    let node = |object: Metadata| Node::new(Arc::clone(resource), object.into_inner());
    let mut graph = collector.graph();
    match delta {
        Delta::Replaced { objects, .. } => {
            let nodes: Vec<Node> = objects.into_iter().filter_map(node).collect();
            let present: HashSet<Uid> = nodes.iter().map(|node| Arc::clone(&node.uid)).collect();
            let mut work = graph.retain(resource, &present);
            work.extend(nodes.into_iter().flat_map(|node| graph.observe(node)));
            work
        }
        Delta::Applied(object) => node(object).map(|node| graph.observe(node)).unwrap_or_default(),
        Delta::Deleted(object) => {
            node(object).map(|node| graph.remove(&node.uid)).unwrap_or_default()
        }
        Delta::Bookmark { .. } => Vec::new(),
    }
}
