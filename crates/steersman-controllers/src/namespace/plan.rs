//! In which order a namespace is emptied, and how long to wait between looks.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;

use crate::discovery::ServedResource;

/// The finalizer that this controller is responsible for.
pub(super) const FINALIZER: &str = "kubernetes";
/// The shortest and the longest time between two looks.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(15));

/// What a namespace can contain and be emptied of.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// Pods, which go first.
    pub(super) pods: Vec<ServedResource>,
    /// Everything else.
    pub(super) rest: Vec<ServedResource>,
}

/// Sorts what the server serves into what goes first and what goes then.
pub(super) fn content(served: Vec<ServedResource>) -> Content {
    let deletable =
        |resource: &ServedResource| resource.namespaced && resource.has_verbs(&["list", "delete"]);
    let is_pods = |r: &ServedResource| r.api.group.is_empty() && r.api.plural == "pods";
    let (pods, rest) = served.into_iter().filter(deletable).partition(is_pods);
    Content { pods, rest }
}

/// Whether this controller still holds the namespace.
pub(super) fn is_held(namespace: &Namespace) -> bool {
    let finalizers = namespace.spec.as_ref().and_then(|spec| spec.finalizers.as_ref());
    finalizers.is_some_and(|all| all.iter().any(|finalizer| finalizer == FINALIZER))
}

/// The namespace without this controller's finalizer.
pub(super) fn released(namespace: &Namespace) -> Namespace {
    let mut namespace = namespace.clone();
    if let Some(finalizers) = namespace.spec.as_mut().and_then(|spec| spec.finalizers.as_mut()) {
        finalizers.retain(|finalizer| finalizer != FINALIZER);
    }
    namespace
}

/// When to look again at a namespace that is not empty yet: the longer it takes, the rarer.
pub(super) fn look_again(namespace: &Namespace, now: Timestamp) -> Duration {
    let since = namespace.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0);
    let taken = Duration::try_from(now.duration_since(since)).unwrap_or_default();
    (taken / 10).clamp(LOOK_AGAIN.0, LOOK_AGAIN.1)
}
