//! Steersman's own informer and work queue, as its users have them.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman::ObjectKey;
use steersman::cache::Form;
use steersman::informer::{Event, Informer};
use steersman::workqueue::{ExponentialBackoff, WorkQueue};
use steersman_bench_server::WRITTEN;

use super::hearing::Handler;
use super::queue::{Key, Queue};
use super::subject::Subject;

const BY_NODE: &str = "by-node";

/// An informer that holds Pods in the form that suits them, or typed.
pub(crate) struct Steersman<const TYPED: bool>(Informer<Pod>);

impl<const TYPED: bool> Subject for Steersman<TYPED> {
    type Key = ObjectKey;

    async fn start(client: kube::Client) -> Self {
        let form = if TYPED { Form::Typed } else { Form::of::<Pod>() };
        let informer = Informer::builder(client).form(form).start();
        informer.cache().synced().await;
        Self(informer)
    }

    fn len(&self) -> usize {
        self.0.cache().len()
    }

    fn index_by_node(&self) {
        self.0.cache().add_index(BY_NODE, |pod: &Pod| {
            pod.spec.as_ref().and_then(|spec| spec.node_name.clone())
        });
    }

    fn count_on_node(&self, node: &str) -> usize {
        self.0.cache().by_index(BY_NODE, node).len()
    }

    fn count_items_on_node(&self, node: &str) -> Option<usize> {
        Some(self.0.cache().indexed(BY_NODE, node).iter().count())
    }

    fn keys(&self, count: usize) -> Vec<ObjectKey> {
        let snapshot = self.0.cache().snapshot();
        snapshot.iter().take(count).map(|item| item.key().clone()).collect()
    }

    fn get(&self, key: &ObjectKey) -> Option<Arc<Pod>> {
        self.0.cache().get(key)
    }

    async fn listen(&mut self, handlers: Vec<Handler>) {
        for mut handler in handlers {
            let hear = move |event: &Event<Pod>| {
                let meta = event.object().meta();
                let annotations = meta.as_ref().and_then(|meta| meta.annotations.as_ref());
                if let Some(mark) = annotations.and_then(|annotations| annotations.get(WRITTEN)) {
                    handler(mark);
                }
            };
            self.0.add_handler(hear).await.synced().await;
        }
    }
}

/// The work queue with its default rate limiter.
impl Queue for WorkQueue<Key> {
    fn start() -> Self {
        WorkQueue::new(ExponentialBackoff::default())
    }

    fn add(&self, key: Key) {
        WorkQueue::add(self, key);
    }

    fn add_after(&self, key: Key, delay: Duration) {
        WorkQueue::add_after(self, key, delay);
    }

    async fn get(&self) -> Option<Key> {
        WorkQueue::get(self).await
    }

    fn done(&self, key: Key) {
        WorkQueue::done(self, &key);
    }

    fn is_empty(&self) -> bool {
        WorkQueue::is_empty(self)
    }

    fn shut_down(&self) {
        WorkQueue::shut_down(self);
    }
}
