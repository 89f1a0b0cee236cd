//! kube-runtime as its users have it: a reflector behind a watcher with default settings.

use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::{Api, ResourceExt};
use kube_runtime::reflector::{self, ObjectRef, Store};
use kube_runtime::{WatchStreamExt, watcher};
use steersman_bench_server::WRITTEN;

use super::hearing::Handler;
use super::subject::Subject;

/// A store, and the handlers that are called for each object of the stream.
pub(crate) struct KubeRuntime {
    store: Store<Pod>,
    handlers: Arc<Mutex<Vec<Handler>>>,
}

impl Subject for KubeRuntime {
    type Key = ObjectRef<Pod>;

    async fn start(client: kube::Client) -> Self {
        let (store, writer) = reflector::store::<Pod>();
        let handlers = Arc::new(Mutex::new(Vec::<Handler>::new()));
        let told = Arc::clone(&handlers);
        let stream =
            reflector::reflector(writer, watcher(Api::all(client), watcher::Config::default()))
                .default_backoff()
                .touched_objects()
                .for_each(move |pod| {
                    if let Ok(pod) = pod
                        && let Some(mark) = pod.annotations().get(WRITTEN)
                    {
                        let mut handlers = told.lock().unwrap_or_else(PoisonError::into_inner);
                        handlers.iter_mut().for_each(|handler| handler(mark));
                    }
                    ready(())
                });
        tokio::spawn(stream);
        // Fails only if the writer is gone, which the stream keeps.
        let _ = store.wait_until_ready().await;
        Self { store, handlers }
    }

    fn len(&self) -> usize {
        self.store.len()
    }

    /// There is no index: every Pod is looked at.
    fn count_on_node(&self, node: &str) -> usize {
        let on_node = |pod: &Pod| {
            pod.spec.as_ref().is_some_and(|spec| spec.node_name.as_deref() == Some(node))
        };
        self.store.state().into_iter().filter(|pod| on_node(pod)).count()
    }

    fn keys(&self, count: usize) -> Vec<ObjectRef<Pod>> {
        self.store.state().iter().take(count).map(|pod| ObjectRef::from_obj(&**pod)).collect()
    }

    fn get(&self, key: &ObjectRef<Pod>) -> Option<Arc<Pod>> {
        self.store.get(key)
    }

    async fn listen(&mut self, handlers: Vec<Handler>) {
        *self.handlers.lock().unwrap_or_else(PoisonError::into_inner) = handlers;
    }
}
