//! Which Pods use a claim.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use steersman::ObjectKey;
use steersman::cache::Cache;
use steersman::volumes::claims_of;

/// The index of Pods by the claims that they use, made when somebody asks for the first time.
const BY_CLAIM: &str = "claims";

/// The Pods that use a claim, or will, by name.
pub(crate) fn pods_using(pods: &Cache<Pod>, claim: &ObjectKey) -> Vec<Arc<Pod>> {
    pods.add_index(BY_CLAIM, claim_keys);
    let mut using = pods.by_index(BY_CLAIM, claim);
    using.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    using
}

/// The keys of the claims that a Pod uses.
pub(crate) fn claim_keys(pod: &Pod) -> Vec<ObjectKey> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    claims_of(pod).map(|claim| ObjectKey::namespaced(namespace, claim.name)).collect()
}
