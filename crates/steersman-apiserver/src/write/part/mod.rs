//! Subresources through which only a part of an object is written: what of the new document
//! counts, and which changes of it are allowed.
//!
//! [`super::prepare::prepare`] asks here for every path but the object's own. Each rule with more
//! to it than "this part and nothing else" has a file.

mod ephemeral_containers;
mod resize;

use std::mem;

use serde_json::{Map, Value, json};
use steersman_rules::field::FieldError;
use steersman_rules::metadata;
use steersman_rules::names;

use super::{Writer, validate};
use crate::document::items;
use crate::status::{Result, Status};

/// The old object with the part of the new one that a subresource writes.
pub(super) fn taken(writer: &Writer<'_>, old: &Value, mut new: Value) -> Value {
    let said = mem::take(metadata::of(&mut new));
    let mut result = match writer.subresource {
        "finalize" => with(old, new, "spec"),
        "ephemeralcontainers" => ephemeral_containers::taken(old, &new),
        "resize" => resize::taken(old, &new),
        "approval" => decided(old, &new),
        _ => with(old, new, "status"),
    };
    let written = writer.resource.subresource(writer.subresource);
    let written = written.map_or(&[][..], |subresource| subresource.metadata);
    let takes_uid = !keeps_uid(writer);
    *metadata::of(&mut result) = restored(&old["metadata"], said, |field| {
        written.contains(&field) || field == "managedFields" || field == "uid" && takes_uid
    });
    if writer.subresource == "status" {
        writer.resource.rules.prepare_status_update(old, &mut result);
    }
    if matches!(writer.subresource, "ephemeralcontainers" | "finalize" | "resize") {
        writer.resource.rules.fill_in(&mut result);
    }
    if let Some(effects) = writer.effects() {
        effects.prepare_part(writer.seen(), old, &mut result);
    }
    writer.resource.schema.settle(&mut result);
    result
}

/// Whether another uid in a status is passed over. Most kinds refuse it.
fn keeps_uid(writer: &Writer<'_>) -> bool {
    writer.subresource == "status"
        && (writer.resource.is_custom() || writer.resource.group == "flowcontrol.apiserver.k8s.io")
}

/// Refuses a change of a part that is not allowed.
pub(super) async fn check(writer: &Writer<'_>, old: &Value, new: &Value) -> Result<()> {
    let rules = writer.resource.rules;
    let mut errors = match writer.subresource {
        "ephemeralcontainers" | "resize" => rules.validate_existing(new),
        _ => Vec::new(),
    };
    errors.extend(match writer.subresource {
        "finalize" => finalizers(new),
        "ephemeralcontainers" => ephemeral_containers::mistakes(old, new),
        "resize" => resize::mistakes(rules, old, new),
        _ => match writer.effects() {
            Some(effects) => effects.validate(writer.seen(), Some(old), new).await?,
            None => Vec::new(),
        },
    });
    if errors.is_empty() {
        return validate::changed_status(writer, old, new);
    }
    errors.splice(0..0, validate::changed_metadata(writer, old, new));
    let name = metadata::text(old, "name");
    Err(Status::invalid(writer.resource.named_kind(name), &errors))
}

/// Tells the client what is valid in the status that it writes, but hardly meant.
pub(super) fn warn(writer: &Writer<'_>, new: &Value) {
    if let Some(call) = writer.call.filter(|_| writer.subresource == "status") {
        let warnings = writer.resource.rules.status_warnings(new);
        warnings.into_iter().for_each(|warning| call.warn(warning));
    }
}

/// The old signing request with the conditions of the new: that is what is decided.
fn decided(old: &Value, new: &Value) -> Value {
    let mut result = old.clone();
    if !result["status"].is_object() {
        result["status"] = json!({});
    }
    result["status"]["conditions"] = items(&new["status"]["conditions"]).into();
    result
}

/// The old object with one part of the new, but for the metadata.
fn with(old: &Value, new: Value, part: &str) -> Value {
    let Value::Object(new) = new else { return old.clone() };
    Value::Object(restored(old, new, |field| field == part || field == "metadata"))
}

/// The fields as they were, but for those that are `taken` from the new. Most of the others are the
/// same in both, and to see that costs less than to copy them.
fn restored(
    old: &Value,
    mut new: Map<String, Value>,
    taken: impl Fn(&str) -> bool,
) -> Map<String, Value> {
    new.retain(|field, _| taken(field) || old.get(field).is_some());
    for (field, value) in old.as_object().into_iter().flatten() {
        if !taken(field) && new.get(field) != Some(value) {
            new.insert(field.clone(), value.clone());
        }
    }
    new
}

fn finalizers(namespace: &Value) -> Vec<FieldError> {
    let finalizers = items(&namespace["spec"]["finalizers"]).iter().enumerate();
    let mistakes = finalizers.flat_map(|(i, finalizer)| {
        let name = finalizer.as_str().unwrap_or_default();
        names::finalizer(&format!("spec.finalizers[{i}]"), name)
    });
    mistakes.collect()
}
