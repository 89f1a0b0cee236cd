//! Deleting: at once where nothing holds the object, else by marking it.
//!
//! Finalizers hold it, a grace period holds it (pods), and a kind may hold it (namespaces).
//! While it is held it carries a deletionTimestamp; who removes the last hold removes it. What
//! the client wishes is in [`DeleteOptions`].

use std::borrow::Cow;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::{Place, Resource, Verb};
use steersman_store::{Entry, Expected, Revision, StoreError};

use super::delete_options::{DeleteOptions, Propagation};
use super::swap::{Attempt, Swap, swap};
use super::{Held, Writer, change};
use crate::admission::Operation;
use crate::conversion;
use crate::document::{Stored, encode};
use crate::status::{Result, Status};

/// What became of a deleted object.
pub(crate) enum Deleted {
    /// It is held, and marked.
    Marked(Stored),
    /// It is gone; this was it.
    Gone(Stored),
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The kinds that leave their dependents behind unless told otherwise, as they always did.
const ORPHANING: &[(&str, &str)] = &[("", "replicationcontrollers"), ("batch", "jobs")];

/// The kinds that end what is in them, and look at preconditions on their own before they do.
const KEEPERS: &[(&str, &str)] =
    &[("", "namespaces"), ("apiextensions.k8s.io", "customresourcedefinitions")];

/// Deletes one object, or marks it.
pub(crate) async fn delete_object(
    writer: &Writer<'_>,
    place: Place<'_>,
    options: &DeleteOptions,
) -> Result<Deleted> {
    let mut marked = None;
    match swap(writer, place, Deletion { writer, place, options, marked: &mut marked }).await {
        // Who heard that it ends, such as its node, was quicker to remove it.
        Err(status) if status.code == 404 && marked.is_some() => {
            marked.map(Deleted::Gone).ok_or(status)
        }
        done => done,
    }
}

/// A deletion on its way.
struct Deletion<'a> {
    writer: &'a Writer<'a>,
    place: Place<'a>,
    options: &'a DeleteOptions,
    /// What it was marked as before its removal.
    marked: &'a mut Option<Stored>,
}

impl Swap for Deletion<'_> {
    type Done = Deleted;

    fn is_asked(&self) -> bool {
        self.writer.hooks.is_some()
    }

    async fn attempt(&mut self, entry: &Entry) -> Result<Attempt<Deleted>> {
        let Self { writer, place, options, .. } = *self;
        let stored = Stored::from(entry);
        let old = stored.decode(&version(writer, &stored))?;
        let seen = seen(writer, &stored, &old).await?;
        check_preconditions(writer, &old, options)?;
        if let Some(request) = writer.asks(Operation::Delete, named(writer, place)) {
            request.with_options(options.to_document()).delete(&seen).await?;
        }
        let marked = Arc::new(mark(writer, &old, options));
        let gone = change::deletion_is_done(writer, &marked);
        if !gone && *marked == old {
            return Ok(Attempt::Unchanged(Deleted::Marked(stored)));
        }
        let bytes = encode(&marked)?;
        // Whoever gets the last version of an object with a grace period sees that it ended.
        let last = if ends_gracefully(writer.resource) { bytes.clone() } else { stored.bytes };
        let deleted = |revision: Revision| match gone {
            true => Deleted::Gone(Stored { bytes: last.clone(), revision }),
            false => Deleted::Marked(Stored { bytes: bytes.clone(), revision }),
        };
        if writer.dry_run {
            return Ok(Attempt::Written(deleted(entry.modified)));
        }
        let mut expected = Expected::Modified(entry.modified);
        // Whoever watches a pod hears that it ends before it is gone, however short its grace is.
        if gone && ends_gracefully(writer.resource) && *marked != old {
            let held = Held::default();
            match writer.commit(place, Some(bytes.clone()), &marked, expected, held).await {
                Ok(revision) => {
                    expected = Expected::Modified(revision);
                    *self.marked = Some(Stored { bytes: last.clone(), revision });
                }
                Err(StoreError::Conflict { .. }) => return Ok(Attempt::Conflict),
                Err(error) => return Ok(Attempt::Failed(error.into())),
            }
        }
        let value = (!gone).then(|| bytes.clone());
        let mut held = Held::default();
        if let Some(effects) = writer.effects() {
            held.turn = effects.turn(writer.seen()).await;
        }
        Ok(match writer.commit(place, value, &marked, expected, held).await {
            Ok(revision) => Attempt::Written(deleted(revision)),
            Err(StoreError::Conflict { .. }) => Attempt::Conflict,
            Err(error) => Attempt::Failed(error.into()),
        })
    }
}

/// The place as those see it who have a say: whoever deletes a collection has named nothing in it.
fn named<'a>(writer: &Writer<'_>, place: Place<'a>) -> Place<'a> {
    let collection = writer.call.is_some_and(|call| call.info.verb == Verb::DeleteCollection);
    if collection { Place { name: "", ..place } } else { place }
}

/// Whether a kind knows grace periods.
fn ends_gracefully(resource: &Resource) -> bool {
    resource.is("", "pods")
}

/// The version to delete an object in. Deletion concerns metadata alone, so a custom resource
/// stays in the version in which it is stored.
fn version(writer: &Writer<'_>, stored: &Stored) -> String {
    let custom = writer.resource.is_custom();
    let own = stored.api_version().filter(|_| custom);
    own.unwrap_or(&writer.api_version).to_owned()
}

/// The object as a client that deletes it, and whoever is asked about that, sees it: in the version
/// of the request. As in Kubernetes, what cannot be read in that version is not deleted in it. The
/// server itself also deletes what nobody converts, so that a definition can always go.
async fn seen<'a>(writer: &Writer<'_>, stored: &Stored, old: &'a Value) -> Result<Cow<'a, Value>> {
    if old["apiVersion"] == writer.api_version || writer.call.is_none() {
        return Ok(Cow::Borrowed(old));
    }
    let stored = conversion::read(writer.server, writer.resource, stored.clone()).await?;
    stored.decode(&writer.api_version).map(Cow::Owned)
}

/// The object as it is while its deletion is held.
fn mark(writer: &Writer<'_>, old: &Value, options: &DeleteOptions) -> Value {
    let requested = options.grace.map(|grace| if grace < 0 { 1 } else { grace });
    let now = (writer.server.clock)();
    let mut new = old.clone();
    if metadata::is_deleting(old) {
        let stated = metadata::number(old, "deletionGracePeriodSeconds");
        let before = stated.unwrap_or(0);
        let shorter = requested.filter(|grace| *grace < before);
        // While a grace period runs, only a shorter one changes anything.
        if before == 0 || shorter.is_some() {
            metadata::set_finalizers(&mut new, finalizers(writer.resource, old, options));
        }
        if let Some(grace) = shorter {
            let (due, grace) = sooner(old, now, before, grace);
            set_due(&mut new, due, Some(grace));
        } else if stated.is_none() && !writer.resource.is("", "namespaces") {
            // A definition is marked without one, which whoever deletes it again makes up for.
            metadata::set(&mut new, "deletionGracePeriodSeconds", Some(0.into()));
        }
        return new;
    }
    metadata::set_finalizers(&mut new, finalizers(writer.resource, old, options));
    let grace = writer.resource.rules.grace_period(old, requested).max(0);
    // A namespace ends when it is finalized, however long that takes.
    let stated = (!writer.resource.is("", "namespaces")).then_some(grace);
    set_due(&mut new, after(now, grace), stated);
    if let Some(generation) = metadata::number(old, "generation").filter(|g| *g > 0) {
        metadata::set(&mut new, "generation", Some((generation + 1).into()));
    }
    writer.resource.rules.begin_deletion(&mut new);
    if let Some(effects) = writer.effects() {
        effects.begin_deletion(old, &mut new);
    }
    new
}

/// So many seconds later, or the last moment that can be written.
fn after(now: Timestamp, seconds: i64) -> Timestamp {
    now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// When an object is due whose grace becomes shorter, and the grace it then has: counted from
/// when its deletion began, or from now where that cannot be told any more. What would be due
/// in the past is due now, but still ends gracefully if that was asked for.
fn sooner(old: &Value, now: Timestamp, before: i64, grace: i64) -> (Timestamp, i64) {
    let due: Option<Timestamp> = metadata::text(old, "deletionTimestamp").parse().ok();
    let known = due.filter(|due| due.as_second() < Timestamp::MAX.as_second());
    let earlier = SignedDuration::from_secs(before - grace);
    let due = known.and_then(|due| due.checked_sub(earlier).ok());
    match due.unwrap_or_else(|| after(now, grace)) {
        past if past.as_second() < now.as_second() => (now, grace.min(1)),
        due => (due, grace),
    }
}

fn set_due(object: &mut Value, due: Timestamp, grace: Option<i64>) {
    metadata::set(object, "deletionTimestamp", Some(metadata::time(due).into()));
    metadata::set(object, "deletionGracePeriodSeconds", grace.map(Value::from));
}

/// The finalizers that stand for what happens to owned objects: as the client wishes, else as
/// the object already says, else as its kind always did.
fn finalizers(resource: &Resource, old: &Value, options: &DeleteOptions) -> Vec<String> {
    let mut finalizers = metadata::finalizers(old);
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    let said = match (has(ORPHAN), has(FOREGROUND)) {
        (true, _) => Some(Propagation::Orphan),
        (_, true) => Some(Propagation::Foreground),
        _ => None,
    };
    let orphaning = ORPHANING.iter().any(|(group, plural)| resource.is(group, plural));
    let default = if orphaning { Propagation::Orphan } else { Propagation::Background };
    let policy = match options.propagation.or(said) {
        // Events own nothing, and the garbage collector does not look at them.
        _ if resource.plural == "events" => Propagation::Background,
        // Namespaces, and nothing else, take the old option for a wish that dependents go first.
        _ if options.spares_none && resource.is("", "namespaces") => Propagation::Foreground,
        wish => wish.unwrap_or(default),
    };
    finalizers.retain(|finalizer| finalizer != ORPHAN && finalizer != FOREGROUND);
    match policy {
        Propagation::Orphan => finalizers.push(ORPHAN.to_owned()),
        Propagation::Foreground => finalizers.push(FOREGROUND.to_owned()),
        Propagation::Background => {}
    }
    finalizers
}

fn check_preconditions(writer: &Writer<'_>, old: &Value, options: &DeleteOptions) -> Result<()> {
    let resource = writer.resource;
    let name = metadata::text(old, "name");
    let own = KEEPERS.iter().any(|(group, plural)| resource.is(group, plural));
    for (what, wanted, is, cause) in [
        (
            "UID",
            options.uid.as_deref(),
            metadata::text(old, "uid"),
            "The object might have been deleted and then recreated",
        ),
        (
            "ResourceVersion",
            options.resource_version.as_deref(),
            metadata::text(old, "resourceVersion"),
            "The object might have been modified",
        ),
    ] {
        let Some(wanted) = wanted.filter(|wanted| *wanted != is) else { continue };
        if own {
            let why = format!(
                "Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {is}"
            );
            return Err(Status::conflict(resource.named(name), &why));
        }
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). \
             {cause}"
        );
        return Err(Status::conflict(resource.named_kind(name), &why));
    }
    Ok(())
}
