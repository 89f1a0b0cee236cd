//! Clients that write without pause, and remember what was acknowledged.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::program::PATIENCE;

/// Writers at work. Dropping them stops them.
pub(crate) struct Load {
    acknowledged: Arc<Mutex<BTreeSet<String>>>,
    count: watch::Receiver<usize>,
    _writers: JoinSet<()>,
}

impl Load {
    /// So many writers a client. The names of what they write begin with this.
    pub(crate) fn start(clients: &[kube::Client], writers: usize, name: &str) -> Self {
        let acknowledged = Arc::new(Mutex::new(BTreeSet::new()));
        let (counted, count) = watch::channel(0);
        let mut tasks = JoinSet::new();
        for (n, client) in clients.iter().enumerate() {
            for writer in 0..writers {
                let maps = Api::default_namespaced(client.clone());
                let (acknowledged, counted) = (Arc::clone(&acknowledged), counted.clone());
                let name = format!("{name}-{n}-{writer}");
                tasks.spawn(async move {
                    write(maps, &name, |name| {
                        acknowledged.lock().unwrap().insert(name);
                        counted.send_modify(|count| *count += 1);
                    })
                    .await;
                });
            }
        }
        Self { acknowledged, count, _writers: tasks }
    }

    /// Waits until so many more writes were acknowledged.
    pub(crate) async fn passes(&mut self, more: usize) {
        let goal = *self.count.borrow() + more;
        let passed = timeout(PATIENCE, self.count.wait_for(|count| *count >= goal)).await;
        passed.expect("writes are acknowledged").unwrap();
    }

    /// Ends it; the names of everything that was acknowledged.
    pub(crate) fn end(self) -> BTreeSet<String> {
        let acknowledged = self.acknowledged.lock().unwrap();
        acknowledged.clone()
    }
}

/// Creates one ConfigMap after the other, for ever.
async fn write(maps: Api<ConfigMap>, name: &str, done: impl Fn(String)) {
    let mut pause = tokio::time::interval(Duration::from_millis(20));
    for number in 0.. {
        let name = format!("{name}-{number}");
        let map = json!({"metadata": {"name": name}, "data": {"text": "x".repeat(200)}});
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        match timeout(PATIENCE, maps.create(&PostParams::default(), &map)).await {
            Ok(Ok(_)) => done(name),
            _ => _ = pause.tick().await, // whether it happened or not, nobody was told
        }
    }
}

/// Every acknowledged ConfigMap must be there.
pub(crate) async fn assert_kept(client: &kube::Client, acknowledged: &BTreeSet<String>) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let found = maps.list(&ListParams::default()).await.unwrap();
    let found: BTreeSet<String> = found.into_iter().filter_map(|map| map.metadata.name).collect();
    let lost: Vec<&String> = acknowledged.difference(&found).collect();
    assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), acknowledged.len());
}
