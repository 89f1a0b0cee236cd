//! What an object becomes when a client wants it changed, before anybody has a say in it.

mod amounts;

use serde_json::Value;
use steersman_rules::field::FieldError;
use steersman_rules::metadata;
use steersman_rules::resource::{Place, Resource};
use steersman_rules::strconv;

use super::{Tracking, Writer, part};
use crate::status::{MODIFIED, Result, Status};

pub(super) use amounts::as_written_in;

/// The subresources that write a part of the object; others are ways to write all of it.
pub(super) const PARTS: &[&str] =
    &["approval", "ephemeralcontainers", "finalize", "resize", "status"];

/// The parts whose writers own whatever they send, although only the part of it is taken: Kubernetes
/// does not say of these what they reset.
pub(crate) const OWNED_AS_SENT: &[&str] = &["ephemeralcontainers", "resize"];

/// What becomes of `old` when a client wants `new`: what it may not change is put back, what
/// the server counts is counted. [`write`](super::change::write()) refuses the mistakes.
pub(crate) fn prepare(
    writer: &Writer<'_>,
    old: &Value,
    new: Value,
    tracking: Tracking,
) -> Result<Value> {
    check_version(writer, old, &new)?;
    let tracks = tracking == Tracking::Record;
    if tracks && OWNED_AS_SENT.contains(&writer.subresource) {
        let mut sent = new;
        restore(old, &mut sent);
        writer.track(Some(old), &mut sent);
        return shape(writer, old, sent);
    }
    let mut new = shape(writer, old, new)?;
    if tracks {
        writer.track(Some(old), &mut new);
    }
    Ok(new)
}

pub(super) fn shape(writer: &Writer<'_>, old: &Value, mut new: Value) -> Result<Value> {
    restore(old, &mut new);
    // It is never stored; a dry run shows what was not.
    if !writer.dry_run {
        metadata::set(&mut new, "selfLink", None);
    }
    let mut new = if PARTS.contains(&writer.subresource) {
        part::taken(writer, old, new)
    } else {
        main(writer, old, new)?
    };
    count_generation(writer, old, &mut new);
    Ok(new)
}

/// Refuses a change that was decided on another version than the one there is. Zero stands for
/// none, which some kinds do not take.
pub(crate) fn check_version(writer: &Writer<'_>, old: &Value, new: &Value) -> Result<()> {
    let named = writer.resource.named(metadata::text(old, "name"));
    match resource_version(new)? {
        0 if writer.resource.unconditional_update => Ok(()),
        0 => {
            let why = "must be specified for an update";
            let error = FieldError::invalid("metadata.resourceVersion", &0.into(), why);
            Err(Status::invalid(named, &[error]))
        }
        wanted if Ok(wanted) != resource_version(old) => Err(Status::conflict(named, MODIFIED)),
        _ => Ok(()),
    }
}

/// The version that a document says it is of; zero where it says nothing.
pub(crate) fn resource_version(object: &Value) -> Result<u64> {
    match metadata::text(object, "resourceVersion") {
        "" => Ok(0),
        text => strconv::parse_uint(text).map_err(|error| Status::failure(error.to_string())),
    }
}

/// Refuses a change of another object than the one at a place, which has the uid `is`.
pub(crate) fn check_uid(
    writer: &Writer<'_>,
    place: Place<'_>,
    is: &str,
    wanted: &Value,
) -> Result<()> {
    match metadata::text(wanted, "uid") {
        "" => Ok(()),
        wants if wants == is => Ok(()),
        wants => Err(unmet(writer, place, "UID", wants, is)),
    }
}

/// The key of an object as errors show it: without what all keys begin with.
pub(crate) fn shown_key(resource: &Resource, place: Place<'_>) -> String {
    let key = resource.key(place);
    key.strip_prefix("/registry").unwrap_or(&key).to_owned()
}

/// A precondition that does not hold, in the words of the store that Kubernetes has.
pub(crate) fn unmet(
    writer: &Writer<'_>,
    place: Place<'_>,
    what: &str,
    wants: &str,
    is: &str,
) -> Status {
    let key = shown_key(writer.resource, place);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: {what} in precondition: {wants}, \
         {what} in object meta: {is}"
    );
    Status::conflict(writer.resource.named(place.name), &why)
}

fn main(writer: &Writer<'_>, old: &Value, mut new: Value) -> Result<Value> {
    let resource = writer.resource;
    if resource.has_status()
        && let Some(fields) = new.as_object_mut()
    {
        match old.get("status") {
            Some(status) => fields.insert("status".to_owned(), status.clone()),
            None => fields.remove("status"),
        };
    }
    resource.schema.apply_defaults(&mut new)?;
    resource.rules.prepare_update(&as_written_in(writer, old, &new), &mut new);
    resource.rules.fill_in(&mut new);
    if let Some(effects) = writer.effects() {
        effects.prepare(writer.seen(), Some(old), &mut new);
    }
    Ok(new)
}

/// Puts back what only the server sets.
fn restore(old: &Value, new: &mut Value) {
    for field in ["resourceVersion", "creationTimestamp", "generation"] {
        metadata::set(new, field, old["metadata"].get(field).cloned());
    }
    // What is being deleted stays so; that it were to be, an update cannot say.
    if let due @ Some(_) = old["metadata"].get("deletionTimestamp") {
        metadata::set(new, "deletionTimestamp", due.cloned());
    }
    for field in ["uid", "namespace", "name", "deletionGracePeriodSeconds"] {
        if is_empty(&new["metadata"][field]) {
            metadata::set(new, field, old["metadata"].get(field).cloned());
        }
    }
    metadata::of(new).retain(|_, value| !value.is_null());
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

/// Counts a change of anything but metadata and status; another way to write the same is none.
fn count_generation(writer: &Writer<'_>, old: &Value, new: &mut Value) {
    let counts = |field: &str| match field {
        "metadata" | "apiVersion" | "kind" => false,
        "status" => !writer.resource.has_status(),
        _ => true,
    };
    let counted = writer.resource.has_generation
        && (differ(old, new, counts) && differ(&as_written_in(writer, old, new), new, counts)
            || writer.subresource != "status" && writer.resource.rules.is_new_generation(old, new));
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
