//! In which order a namespace is emptied, what may be left of it, and how long to wait between
//! looks.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::conditions::Pass;
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
    let (pods, rest) = served.into_iter().filter(deletable).partition(is_pods);
    Content { pods, rest }
}

/// Whether this is the resource that goes first.
pub(super) fn is_pods(resource: &ServedResource) -> bool {
    resource.api.group.is_empty() && resource.api.plural == "pods"
}

/// What is left of a resource after everything was deleted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Leftover {
    /// How many objects.
    count: usize,
    /// How many of them each finalizer holds.
    finalizers: BTreeMap<String, usize>,
    /// Whether they go by themselves in good time.
    expected: bool,
}

impl Leftover {
    /// What these objects are, if there are any.
    pub(super) fn of(left: &[ObjectMeta], expected: bool) -> Option<Self> {
        let mut finalizers = BTreeMap::new();
        for finalizer in left.iter().flat_map(|object| object.finalizers.iter().flatten()) {
            *finalizers.entry(finalizer.clone()).or_default() += 1;
        }
        (!left.is_empty()).then_some(Self { count: left.len(), finalizers, expected })
    }
}

impl Pass {
    /// Notes what is left of a resource. What nothing holds and nobody waits for should be gone.
    pub(super) fn note(&mut self, resource: &ServedResource, namespace: &str, left: Leftover) {
        let group = &resource.api.group;
        let plural = &resource.api.plural;
        if !left.expected && left.finalizers.is_empty() {
            let version = &resource.api.version;
            self.failures.push(format!(
                "unexpected items still remain in namespace: {namespace} for gvr: \
                 {group}/{version}, Resource={plural}"
            ));
        }
        self.remaining.insert(format!("{plural}.{group}"), left.count);
        for (finalizer, count) in left.finalizers {
            *self.finalizers.entry(finalizer).or_default() += count;
        }
    }
}

/// Whether Pods of a namespace that was deleted at this time may still be there now: until the
/// longest of their grace periods is over.
pub(super) fn end_is_expected(pods: &[Pod], deleted_at: Timestamp, now: Timestamp) -> bool {
    let ended = |pod: &Pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    };
    let graces = pods.iter().filter(|pod| !ended(pod));
    let graces = graces.filter_map(|pod| pod.spec.as_ref()?.termination_grace_period_seconds);
    let longest = SignedDuration::from_secs(graces.max().unwrap_or(0));
    now.duration_since(deleted_at) < longest
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
