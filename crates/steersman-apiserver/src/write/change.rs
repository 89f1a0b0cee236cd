//! Changing what is stored: what an object becomes when a client, or the server, wants it changed.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;
use steersman_rules::apply::keep_times;
use steersman_rules::metadata;
use steersman_rules::resource::Place;
use steersman_store::{Entry, Expected, Revision, StoreError};

use super::prepare::{PARTS, as_written_in, shape};
use super::swap::{Attempt, Swap, swap};
use super::{Held, Writer, part, scale, validate};
use crate::admission::{Operation, Request};
use crate::apart::breath;
use crate::conversion;
use crate::document::Stored;
use crate::status::{Result, Status};

/// How often a merge is run again for conversions that it lacked.
const MERGES_MAX: usize = 16;

/// Replaces the object at a place by what `decide` makes of it, and gives the result. An object
/// that stays the same is not written; one whose deletion was only waiting for this is removed.
/// This is the server's own change: nobody is asked, nothing is checked.
pub(crate) async fn change(
    writer: &Writer<'_>,
    place: Place<'_>,
    mut decide: impl FnMut(&Value) -> Result<Value> + Send,
) -> Result<Stored> {
    let change = Change { writer, place, decide: &mut decide, asked: None, checks: Checks::None };
    swap(writer, place, change).await
}

/// Replaces the object at a place by what a client wants to make of it, which `decide` has from
/// [`prepare`](super::prepare::prepare): plug-ins and webhooks may change it, mistakes are refused,
/// plug-ins and webhooks may refuse it.
pub(crate) async fn write(
    writer: &Writer<'_>,
    place: Place<'_>,
    mut decide: impl FnMut(&Value) -> Result<Value> + Send,
) -> Result<Stored> {
    let asked = writer.asks(Operation::Update, place);
    let change = Change { writer, place, decide: &mut decide, asked, checks: Checks::All };
    swap(writer, place, change).await
}

/// Whether a change is a client's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checks {
    None,
    All,
}

/// A change on its way.
struct Change<'a> {
    writer: &'a Writer<'a>,
    place: Place<'a>,
    decide: &'a mut (dyn FnMut(&Value) -> Result<Value> + Send),
    /// The plug-ins and webhooks that have a say, if any.
    asked: Option<Request<'a>>,
    checks: Checks,
}

impl Swap for Change<'_> {
    type Done = Stored;

    fn is_asked(&self) -> bool {
        self.writer.hooks.is_some()
    }

    async fn attempt(&mut self, entry: &Entry) -> Result<Attempt<Stored>> {
        let writer = self.writer;
        let found = Found::of(writer, entry).await?;
        let old = &found.old;
        breath().await;
        let mut new = self.decided(old).await?;
        breath().await;
        if self.checks == Checks::All {
            new = admitted(writer, self.asked.as_ref(), self.place, old, new).await?;
            // What differs only in how a number is put is written alike, and so not at all.
            writer.resource.schema.shorten_numbers(&mut new);
            keep_times(old, &mut new);
            breath().await;
        }
        let same = new == *old
            && found.is_stored_right
            && !writer.server.store.is_stale(&entry.key).await?;
        let effects = writer.effects();
        let mut held = Held::default();
        if let Some(effects) = effects.filter(|_| !same) {
            held.taken.extend(effects.take(writer.seen(), Some(old), &mut new).await?);
        }
        if let Some(request) = &self.asked {
            request.validate(Some(&shown(writer, &new)), Some(&shown(writer, old))).await?;
        }
        if same {
            return Ok(Attempt::Unchanged(found.stored));
        }
        if let Some(request) = &self.asked {
            let new = shown(writer, &new);
            let old = shown(writer, old);
            held.taken.extend(request.take(&new, Some(&old)).await?);
        }
        if let Some(effects) = effects {
            held.turn = effects.turn(writer.seen()).await;
            effects.prepare_in_turn(writer.seen(), Some(old), &mut new);
        }
        put(writer, self.place, &found, new, held).await
    }
}

impl Change<'_> {
    /// What `decide` makes of an object, once it knows all conversions that it needs.
    async fn decided(&mut self, old: &Value) -> Result<Value> {
        let writer = self.writer;
        writer.known.clear();
        for _ in 0..MERGES_MAX {
            let new = (self.decide)(old);
            if !writer.known.complete(writer.server, writer.resource).await? {
                return new;
            }
        }
        Err(Status::internal("the conversion webhook never answers the same twice"))
    }
}

/// Writes the new object, or removes it if its deletion was only waiting for this.
async fn put(
    writer: &Writer<'_>,
    place: Place<'_>,
    found: &Found,
    mut new: Value,
    held: Held,
) -> Result<Attempt<Stored>> {
    let bytes = writer.encode(&mut new)?;
    if writer.dry_run {
        return Ok(Attempt::Written(Stored { bytes, revision: found.modified }));
    }
    let value = match deletion_is_done(writer, &new) {
        true => None,
        false => Some(writer.to_storage(&new, &bytes).await?),
    };
    let expected = Expected::Modified(found.modified);
    match writer.commit(place, value.clone(), &Arc::new(new), expected, held).await {
        Ok(revision) => Ok(Attempt::Written(writer.written(value, bytes, revision).await)),
        Err(StoreError::Conflict { .. }) => Ok(Attempt::Conflict),
        Err(error) => Ok(Attempt::Failed(error.into())),
    }
}

/// An object that is about to change.
struct Found {
    /// In the version of the writer.
    stored: Stored,
    old: Value,
    modified: Revision,
    /// Whether the store has it in the version in which it is to be stored.
    is_stored_right: bool,
}

impl Found {
    async fn of(writer: &Writer<'_>, entry: &Entry) -> Result<Self> {
        let stored = Stored::from(entry);
        let is_stored_right = conversion::is_stored_right(writer.resource, &stored);
        let stored = conversion::read(writer.server, writer.resource, stored).await?;
        let old = stored.decode(&writer.api_version)?;
        Ok(Self { stored, old, modified: entry.modified, is_stored_right })
    }
}

/// What becomes of a client's change when plug-ins and webhooks have changed it, too: it is prepared
/// again, and refused if there are mistakes in it.
async fn admitted(
    writer: &Writer<'_>,
    asked: Option<&Request<'_>>,
    place: Place<'_>,
    old: &Value,
    mut new: Value,
) -> Result<Value> {
    if let Some(request) = asked {
        new = changed(writer, request, old, new).await?;
    }
    if let Some(effects) = writer.effects() {
        effects.permit(writer.seen(), place, Some(old), &new)?;
    }
    // A status is written often, and never for its amounts alone.
    let before = match writer.subresource {
        "status" => Cow::Borrowed(old),
        _ => as_written_in(writer, old, &new),
    };
    if PARTS.contains(&writer.subresource) {
        part::check(writer, &before, &new).await?;
        part::warn(writer, &new);
    } else {
        validate::changed_object(writer, &before, &new).await?;
        writer.warn(&new, Some(old));
    }
    Ok(new)
}

/// What plug-ins and webhooks make of a change.
async fn changed(
    writer: &Writer<'_>,
    request: &Request<'_>,
    old: &Value,
    mut new: Value,
) -> Result<Value> {
    let Some(paths) = writer.scale else {
        let changes = request.mutate(&mut new, Some(old)).await?;
        return if changes.any() { shape(writer, old, new) } else { Ok(new) };
    };
    let mut scale = scale::scale_of(&new, paths);
    let changes = request.mutate(&mut scale, Some(&scale::scale_of(old, paths))).await?;
    if changes.any() { shape(writer, old, scale::scaled(&new, paths, &scale)) } else { Ok(new) }
}

/// What of an object plug-ins and webhooks are asked about: the Scale, if one is written.
fn shown<'a>(writer: &Writer<'_>, object: &'a Value) -> Cow<'a, Value> {
    match writer.scale {
        Some(paths) => Cow::Owned(scale::scale_of(object, paths)),
        None => Cow::Borrowed(object),
    }
}

/// Whether nothing holds a deleted object any more.
pub(crate) fn deletion_is_done(writer: &Writer<'_>, object: &Value) -> bool {
    metadata::is_deleting(object)
        && metadata::finalizers(object).is_empty()
        && metadata::number(object, "deletionGracePeriodSeconds").unwrap_or(0) == 0
        && !writer.resource.rules.holds_deletion(object)
}
