//! Refusing objects with mistakes: in metadata, by the kind's rules, by its schema.

use std::collections::HashSet;

use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::resource::Resource;
use steersman_rules::schema::Mistakes;
use steersman_rules::{metadata, names};

use super::{Writer, scale};
use crate::status::{Result, Status};

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
const CHECKED_AGAIN: [&str; 4] = [
    "metadata.labels",
    "metadata.annotations",
    "metadata.ownerReferences",
    "metadata.managedFields",
];

/// Refuses a new object with mistakes.
pub(super) async fn new_object(writer: &Writer<'_>, object: &Value) -> Result<()> {
    let resource = writer.resource;
    let name = metadata::text(object, "name");
    let mut errors = names::validate_metadata(object, resource.namespaced);
    errors.extend(finalizer_prefixes(writer, object));
    if let Some(effects) = writer.effects() {
        errors.extend(effects.validate(writer.seen(), None, object).await?);
    }
    errors.extend(resource.rules.validate_create(object));
    errors.extend(of_kind(writer, object, None));
    if errors.is_empty() {
        errors = unauthorized(writer, None, object).await?;
    }
    refuse(resource, name, &errors)
}

/// Refuses a changed object with mistakes.
pub(super) async fn changed_object(writer: &Writer<'_>, old: &Value, new: &Value) -> Result<()> {
    let resource = writer.resource;
    let mut errors = changed_metadata(writer, old, new);
    let mut found = resource.rules.validate_update(old, new);
    if !found.is_empty() && !resource.is_custom() {
        // What is stored may be from a time when less was filled in, which is no change of today's.
        let mut filled = old.clone();
        resource.rules.fill_in(&mut filled);
        if filled != *old {
            found = resource.rules.validate_update(&filled, new);
        }
    }
    if !found.is_empty() && resource.looks_twice() {
        errors.extend(resource.rules.validate_existing(new));
    }
    errors.extend(found);
    errors.extend(of_kind(writer, new, Some(old)));
    if errors.is_empty() {
        errors = unauthorized(writer, Some(old), new).await?;
    }
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
    let again =
        |error: &&FieldError| CHECKED_AGAIN.iter().any(|part| error.field.starts_with(part));
    change.extend(whole.iter().filter(again).cloned());
    let times = writer.resource.looks_again(writer.subresource);
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
        let mut errors = by_schema(writer, new, Some(old));
        errors.extend(scale::mistakes(writer.resource, new, scale::Of::Status));
        errors
    } else {
        writer.resource.rules.validate_status_update(old, new)
    });
    refuse(writer.resource, metadata::text(old, "name"), &errors)
}

/// What of an object without mistakes its writer may not say.
async fn unauthorized(
    writer: &Writer<'_>,
    old: Option<&Value>,
    new: &Value,
) -> Result<Vec<FieldError>> {
    match writer.effects() {
        Some(effects) => effects.authorize(writer.seen(), old, new).await,
        None => Ok(Vec::new()),
    }
}

fn refuse(resource: &Resource, name: &str, errors: &[FieldError]) -> Result<()> {
    if errors.is_empty() { Ok(()) } else { Err(Status::invalid(resource.named_kind(name), errors)) }
}

fn of_kind(writer: &Writer<'_>, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let resource = writer.resource;
    // Only custom resources are held to their schema: built-in kinds have rules instead, which let
    // keys of lists repeat, say.
    if resource.is_custom() {
        let mut errors = by_schema(writer, object, old);
        errors.extend(scale::mistakes(resource, object, scale::Of::All));
        errors
    } else {
        Vec::new()
    }
}

/// The mistakes by the schema and the rules of a definition. What was wrong before and has not
/// changed is a warning.
fn by_schema(writer: &Writer<'_>, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let schema = &writer.resource.schema;
    let Mistakes { errors, warnings } = match old {
        Some(old) if writer.subresource == "status" => schema.validate_status_change(new, old),
        old => schema.validate_change(new, old),
    };
    if let Some(call) = writer.call {
        warnings.into_iter().for_each(|warning| call.warn(warning));
    }
    errors
}

/// The finalizers that lack a prefix, where the kind asks for one.
fn finalizer_prefixes(writer: &Writer<'_>, object: &Value) -> Vec<FieldError> {
    let found = names::validate_finalizer_prefixes(object);
    if found.is_empty() || writer.resource.has_plain_finalizers() { Vec::new() } else { found }
}

fn of_metadata_change(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if metadata::is_deleting(old) {
        let before: HashSet<String> = metadata::finalizers(old).into_iter().collect();
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
