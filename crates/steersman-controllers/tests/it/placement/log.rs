//! What the store was written of Pods and nodes, in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use steersman_store::{RangeRequest, Store, WatchRequest};
use steersman_testkit::Cluster;
use tokio_util::task::AbortOnDropHandle;

use super::reference::millis;

/// One write: the key, and what it holds now.
type Write = (String, Option<Value>);

/// Every write of a Pod or node from now on.
pub(super) struct Bindings {
    writes: Arc<Mutex<Vec<Write>>>,
    _follows: AbortOnDropHandle<()>,
}

impl Bindings {
    pub(super) async fn follow(cluster: &Cluster) -> Self {
        let store = cluster.inner().store().clone();
        let now = store.range(RangeRequest { limit: 1, ..RangeRequest::default() }).await.unwrap();
        let request = WatchRequest { prefix: "/registry/".into(), after: now.revision };
        let mut watch = store.watch(request).await.unwrap();
        let writes: Arc<Mutex<Vec<Write>>> = Arc::default();
        let noted = Arc::clone(&writes);
        let follows = tokio::spawn(async move {
            loop {
                let events = watch.next().await.expect("nothing is compacted in so short a time");
                for event in &events {
                    let key = event.key.to_string();
                    if key.contains("/pods/") || key.contains("/minions/") {
                        let value = event.current.as_ref();
                        let value = value.map(|it| serde_json::from_slice(&it.value).unwrap());
                        noted.lock().unwrap().push((key, value));
                    }
                }
            }
        });
        Self { writes, _follows: AbortOnDropHandle::new(follows) }
    }

    /// Fails if a Pod ever moved, or a node ever had more than it offers. How many Pods were bound.
    pub(super) fn check(&self, told: &str) -> usize {
        let mut placed: BTreeMap<&str, &Value> = BTreeMap::new();
        let mut offered: BTreeMap<&str, u64> = BTreeMap::new();
        let mut bound = 0;
        let writes = self.writes.lock().unwrap();
        for (key, value) in &*writes {
            if let Some(node) = key.strip_prefix("/registry/minions/") {
                if let Some(value) = value {
                    offered.insert(node, millis(&value["status"]["allocatable"]["cpu"]));
                }
                continue;
            }
            let before = placed.remove(key.as_str());
            let Some(pod) = value.as_ref().filter(|pod| takes(pod)) else { continue };
            let node = pod["spec"]["nodeName"].as_str().unwrap();
            let was = before.filter(|it| it["metadata"]["uid"] == pod["metadata"]["uid"]);
            if let Some(was) = was {
                let moved = was["spec"]["nodeName"] != node;
                assert!(
                    !moved,
                    "{told}: {key} was on {}, and is on {node}",
                    was["spec"]["nodeName"]
                );
            }
            placed.insert(key, pod);
            if was.is_none() {
                bound += 1;
                let there = placed.values().filter(|it| it["spec"]["nodeName"] == node);
                let taken: u64 = there.map(|it| cpu(it)).sum();
                let all = offered[node];
                assert!(taken <= all, "{told}: with {key}, {taken} of {all} are taken on {node}");
            }
        }
        bound
    }
}

/// Whether a Pod takes something from a node.
fn takes(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str();
    pod["spec"]["nodeName"].is_string() && !matches!(phase, Some("Succeeded" | "Failed"))
}

fn cpu(pod: &Value) -> u64 {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers.map(|it| millis(&it["resources"]["requests"]["cpu"])).sum()
}
