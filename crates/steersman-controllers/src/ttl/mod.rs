//! The TTL controller: tells kubelets, by an annotation of their Nodes, for how long they may keep
//! what they have read of Secrets and ConfigMaps. The more nodes there are, the longer.

mod plan;

use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::Node;
use kube::api::Patch;
use serde_json::json;
use steersman::informer::Event;
use steersman::{Context, Controller, Next, ObjectKey, Reconciler, Result};

use crate::wakes::Wakes;
use plan::Size;

/// What kubelets go by.
const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// The TTL controller.
pub(crate) fn controller() -> Controller {
    let size = Arc::new(Mutex::new(Size::default()));
    let counted = Arc::clone(&size);
    let wakes = Wakes::default();
    let source = wakes.source("cluster size");
    Controller::of::<Node>()
        .named("ttl-controller")
        .observes(move |event| {
            let mut size = counted.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = match event {
                Event::Added { object, .. } => size.add(object.key()),
                Event::Deleted { object, .. } => size.remove(object.key()),
                _ => false,
            };
            if changed {
                wakes.wake(size.nodes().cloned());
            }
        })
        .source(source)
        .concurrency(5)
        .reconcile(Annotator { size })
}

/// Annotates nodes.
struct Annotator {
    size: Arc<Mutex<Size>>,
}

impl Reconciler<Node> for Annotator {
    async fn reconcile(&self, node: Arc<Node>, ctx: Context<Node>) -> Result<Next> {
        let seconds = self.size.lock().unwrap_or_else(PoisonError::into_inner).ttl_seconds();
        let annotations = node.metadata.annotations.as_ref();
        let current = annotations.and_then(|all| all.get(ANNOTATION)?.parse::<u32>().ok());
        if current != Some(seconds) {
            let ttl = json!({ANNOTATION: seconds.to_string()});
            let patch = Patch::Strategic(json!({"metadata": {"annotations": ttl}}));
            let key: &ObjectKey = ctx.key();
            ctx.patch::<Node, _>(key, &patch).await?;
        }
        Ok(Next::Settled)
    }
}
