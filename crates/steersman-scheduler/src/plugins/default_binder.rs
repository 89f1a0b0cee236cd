//! Binds a Pod to its node by its subresource `binding`.

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Binding as Request, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::framework::{Binding, Interest, Plugin, Points};

/// Binds Pods.
pub(crate) struct DefaultBinder;

impl Plugin for DefaultBinder {
    fn name(&self) -> &'static str {
        "DefaultBinder"
    }

    fn points(&self) -> Points {
        Points::BIND
    }

    fn interests(&self) -> &[Interest] {
        &[]
    }

    fn bind<'a>(&'a self, binding: &'a Binding) -> Option<BoxFuture<'a, steersman::Result<()>>> {
        let request = request(&binding.pod, &binding.node);
        let key = &binding.info.key;
        Some(Box::pin(async move {
            binding.client.create_subresource::<Pod>("binding", key, &request).await
        }))
    }
}

fn request(pod: &Pod, node: &str) -> Request {
    Request {
        metadata: ObjectMeta {
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".into()),
            name: Some(node.to_owned()),
            ..ObjectReference::default()
        },
    }
}
