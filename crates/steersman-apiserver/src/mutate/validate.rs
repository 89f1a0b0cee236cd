//! Refusing objects with mistakes: in metadata, by the kind's rules, by its schema.

use serde_json::Value;

use super::{Writer, scale};
use crate::field::FieldError;
use crate::resource::Resource;
use crate::status::{Result, Status};
use crate::{crd, metadata, names};

/// The kinds whose finalizers need no prefix, because nobody ever asked it of them.
const PLAIN_FINALIZERS: [(&str, &str); 11] = [
    ("", "events"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
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

/// Refuses a new object with mistakes.
pub(super) fn new_object(writer: &Writer<'_>, object: &Value) -> Result<()> {
    let resource = writer.resource;
    let name = metadata::text(object, "name");
    let mut errors = names::validate_metadata(object, resource.namespaced);
    errors.extend(resource.strategy.validate_create(object));
    errors.extend(of_kind(writer, object));
    refuse(resource, name, &errors)
}

/// Refuses a changed object with mistakes.
pub(super) fn changed_object(writer: &Writer<'_>, old: &Value, new: &Value) -> Result<()> {
    let resource = writer.resource;
    let mut errors = changed_metadata(writer, old, new);
    errors.extend(resource.strategy.validate_update(old, new));
    errors.extend(of_kind(writer, new));
    refuse(resource, metadata::text(old, "name"), &errors)
}

/// The mistakes in the metadata of a changed object, whichever path it is written through.
pub(super) fn changed_metadata(writer: &Writer<'_>, old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = names::validate_metadata(new, writer.resource.namespaced);
    errors.extend(of_metadata_change(old, new));
    errors
}

/// Refuses a status with mistakes.
pub(super) fn changed_status(writer: &Writer<'_>, old: &Value, new: &Value) -> Result<()> {
    let mut errors = changed_metadata(writer, old, new);
    errors.extend(if is_custom(writer) {
        let mut errors = writer.resource.schema.validate(new);
        errors.extend(scale::mistakes(writer.resource, new, scale::Of::Status));
        errors
    } else {
        writer.resource.strategy.validate_status_update(old, new)
    });
    refuse(writer.resource, metadata::text(old, "name"), &errors)
}

fn refuse(resource: &Resource, name: &str, errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(resource.named_kind(name), errors)) }
}

fn of_kind(writer: &Writer<'_>, object: &Value) -> Vec<FieldError> {
    let resource = writer.resource;
    if is_custom(writer) {
        let mut errors = resource.schema.validate(object);
        errors.extend(scale::mistakes(resource, object, scale::Of::All));
        errors
    } else if crd::is_definition(resource) {
        crd::validate(object)
    } else if PLAIN_FINALIZERS.iter().any(|(group, plural)| resource.is(group, plural)) {
        Vec::new()
    } else {
        names::validate_finalizer_prefixes(object)
    }
}

/// Only custom resources are held to their schema: built-in kinds have rules instead, which let
/// keys of lists repeat, say.
fn is_custom(writer: &Writer<'_>) -> bool {
    writer.server.registry.table().is_custom(writer.resource)
}

fn of_metadata_change(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in IMMUTABLE {
        let (old, new) = (&old["metadata"][field], &new["metadata"][field]);
        if old != new {
            let path = format!("metadata.{field}");
            errors.push(FieldError::invalid(path, new, "field is immutable"));
        }
    }
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
    errors
}
