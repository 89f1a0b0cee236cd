//! Which Pods keep a claim.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use steersman::volumes::{claims_of, created_for};

/// Whether a Pod keeps a claim from going: it is on a node and uses it. No kubelet starts a Pod whose
/// claim is being deleted.
pub(super) fn uses(pod: &Pod, claim: &PersistentVolumeClaim) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    if node.is_empty() || pod.metadata.namespace != claim.metadata.namespace {
        return false;
    }
    let mut claims = claims_of(pod).filter(|used| Some(&used.name) == claim.metadata.name.as_ref());
    claims.any(|used| !used.is_ephemeral || (!is_shut_down(pod) && created_for(claim, pod).is_ok()))
}

/// Whether the kubelet is done with a Pod, or it was deleted by force. Its finalizer may wait for the
/// claim.
fn is_shut_down(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_some()
        && pod.metadata.deletion_grace_period_seconds == Some(0)
}
