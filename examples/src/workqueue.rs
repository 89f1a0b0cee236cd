//! A controller by hand: indexer, informer, work queue and a loop, nothing more.
//!
//! The twin of client-go's workqueue example, for those who want to see what
//! [`steersman::Controller`] does for them, or who need something that it does not do. It
//! prints every Pod that changes; a key that fails is tried again, five times at most.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use steersman::cache::Cache;
use steersman::informer::Informer;
use steersman::workqueue::WorkQueue;
use steersman::{ObjectKey, Result};

/// How often a key is tried again before it is dropped.
pub const RETRIES_MAX: u32 = 5;

/// What is done with a Pod, or with the key of one that is gone.
pub type SyncPod = Arc<dyn Fn(&ObjectKey, Option<&Pod>) -> Result<()> + Send + Sync>;

/// Calls a function for every Pod that changes.
pub struct PodLoop {
    /// Every Pod, by key. The workers read it; the informer keeps it up to date.
    indexer: Cache<Pod>,
    /// The keys of Pods that changed, each at most once. Events are not kept: what a worker
    /// sees is the newest state, however many changes led to it.
    queue: WorkQueue<ObjectKey>,
    /// Lists and watches for as long as it lives.
    informer: Informer<Pod>,
    sync: SyncPod,
}

impl PodLoop {
    /// Starts to follow the Pods of a cluster.
    pub async fn start(client: kube::Client, sync: SyncPod) -> Self {
        let informer = Informer::<Pod>::builder(client).start();
        let queue = WorkQueue::default();
        // A handler only notes which key changed. The work is done elsewhere, at its own pace.
        let enqueue = queue.clone();
        informer.add_handler(move |event| enqueue.add(event.object().key().clone())).await;
        Self { indexer: informer.cache().clone(), queue, informer, sync }
    }

    /// Works until [`stop`](Self::stop). Several of these may run side by side: a key is never
    /// worked on by two at once.
    pub async fn run_worker(&self) {
        // Before the first list is complete, Pods that exist would look deleted.
        self.informer.cache().synced().await;
        while let Some(key) = self.queue.get().await {
            let pod = self.indexer.get(&key);
            let result = (self.sync)(&key, pod.as_deref());
            self.handle(&key, result);
            self.queue.done(&key);
        }
    }

    /// Lets the workers end.
    pub fn stop(&self) {
        self.queue.shut_down();
    }

    fn handle(&self, key: &ObjectKey, result: Result<()>) {
        match result {
            // The next failure of this key starts with a short delay again.
            Ok(()) => self.queue.forget(key),
            Err(_) if self.queue.num_requeues(key) < RETRIES_MAX => {
                self.queue.add_rate_limited(key.clone());
            }
            Err(error) => {
                self.queue.forget(key);
                tracing::error!(%key, %error, "pod dropped out of the queue");
            }
        }
    }
}

/// Prints what happened to a Pod.
pub fn print(key: &ObjectKey, pod: Option<&Pod>) -> Result<()> {
    match pod {
        None => tracing::info!(%key, "pod does not exist anymore"),
        Some(pod) => {
            let status = pod.status.as_ref();
            let phase = status.and_then(|status| status.phase.as_deref()).unwrap_or("unknown");
            tracing::info!(%key, phase, "pod added or updated");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use kube::api::DeleteParams;
    use serde_json::json;
    use steersman::Error;
    use steersman_testkit::Cluster;

    use super::*;

    fn pod(name: &str) -> Pod {
        let spec = json!({"containers": [{"name": "main", "image": "web:v1"}]});
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
    }

    /// Runs a loop with two workers that note what they see; keys of this name fail.
    async fn noted(
        cluster: &Cluster,
        failing: &'static str,
    ) -> (Arc<PodLoop>, Arc<Mutex<Vec<String>>>) {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&seen);
        let sync: SyncPod = Arc::new(move |key, pod| {
            let what = if pod.is_some() { "is there" } else { "is gone" };
            shared.lock().unwrap().push(format!("{key} {what}"));
            if &*key.name == failing { Err(Error::message("on purpose")) } else { Ok(()) }
        });
        let pods = Arc::new(PodLoop::start(cluster.client().kube().clone(), sync).await);
        for _ in 0..2 {
            let pods = Arc::clone(&pods);
            tokio::spawn(async move { pods.run_worker().await });
        }
        (pods, seen)
    }

    #[steersman::test]
    async fn every_pod_is_seen_when_it_comes_and_when_it_goes(cluster: Cluster) -> Result<()> {
        let (_pods, seen) = noted(&cluster, "").await;
        cluster.client().create(&pod("a")).await?;
        cluster.advance(Duration::from_secs(10)).await;
        let now = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
        cluster.client().delete::<Pod>("a", &now).await?;
        cluster.advance(Duration::from_secs(10)).await;
        let seen = seen.lock().unwrap();
        assert_eq!(seen.first().map(String::as_str), Some("default/a is there"));
        assert_eq!(seen.last().map(String::as_str), Some("default/a is gone"));
        Ok(())
    }

    #[steersman::test]
    async fn a_pod_that_keeps_failing_is_dropped_after_five_retries(
        cluster: Cluster,
    ) -> Result<()> {
        let mut bad = pod("bad");
        // Nobody schedules it, so nothing happens to it after its creation.
        bad.spec.as_mut().unwrap().scheduler_name = Some("nobody".into());
        cluster.client().create(&bad).await?;
        let (pods, seen) = noted(&cluster, "bad").await;
        cluster.advance(Duration::from_secs(600)).await;
        assert_eq!(seen.lock().unwrap().len(), 1 + RETRIES_MAX as usize);
        assert_eq!(pods.queue.num_requeues(&ObjectKey::from("default/bad")), 0);
        pods.stop();
        Ok(())
    }
}
