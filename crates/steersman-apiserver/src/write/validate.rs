//! Refusing objects with mistakes: in metadata, by the kind's rules, by its schema.

use serde_json::Value;

use super::{Writer, scale};
use crate::status::{Result, Status};
use steersman_rules::field::FieldError;
use steersman_rules::resource::Resource;
use steersman_rules::{metadata, names};

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

/// What of metadata never changes by an update.
const IMMUTABLE: [&str; 6] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
];

/// What of metadata only the kind itself has rules for.
const NAMES: [&str; 2] = ["metadata.name", "metadata.generateName"];

/// What of metadata is looked at again when something else of it may not change.
const CHECKED_AGAIN: [&str; 3] =
    ["metadata.labels", "metadata.annotations", "metadata.ownerReferences"];

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
const CHANGE: [(&str, &str); 18] = [
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
    ("resource.k8s.io", "resourceslices"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("storage.k8s.io", "csidrivers"),
];

/// The kinds that do not look at metadata again when their status changes.
const STATUS_ONLY: [(&str, &str); 5] = [
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("batch", "cronjobs"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations"),
    ("policy", "poddisruptionbudgets"),
];

/// The kinds that look at a changed object as at a new one before they look at the change, which
/// they then do as a whole once more.
const TWICE: [(&str, &str); 5] = [
    ("", "nodes"),
    ("", "persistentvolumes"),
    ("batch", "jobs"),
    ("node.k8s.io", "runtimeclasses"),
    ("resource.k8s.io", "resourceclaimtemplates"),
];

/// How often a kind looks at metadata by itself when an object changes, after that was done as
/// for every kind. A client is told the causes of a refusal as often as they were found.
/// <https://github.com/kubernetes/kubernetes/blob/v1.36.0/staging/src/k8s.io/apiserver/pkg/registry/rest/update.go>
struct Again {
    /// At all of it.
    whole: usize,
    /// At what has changed.
    change: usize,
}

impl Again {
    fn of(writer: &Writer<'_>) -> Self {
        let resource = writer.resource;
        let is_one = |kinds: &[(&str, &str)]| kinds.iter().any(|(g, p)| resource.is(g, p));
        let (whole, change) = match (writer.subresource, resource.plural.as_ref()) {
            ("" | "scale", _) if resource.is_custom() => (0, 1),
            ("" | "scale", "poddisruptionbudgets") => (0, 0),
            ("" | "scale", "events") if resource.group.is_empty() => (0, 0),
            ("" | "scale", "persistentvolumes") => (2, 0),
            ("" | "scale", _) if is_one(&WHOLE) => (1, 0),
            ("" | "scale", _) if is_one(&CHANGE) => (0, 1),
            ("" | "scale" | "approval" | "ephemeralcontainers" | "resize", _)
            | ("status", "certificatesigningrequests") => (1, 1),
            ("status", _) if is_one(&STATUS_ONLY) => (0, 0),
            _ => (0, 1),
        };
        Self { whole, change }
    }
}

/// Refuses a new object with mistakes.
pub(super) fn new_object(writer: &Writer<'_>, object: &Value) -> Result<()> {
    let resource = writer.resource;
    let name = metadata::text(object, "name");
    let mut errors = names::validate_metadata(object, resource.namespaced);
    errors.extend(finalizer_prefixes(writer, object));
    errors.extend(resource.rules.validate_create(object));
    errors.extend(of_kind(writer, object));
    refuse(resource, name, &errors)
}

/// Refuses a changed object with mistakes.
pub(super) fn changed_object(writer: &Writer<'_>, old: &Value, new: &Value) -> Result<()> {
    let resource = writer.resource;
    let mut errors = changed_metadata(writer, old, new);
    let found = resource.rules.validate_update(old, new);
    if !found.is_empty() && TWICE.iter().any(|(group, plural)| resource.is(group, plural)) {
        errors.extend(resource.rules.validate_existing(new));
    }
    errors.extend(found);
    errors.extend(of_kind(writer, new));
    refuse(resource, metadata::text(old, "name"), &errors)
}

/// The mistakes in the metadata of a changed object, whichever path it is written through.
pub(super) fn changed_metadata(writer: &Writer<'_>, old: &Value, new: &Value) -> Vec<FieldError> {
    let whole = names::validate_metadata(new, writer.resource.namespaced);
    let prefixes = finalizer_prefixes(writer, new);
    let mut change = of_metadata_change(old, new);
    if whole.is_empty() && prefixes.is_empty() && change.is_empty() {
        return Vec::new();
    }
    let again = |error: &&FieldError| CHECKED_AGAIN.contains(&error.field.as_str());
    change.extend(whole.iter().filter(again).cloned());
    let times = Again::of(writer);
    let common = whole.iter().filter(|error| !NAMES.contains(&error.field.as_str()));
    let mut errors: Vec<FieldError> = common.chain(&change).cloned().collect();
    for found in [vec![&whole; times.whole], vec![&change; times.change]].concat() {
        errors.extend(found.iter().chain(&prefixes).cloned());
    }
    errors
}

/// Refuses a status with mistakes.
pub(super) fn changed_status(writer: &Writer<'_>, old: &Value, new: &Value) -> Result<()> {
    let mut errors = changed_metadata(writer, old, new);
    errors.extend(if writer.resource.is_custom() {
        let mut errors = writer.resource.schema.validate(new);
        errors.extend(scale::mistakes(writer.resource, new, scale::Of::Status));
        errors
    } else {
        writer.resource.rules.validate_status_update(old, new)
    });
    refuse(writer.resource, metadata::text(old, "name"), &errors)
}

fn refuse(resource: &Resource, name: &str, errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(resource.named_kind(name), errors)) }
}

fn of_kind(writer: &Writer<'_>, object: &Value) -> Vec<FieldError> {
    let resource = writer.resource;
    // Only custom resources are held to their schema: built-in kinds have rules instead, which let
    // keys of lists repeat, say.
    if resource.is_custom() {
        let mut errors = resource.schema.validate(object);
        errors.extend(scale::mistakes(resource, object, scale::Of::All));
        errors
    } else {
        Vec::new()
    }
}

/// The finalizers that lack a prefix, where the kind asks for one.
fn finalizer_prefixes(writer: &Writer<'_>, object: &Value) -> Vec<FieldError> {
    let resource = writer.resource;
    let is_plain = || {
        resource.is_custom()
            || PLAIN_FINALIZERS.iter().any(|(group, plural)| resource.is(group, plural))
    };
    let found = names::validate_finalizer_prefixes(object);
    if found.is_empty() || is_plain() { Vec::new() } else { found }
}

fn of_metadata_change(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if metadata::is_deleting(old) {
        let before = metadata::finalizers(old);
        let added: Vec<String> =
            metadata::finalizers(new).into_iter().filter(|f| !before.contains(f)).collect();
        if !added.is_empty() {
            let list: Vec<String> = added.iter().map(|f| format!("{f:?}")).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                list.join(", ")
            );
            errors.push(FieldError::forbidden("metadata.finalizers", &why));
        }
    }
    for field in IMMUTABLE {
        let old = &old["metadata"][field];
        let new = &new["metadata"][field];
        if old != new {
            let path = format!("metadata.{field}");
            errors.push(FieldError::invalid(path, new, "field is immutable"));
        }
    }
    errors
}
