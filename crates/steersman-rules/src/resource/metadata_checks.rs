//! How kinds look at metadata by themselves, as far as clients can tell: which finalizers they
//! take, and how often they find the same mistake. Kubernetes checks metadata for every kind and
//! most kinds check it again; a client is told every finding.
//! <https://github.com/kubernetes/kubernetes/blob/v1.36.0/staging/src/k8s.io/apiserver/pkg/registry/rest/update.go>

use super::Resource;

/// The kinds whose finalizers need no prefix, because nobody ever asked it of them.
const PLAIN_FINALIZERS: [(&str, &str); 12] = [
    ("", "events"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apiregistration.k8s.io", "apiservices"),
    ("coordination.k8s.io", "leases"),
    ("node.k8s.io", "runtimeclasses"),
    ("policy", "poddisruptionbudgets"),
];

/// The kinds that look at the whole metadata again when an object changes, but not at what of it
/// has changed.
const WHOLE: [(&str, &str); 12] = [
    ("", "limitranges"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("discovery.k8s.io", "endpointslices"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "volumeattachments"),
];

/// The kinds that look again at what of metadata has changed, but not at the whole.
const CHANGE: [(&str, &str); 19] = [
    ("", "podtemplates"),
    ("", "replicationcontrollers"),
    ("", "resourcequotas"),
    ("", "services"),
    ("apiextensions.k8s.io", "customresourcedefinitions"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"),
    ("coordination.k8s.io", "leases"),
    ("events.k8s.io", "events"),
    ("networking.k8s.io", "networkpolicies"),
    ("networking.k8s.io", "servicecidrs"),
    ("resource.k8s.io", "devicetaintrules"),
    ("resource.k8s.io", "resourceslices"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "csidrivers"),
];

/// The kinds that do not look at metadata again when their status changes.
const STATUS_ONLY: [(&str, &str); 6] = [
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("batch", "cronjobs"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("internal.apiserver.k8s.io", "storageversions"),
    ("policy", "poddisruptionbudgets"),
];

/// The kinds that look at a changed object as at a new one before they look at the change, which
/// they then do as a whole once more.
const TWICE: [(&str, &str); 3] =
    [("", "persistentvolumes"), ("batch", "jobs"), ("resource.k8s.io", "resourceclaimtemplates")];

/// How often a kind looks at metadata by itself when an object changes, after that was done as
/// for every kind. A client is told the causes of a refusal as often as they were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// At all of it.
    pub whole: usize,
    /// At what has changed.
    pub change: usize,
}

impl Resource {
    /// Whether finalizers need no prefix.
    pub fn has_plain_finalizers(&self) -> bool {
        self.is_custom() || self.is_one(&PLAIN_FINALIZERS)
    }

    /// Whether a changed object is looked at as a new one before the change is.
    pub fn looks_twice(&self) -> bool {
        self.is_one(&TWICE)
    }

    /// How often the kind looks at metadata again when an object changes through a subresource;
    /// an empty one is the resource itself.
    pub fn looks_again(&self, subresource: &str) -> Again {
        let (whole, change) = match (subresource, self.plural.as_ref()) {
            ("" | "scale", _) if self.is_custom() => (0, 1),
            ("" | "scale", "poddisruptionbudgets" | "storageversions") => (0, 0),
            ("" | "scale", "events") if self.group.is_empty() => (0, 0),
            ("" | "scale", "persistentvolumes") => (2, 0),
            ("" | "scale", _) if self.is_one(&WHOLE) => (1, 0),
            ("" | "scale", _) if self.is_one(&CHANGE) => (0, 1),
            ("" | "scale" | "approval" | "ephemeralcontainers" | "resize", _)
            | ("status", "certificatesigningrequests") => (1, 1),
            ("status", _) if self.is_one(&STATUS_ONLY) => (0, 0),
            _ => (0, 1),
        };
        Again { whole, change }
    }

    fn is_one(&self, kinds: &[(&str, &str)]) -> bool {
        kinds.iter().any(|(group, plural)| self.is(group, plural))
    }
}
