//! What becomes of an object, given how its owners are.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::PropagationPolicy;

/// How an owner is, according to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerState {
    /// It exists and holds its dependents.
    Solid,
    /// It exists only until its dependents are deleted.
    Waiting,
    /// It does not exist.
    Dangling,
    /// Nobody can say: its kind is not served, or a cluster-scoped object names an owner in
    /// some namespace. Held on to, since deleting would be guessing.
    Unresolvable,
}

/// What becomes of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decision {
    /// It stays as it is.
    Keep,
    /// It stays, and no longer refers to the owners with these uids.
    Disown(Vec<String>),
    /// It is deleted.
    Delete(PropagationPolicy),
}

/// Decides about an object. One owner that holds it is enough to keep it.
pub(super) fn decide(
    meta: &ObjectMeta,
    owners: &[(OwnerReference, OwnerState)],
    has_dependents: bool,
) -> Decision {
    if owners.is_empty() || meta.deletion_timestamp.is_some() {
        return Decision::Keep;
    }
    let holds = |state| matches!(state, OwnerState::Solid | OwnerState::Unresolvable);
    if owners.iter().any(|(_, state)| holds(*state)) {
        let loose = owners.iter().filter(|(_, state)| !holds(*state));
        let loose: Vec<String> = loose.map(|(owner, _)| owner.uid.clone()).collect();
        return if loose.is_empty() { Decision::Keep } else { Decision::Disown(loose) };
    }
    let awaited = owners.iter().any(|(_, state)| *state == OwnerState::Waiting);
    if awaited && has_dependents {
        // The owner waits for the whole tree, so this object has to wait for its part of it.
        return Decision::Delete(PropagationPolicy::Foreground);
    }
    Decision::Delete(own_policy(meta))
}

/// What people are told of an object in `namespace` that refers to an owner in another one.
pub(super) fn invalid_namespace(owner: &OwnerReference, namespace: Option<&str>) -> String {
    let namespace = namespace.unwrap_or_default();
    let OwnerReference { api_version, kind, name, uid, .. } = owner;
    format!(
        "ownerRef [{api_version}/{kind}, namespace: {namespace}, name: {name}, uid: {uid}] does not \
         exist in namespace {namespace:?}"
    )
}

/// The policy that an object's own finalizers ask for.
fn own_policy(meta: &ObjectMeta) -> PropagationPolicy {
    let has = |name| meta.finalizers.iter().flatten().any(|finalizer| finalizer == name);
    if has("orphan") {
        PropagationPolicy::Orphan
    } else if has("foregroundDeletion") {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    }
}
