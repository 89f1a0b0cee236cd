//! DELETE: at once where nothing holds the object, else by marking it.
//!
//! Finalizers hold it, a grace period holds it (pods), and a kind may hold it (namespaces).
//! While it is held it carries a deletionTimestamp; who removes the last hold removes it.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use steersman_store::{Expected, StoreError};

use super::{Writer, change, decode, success};
use crate::call::Call;
use crate::crd;
use crate::document::{Stored, encode};
use crate::field::FieldError;
use crate::metadata;
use crate::negotiate;
use crate::reply::Reply;
use crate::resource::Place;
use crate::schema::Schema;
use crate::status::{Named, Result, Status};

/// How an object is to be deleted.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    /// How long it may take to end.
    pub(crate) grace: Option<i64>,
    /// What happens to the objects it owns.
    pub(crate) propagation: Option<Propagation>,
    /// The uid it must have.
    pub(crate) uid: Option<String>,
    /// The resourceVersion it must have.
    pub(crate) resource_version: Option<String>,
    /// Whether to do everything but the deletion.
    pub(crate) dry_run: bool,
    /// Whether the old option was given that some clients want acknowledged with 202.
    pub(crate) accepted: bool,
}

/// What happens to the objects that a deleted one owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    /// They lose their owner.
    Orphan,
    /// They are deleted some time later.
    Background,
    /// They are deleted first.
    Foreground,
}

/// What became of a deleted object.
pub(crate) enum Deleted {
    /// It is held, and marked.
    Marked(Stored),
    /// It is gone; this was it.
    Gone(Value),
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Deletes the object of the path.
pub(crate) async fn delete(call: &Call) -> Result<Reply> {
    let options = DeleteOptions::of(call)?;
    let deleted = delete_object(&call.writer()?, call.place(), &options).await?;
    Ok(match deleted {
        Deleted::Marked(object) => {
            let code = if options.accepted { StatusCode::ACCEPTED } else { StatusCode::OK };
            Reply::Object { code, object }
        }
        Deleted::Gone(object) => {
            let value = success(200, Some(details(call, &object)));
            Reply::Document { code: StatusCode::OK, value }
        }
    })
}

fn details(call: &Call, object: &Value) -> Value {
    let resource = &call.resource;
    let mut details = json!({
        "name": metadata::text(object, "name"), "kind": resource.plural,
        "uid": metadata::text(object, "uid"),
    });
    if !resource.group.is_empty() {
        details["group"] = json!(resource.group);
    }
    details
}

/// Deletes one object, or marks it.
pub(crate) async fn delete_object(
    writer: &Writer<'_>,
    place: Place<'_>,
    options: &DeleteOptions,
) -> Result<Deleted> {
    let key = writer.resource.key(place);
    loop {
        let entry = writer.server.get(&key).await?;
        let entry = entry.ok_or_else(|| Status::not_found(writer.resource.named(place.name)))?;
        let stored = Stored::from(&entry);
        let old = stored.decode(&writer.api_version)?;
        check_preconditions(writer, &old, options)?;
        if let Some(why) = writer.resource.strategy.refuses_deletion(&old) {
            return Err(Status::forbidden(writer.resource.named(place.name), why, Vec::new()));
        }
        let marked = mark(writer, &old, options);
        let gone = change::deletion_is_done(writer, &marked);
        if !gone && marked == old {
            return Ok(Deleted::Marked(stored));
        }
        let bytes = encode(&marked)?;
        if options.dry_run || writer.dry_run {
            let stored = Stored { bytes, revision: entry.modified };
            return Ok(if gone { Deleted::Gone(old) } else { Deleted::Marked(stored) });
        }
        let value = (!gone).then(|| bytes.clone());
        match writer.commit(place, value, &marked, Expected::Modified(entry.modified)).await {
            Ok(_) if gone => return Ok(Deleted::Gone(old)),
            Ok(revision) => return Ok(Deleted::Marked(Stored { bytes, revision })),
            Err(StoreError::Conflict { .. }) => tokio::task::yield_now().await,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The object as it is while its deletion is held.
fn mark(writer: &Writer<'_>, old: &Value, options: &DeleteOptions) -> Value {
    let mut new = old.clone();
    metadata::set_finalizers(&mut new, finalizers(old, options.propagation));
    let requested = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
    let grace = writer.resource.strategy.grace_period(old, requested).max(0);
    let now = (writer.server.clock)();
    if metadata::is_deleting(old) {
        let before = metadata::number(old, "deletionGracePeriodSeconds").unwrap_or(0);
        if grace < before {
            set_due(&mut new, sooner(old, now, before, grace), grace);
        }
        return new;
    }
    set_due(&mut new, after(now, grace), grace);
    if let Some(generation) = metadata::number(old, "generation").filter(|g| *g > 0) {
        metadata::set(&mut new, "generation", Some((generation + 1).into()));
    }
    writer.resource.strategy.begin_deletion(&mut new);
    if crd::is_definition(writer.resource) {
        crd::begin_deletion(&mut new);
    }
    new
}

/// So many seconds later, or the last moment that can be written.
fn after(now: Timestamp, seconds: i64) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// When an object is due whose grace becomes shorter: counted from when its deletion began, or
/// from now where that cannot be told any more.
fn sooner(old: &Value, now: Timestamp, before: i64, grace: i64) -> Timestamp {
    let due: Option<Timestamp> = metadata::text(old, "deletionTimestamp").parse().ok();
    let known = due.filter(|due| due.as_second() < Timestamp::MAX.as_second());
    let earlier = SignedDuration::from_secs(before - grace);
    known.and_then(|due| due.checked_sub(earlier).ok()).unwrap_or_else(|| after(now, grace))
}

fn set_due(object: &mut Value, due: Timestamp, grace: i64) {
    metadata::set(object, "deletionTimestamp", Some(metadata::time(due).into()));
    metadata::set(object, "deletionGracePeriodSeconds", Some(grace.into()));
}

/// The finalizers that stand for what happens to owned objects; without a wish they stay.
fn finalizers(old: &Value, propagation: Option<Propagation>) -> Vec<String> {
    let mut finalizers = metadata::finalizers(old);
    let Some(propagation) = propagation else { return finalizers };
    finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
    match propagation {
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
        Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
        Propagation::Background => {}
    }
    finalizers
}

fn check_preconditions(writer: &Writer<'_>, old: &Value, options: &DeleteOptions) -> Result<()> {
    let named = writer.resource.named(metadata::text(old, "name"));
    let conditions = [
        ("UID", &options.uid, "uid"),
        ("ResourceVersion", &options.resource_version, "resourceVersion"),
    ];
    for (word, wanted, field) in conditions {
        let is = metadata::text(old, field);
        if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != is) {
            let why = format!(
                "Precondition failed: {word} in precondition: {wanted}, {word} in object meta: {is}"
            );
            return Err(Status::conflict(named, &why));
        }
    }
    Ok(())
}

impl DeleteOptions {
    /// Reads the body, or the query where there is no body.
    pub(crate) fn of(call: &Call) -> Result<Self> {
        let mut options = if call.body.is_empty() {
            Self::of_query(call)?
        } else {
            let mut document = negotiate::decode(call.content_type(), &call.body)?;
            let schema = Schema::builtin_type("meta.v1.DeleteOptions");
            decode::part(schema, "DeleteOptions", &mut document)?;
            Self::of_document(&document)?
        };
        options.dry_run |= call.info.dry_run()?;
        Ok(options)
    }

    fn of_query(call: &Call) -> Result<Self> {
        let query = &call.info.query;
        let mut document = json!({});
        if let Some(grace) = query.number("gracePeriodSeconds")? {
            document["gracePeriodSeconds"] = grace.into();
        }
        if let Some(policy) = query.text("propagationPolicy") {
            document["propagationPolicy"] = policy.into();
        }
        if let Some(orphan) = query.flag("orphanDependents") {
            document["orphanDependents"] = orphan.into();
        }
        Self::of_document(&document)
    }

    /// Reads a `DeleteOptions` document.
    pub(crate) fn of_document(document: &Value) -> Result<Self> {
        let orphan = document["orphanDependents"].as_bool();
        let policy = document["propagationPolicy"].as_str();
        let invalid = |error: FieldError| {
            let what = Named { group: "meta.k8s.io", resource: "DeleteOptions", name: "" };
            Err(Status::invalid(what, &[error]))
        };
        if let (Some(_), Some(policy)) = (orphan, policy) {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            return invalid(FieldError::invalid("propagationPolicy", &policy.into(), why));
        }
        let propagation = match (policy, orphan) {
            (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
            (Some("Background"), _) | (None, Some(false)) => Some(Propagation::Background),
            (Some("Foreground"), _) => Some(Propagation::Foreground),
            (None, None) => None,
            (Some(other), _) => {
                let known = ["Background", "Foreground", "Orphan"];
                let error = FieldError::not_supported("propagationPolicy", &other.into(), &known);
                return invalid(error);
            }
        };
        let text = |value: &Value| value.as_str().filter(|s| !s.is_empty()).map(str::to_owned);
        let dry_run = document["dryRun"].as_array().is_some_and(|list| !list.is_empty());
        Ok(Self {
            grace: document["gracePeriodSeconds"].as_i64(),
            propagation,
            uid: text(&document["preconditions"]["uid"]),
            resource_version: text(&document["preconditions"]["resourceVersion"]),
            dry_run,
            accepted: orphan == Some(false),
        })
    }
}
