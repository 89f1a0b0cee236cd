//! What a namespace that goes tells about how far it is: five conditions, of which each says that
//! all is well, or what is in the way, in the words of Kubernetes. As there, what is left is told of
//! only when Pods are not in the way any more.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Type, reason and message of each condition when all is well.
const WELL: [(&str, &str, &str); 5] = [
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
];

/// What one pass over a namespace found.
#[derive(Debug, Default)]
pub(super) struct Pass {
    /// Group versions that could not be read, and why.
    pub(super) undiscovered: BTreeMap<String, String>,
    /// Why content could not be deleted, resource by resource.
    pub(super) failures: Vec<String>,
    /// How many objects are left, by resource and group: `pods.`, `deployments.apps`.
    pub(super) remaining: BTreeMap<String, usize>,
    /// How many objects each finalizer holds.
    pub(super) finalizers: BTreeMap<String, usize>,
    /// Nothing but Pods was deleted yet, and some of them are left.
    pub(super) waits_for_pods: bool,
}

impl Pass {
    /// Whether the namespace is empty, as far as all that can be in it is known.
    pub(super) fn is_complete(&self) -> bool {
        self.undiscovered.is_empty() && self.failures.is_empty() && self.remaining.is_empty()
    }

    /// The namespace's conditions after this pass, if they change. Those of others stay.
    pub(super) fn conditions(
        &self,
        current: Option<&Vec<NamespaceCondition>>,
        now: &Time,
    ) -> Option<Vec<NamespaceCondition>> {
        let mut conditions = current.cloned().unwrap_or_default();
        for (type_, reason, message) in WELL {
            let wrong = self.wrong(type_);
            let status = if wrong.is_some() { "True" } else { "False" };
            let (reason, message) = wrong.unwrap_or((reason, message.to_owned()));
            let known = conditions.iter().position(|condition| condition.type_ == type_);
            let old = known.map(|index| &conditions[index]);
            let since = old.filter(|old| old.status == status);
            let since = since.and_then(|old| old.last_transition_time.clone());
            let condition = NamespaceCondition {
                type_: type_.into(),
                status: status.into(),
                reason: Some(reason.into()),
                message: Some(message),
                last_transition_time: since.or_else(|| Some(now.clone())),
            };
            match known {
                Some(index) => conditions[index] = condition,
                None => conditions.push(condition),
            }
        }
        (Some(&conditions) != current).then_some(conditions)
    }

    /// Reason and message of what is in the way, if a condition of this type has something to tell.
    fn wrong(&self, type_: &str) -> Option<(&'static str, String)> {
        match type_ {
            "NamespaceDeletionDiscoveryFailure" if !self.undiscovered.is_empty() => {
                Some(("DiscoveryFailed", self.discovery()))
            }
            "NamespaceDeletionContentFailure" if !self.failures.is_empty() => {
                Some(("ContentDeletionFailed", self.content()))
            }
            _ if self.waits_for_pods => None,
            "NamespaceContentRemaining" if !self.remaining.is_empty() => {
                let left = self.remaining.iter();
                let left =
                    left.map(|(name, count)| format!("{name} has {count} resource instances"));
                Some(("SomeResourcesRemain", listed("Some resources are remaining", left)))
            }
            "NamespaceFinalizersRemaining" if !self.finalizers.is_empty() => {
                let held = self.finalizers.iter();
                let held =
                    held.map(|(name, count)| format!("{name} in {count} resource instances"));
                let what = "Some content in the namespace has finalizers remaining";
                Some(("SomeFinalizersRemain", listed(what, held)))
            }
            _ => None,
        }
    }

    fn discovery(&self) -> String {
        let failing = self.undiscovered.iter().map(|(version, why)| format!("{version}: {why}"));
        let failing = listed("unable to retrieve the complete list of server APIs", failing);
        let count = self.undiscovered.len();
        format!("Discovery failed for some groups, {count} failing: {failing}")
    }

    fn content(&self) -> String {
        let what =
            format!("Failed to delete all resource types, {} remaining", self.failures.len());
        listed(&what, self.failures.iter().cloned())
    }
}

/// What it is about, and the parts in a stable order.
fn listed(what: &str, parts: impl Iterator<Item = String>) -> String {
    let mut parts: Vec<String> = parts.collect();
    parts.sort();
    format!("{what}: {}", parts.join(", "))
}
