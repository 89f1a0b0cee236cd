//! What several plug-ins ask of a Pod.

use k8s_openapi::api::core::v1::{Pod, Toleration};

use crate::framework::{ClusterEvent, Object};

/// Whether an event is a change of the Pod itself.
pub(crate) fn is_of(pod: &Pod, event: &ClusterEvent) -> bool {
    let Object::Pod(change) = &event.object else { return false };
    change.new.as_ref().is_some_and(|changed| Some(&*changed.uid) == pod.metadata.uid.as_deref())
}

/// What a Pod tolerates.
pub(crate) fn tolerations(pod: &Pod) -> &[Toleration] {
    let spec = pod.spec.as_ref();
    spec.and_then(|spec| spec.tolerations.as_deref()).unwrap_or_default()
}
