//! Changing what is stored: read, decide, compare-and-swap, again if someone was faster.

use serde_json::Value;
use steersman_store::{Expected, StoreError};

use super::{Tracking, Writer, part, validate};
use crate::allocate;
use crate::crd;
use crate::document::{Stored, encode};
use crate::metadata;
use crate::resource::Place;
use crate::status::{MODIFIED, Result, Status};

/// The subresources that write a part of the object; others are ways to write all of it.
const PARTS: &[&str] = &["approval", "ephemeralcontainers", "finalize", "resize", "status"];

/// Replaces the object at a place by what `decide` makes of it, and gives the result. An object
/// that stays the same is not written; one whose deletion was only waiting for this is removed.
pub(crate) async fn change(
    writer: &Writer<'_>,
    place: Place<'_>,
    mut decide: impl FnMut(&Value) -> Result<Value>,
) -> Result<Stored> {
    let key = writer.resource.key(place);
    loop {
        let entry = writer.server.get(&key).await?;
        let entry = entry.ok_or_else(|| Status::not_found(writer.resource.named(place.name)))?;
        let stored = Stored::from(&entry).refreshed(&writer.resource.schema);
        let old = stored.decode(&writer.api_version)?;
        let mut new = decide(&old)?;
        if new == old {
            return Ok(stored);
        }
        let reservation = allocate::reserve(writer, Some(&old), &mut new).await?;
        let bytes = encode(&new)?;
        if writer.dry_run {
            return Ok(Stored { bytes, revision: entry.modified });
        }
        let value = (!deletion_is_done(writer, &new)).then(|| bytes.clone());
        let expected = Expected::Modified(entry.modified);
        match writer.commit_reserved(place, value, &new, expected, reservation).await {
            Ok(revision) => return Ok(Stored { bytes, revision }),
            Err(StoreError::Conflict { .. }) => tokio::task::yield_now().await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Whether nothing holds a deleted object any more.
pub(super) fn deletion_is_done(writer: &Writer<'_>, object: &Value) -> bool {
    metadata::is_deleting(object)
        && metadata::finalizers(object).is_empty()
        && metadata::number(object, "deletionGracePeriodSeconds").unwrap_or(0) == 0
        && !writer.resource.strategy.holds_deletion(object)
}

/// What becomes of `old` when a client wants `new`: what it may not change is put back, what
/// the server counts is counted, and mistakes are refused.
pub(super) fn prepare(
    writer: &Writer<'_>,
    old: &Value,
    mut new: Value,
    tracking: Tracking,
) -> Result<Value> {
    check_preconditions(writer, old, &new)?;
    restore(old, &mut new);
    let mut new = if PARTS.contains(&writer.subresource) {
        let mut new = part::taken(writer, old, &new);
        count_generation(writer, old, &mut new);
        part::check(writer, old, &new)?;
        new
    } else {
        let mut new = main(writer, old, new);
        count_generation(writer, old, &mut new);
        validate::changed_object(writer, old, &new)?;
        writer.warn(&new, Some(old));
        new
    };
    if tracking == Tracking::Record {
        writer.track(Some(old), &mut new);
    }
    Ok(new)
}

/// Compares resourceVersion and uid, where the client gave them.
pub(super) fn check_preconditions(writer: &Writer<'_>, old: &Value, new: &Value) -> Result<()> {
    let named = writer.resource.named(metadata::text(old, "name"));
    let (is, wants) = (metadata::text(old, "uid"), metadata::text(new, "uid"));
    if !wants.is_empty() && wants != is {
        let why =
            format!("Precondition failed: UID in precondition: {wants}, UID in object meta: {is}");
        return Err(Status::conflict(named, &why));
    }
    let wants = metadata::text(new, "resourceVersion");
    if !wants.is_empty() && wants != metadata::text(old, "resourceVersion") {
        return Err(Status::conflict(named, MODIFIED));
    }
    Ok(())
}

fn main(writer: &Writer<'_>, old: &Value, mut new: Value) -> Value {
    let resource = writer.resource;
    if resource.has_status()
        && let Some(fields) = new.as_object_mut()
    {
        match old.get("status") {
            Some(status) => fields.insert("status".to_owned(), status.clone()),
            None => fields.remove("status"),
        };
    }
    resource.schema.apply_defaults(&mut new);
    resource.strategy.prepare_update(old, &mut new);
    resource.strategy.default(&mut new);
    if crd::is_definition(resource) {
        crd::prepare(writer.server, &mut new, &writer.now);
    }
    new
}

/// Puts back what only the server sets.
fn restore(old: &Value, new: &mut Value) {
    let ours = [
        "resourceVersion",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
    ];
    for field in ours {
        metadata::set(new, field, old["metadata"].get(field).cloned());
    }
    for field in ["uid", "creationTimestamp", "namespace", "name"] {
        if new["metadata"][field].as_str().unwrap_or("").is_empty() {
            metadata::set(new, field, old["metadata"].get(field).cloned());
        }
    }
    metadata::of(new).retain(|_, value| !value.is_null());
}

/// Counts a change of anything but metadata and status.
fn count_generation(writer: &Writer<'_>, old: &Value, new: &mut Value) {
    let counts = |field: &str| match field {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !writer.resource.has_status(),
        _ => true,
    };
    let counted = writer.resource.has_generation
        && (differ(old, new, counts) || writer.resource.strategy.is_new_generation(old, new));
    if counted {
        let generation = metadata::number(old, "generation").unwrap_or(0) + 1;
        metadata::set(new, "generation", Some(generation.into()));
    }
}

/// Whether two objects differ in a field that counts; null is absent.
fn differ(one: &Value, other: &Value, counts: impl Fn(&str) -> bool) -> bool {
    let missing = |from: &Value, to: &Value| {
        let mut fields = from.as_object().into_iter().flatten();
        fields.any(|(name, value)| counts(name) && *value != to[name.as_str()])
    };
    missing(one, other) || missing(other, one)
}
