//! Server-side apply and field ownership.
//!
//! Every field of an object belongs to the managers that set it; `metadata.managedFields` records
//! who. An *apply* states everything a manager wants: what it sets is merged into the object, what
//! it set before and leaves out now is removed unless somebody else owns it too, and changing a
//! value that another manager owns is a conflict unless forced. Creates, updates and patches are
//! not restricted, but [`track`] records what they changed, so that they own it from then on.
//!
//! A worked example, on a Deployment whose owners are shown on the right:
//!
//! ```text
//! live                      owned by            ci applies {image: web:2}
//! replicas: 3               hpa (Update)
//! image: web:1              ci (Apply)
//! command: [run]            ci (Apply)
//!
//! 1. merge    replicas: 3, image: web:2, command: [run]
//! 2. prune    command: ci applied it last time, not now, nobody else has it: removed
//! 3. compare  modified .image, removed .command; hpa owns neither: no conflict
//! 4. own      ci {.image}, hpa {.replicas}; ci's time is now
//! ```
//! Had `ci` applied `replicas: 5`, step 3 would have found `.replicas` modified and owned by `hpa`.
//! Had it applied `replicas: 3`, both would own it from then on: same value, no conflict.
//!
//! The parts: `path` and `fieldset` (sets of paths), `encoded` (the same, as stored), `typed`
//! (documents through a schema), `check`, `merge`, `managed_fields` (the record), `versions` and
//! `reconcile` (when the schema is another), `conflict`, `last_applied` (kubectl's annotation).

mod check;
mod configuration;
mod conflict;
mod encoded;
mod fieldset;
mod last_applied;
mod managed_fields;
mod merge;
mod path;
mod reconcile;
#[cfg(test)]
mod tests;
mod typed;
mod versions;

use serde_json::{Map, Value};

use self::fieldset::FieldSet;
use self::managed_fields::{Fields, ManagerId, Managers, Operation, Owned, UNOWNED};
use self::versions::{Changed, Changes, Write};
use crate::schema::{Node, Schema};

pub use self::configuration::lay_over;
pub use self::conflict::{ConflictCause, FieldConflict, conflict_message};
pub use self::managed_fields::fault as managers_fault;
pub use self::versions::{Resets, Sole, Versions};

/// The subresource whose writes have no time: Kubernetes loses it between the Scale and its object.
const SCALE: &str = "scale";

/// The manager of whatever was there before anybody was tracked.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// A server-side apply: what one manager wants, and where.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    /// The stored object; `None` creates it.
    pub live: Option<&'a Value>,
    /// The configuration as the client sent it, without what this path cannot set (`status` on
    /// the main resource where it has its own path, everything but `status` there).
    pub applied: &'a Value,
    /// The field manager.
    pub manager: &'a str,
    /// Whether conflicts are resolved by taking the fields over.
    pub force: bool,
    /// `status`, `scale` or empty for the main resource.
    pub subresource: &'a str,
    /// The version the request speaks, such as `apps/v1`.
    pub api_version: &'a str,
    /// The time of the request, RFC 3339 with seconds.
    pub now: &'a str,
    /// The shape of the kind.
    pub schema: &'a Schema,
    /// The kind's other versions, in which managers may have written.
    pub versions: &'a dyn Versions,
    /// What this path resets.
    pub resets: Resets<'a>,
}

/// A create, update or patch whose ownership is to be recorded.
#[derive(Debug)]
pub struct Track<'a> {
    /// The stored object; `None` when creating.
    pub live: Option<&'a Value>,
    /// The object about to be written; its `metadata.managedFields` are maintained.
    pub new: &'a mut Value,
    /// The field manager.
    pub manager: &'a str,
    /// `status`, `scale` or empty for the main resource.
    pub subresource: &'a str,
    /// The version the request speaks, such as `apps/v1`.
    pub api_version: &'a str,
    /// The time of the request, RFC 3339 with seconds.
    pub now: &'a str,
    /// The shape of the kind.
    pub schema: &'a Schema,
    /// The kind's other versions, in which managers may have written.
    pub versions: &'a dyn Versions,
    /// What this path resets.
    pub resets: Resets<'a>,
}

/// Why an apply was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields that this apply would change; see [`conflict_message`].
    #[error("apply conflicts with other field managers")]
    Conflict(Vec<FieldConflict>),
    /// The configuration cannot be merged, for example because of duplicate keys.
    #[error("{0}")]
    Invalid(String),
    /// The configuration says who owns what, which is not its business.
    #[error("metadata.managedFields must be nil")]
    Managed,
}

/// Refuses a configuration that cannot be merged: with managedFields, unknown fields, values of
/// the wrong type, or list items that cannot be told apart. [`apply()`] expects one that passed.
pub fn check_configuration(
    schema: &Schema,
    api_version: &str,
    applied: &Value,
) -> Result<(), ApplyError> {
    let text = |pointer: &str| applied.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    if applied.pointer("/metadata/managedFields").is_some_and(Value::is_array) {
        return Err(ApplyError::Managed);
    }
    check::check(&schema.root(), applied).map_err(|error| {
        let namespace = text("/metadata/namespace");
        let name = text("/metadata/name");
        // The core group has no name, but its slash.
        let slash = if api_version.contains('/') { "" } else { "/" };
        let kind = format!("{slash}{api_version}, Kind={}", text("/kind"));
        let object = format!("{namespace}/{name}; {kind}");
        ApplyError::Invalid(format!("failed to create typed patch object ({object}): {error}"))
    })
}

/// Merges an applied configuration into the live object and updates `managedFields`. An apply
/// that changes nothing returns the live object as it is.
pub fn apply(apply: Apply<'_>) -> Result<Value, ApplyError> {
    let root = apply.schema.root();
    let node = &*root;
    let mut new = apply.live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let mut managers = managers_before(&apply, node, &mut new);
    let id = ManagerId::new(Operation::Apply, apply.manager, apply.api_version, apply.subresource);
    let last = managers.remove(&id);

    let empty = apply.schema.empty();
    let live = apply.live.unwrap_or(&empty);
    let fields = typed::paths_of(node, apply.applied);
    merge::merge(node, &mut new, apply.applied);
    let owned = fields.difference(&UNOWNED);
    let owned = apply.resets.iter().fold(owned, |owned, path| owned.without(path));
    let encoded = owned.encode();
    let same_fields = last
        .as_ref()
        .is_some_and(|last| matches!(&last.fields, Fields::Encoded(last) if *last == encoded));
    if let Some(last) = last.as_ref().filter(|_| !same_fields) {
        forget_abandoned(&apply, node, last, (&fields, &managers), &mut new);
    }

    let changes = Changes::new(apply.write(node, live, &new), &managers);
    if !apply.force {
        let conflicts =
            last_applied::without_own(&apply, live, conflict::find(&managers, &changes));
        if !conflicts.is_empty() {
            let conflicts = conflicts.into_iter().map(|(conflict, _)| conflict).collect();
            return Err(ApplyError::Conflict(conflicts));
        }
    }
    changes.take_over(&mut managers);

    if !same_fields || merge::has_nulls(apply.applied) {
        merge::drop_nulls(node, &mut new);
    }
    // Who applies what is there already owns it without a time.
    let same = is_same(live, &new) || is_same(live, &settled(&apply, &new));
    let is_timeless = same || apply.subresource == SCALE;
    let time =
        if is_timeless { last.and_then(|last| last.time) } else { Some(apply.now.to_owned()) };
    let fields = Fields::Encoded(encoded);
    managers.insert(id, Owned { fields, api_version: apply.api_version.to_owned(), time });
    last_applied::refresh(&apply, &mut new);
    managed_fields::write(managers, &mut new);
    Ok(new)
}

/// Records who owns which fields after a create, update or patch.
pub fn track(track: Track<'_>) {
    let Track { live, new, manager, subresource, api_version, now, schema, versions, resets } =
        track;
    let sent = managed_fields::take(new);
    let known = live.and_then(|live| live.pointer("/metadata/managedFields"));
    // A subresource has no say in managedFields; the main resource may correct or reset them.
    let sent = sent.filter(|sent| subresource.is_empty() || Some(sent) == known);
    // A custom resource has lost an empty list by the time that it is looked at.
    let is_none = |sent: &Value| sent.as_array().is_some_and(Vec::is_empty);
    let sent = sent.filter(|sent| schema.is_typed() || !is_none(sent));
    let mut managers = managers_after(sent, known);
    // Objects that nobody tracks stay so until the first apply.
    if managers.is_empty() && live.is_some() {
        return;
    }
    let root = schema.root();
    let node = &*root;
    reconcile::reconcile(node, &mut managers);
    let empty;
    let old = match live {
        Some(live) => live,
        None => {
            empty = schema.empty();
            &empty
        }
    };
    let write = Write { old, new, node, api_version, versions, resets };
    let changes = Changes::new(write, &managers);
    let id = ManagerId::new(Operation::Update, manager, api_version, subresource);
    own_changes(&mut managers, id, changes, now);
    managed_fields::cap_updaters(&mut managers);
    managed_fields::write(managers, new);
}

impl<'a> Apply<'a> {
    fn write(&self, node: &'a Node, old: &'a Value, new: &'a Value) -> Write<'a> {
        let Self { api_version, versions, resets, .. } = *self;
        Write { old, new, node, api_version, versions, resets }
    }
}

/// The managers that a request leaves standing: those it sends, unless it sends none that can be
/// read; then those there are. Clients that do not know managedFields cannot lose them.
fn managers_after(sent: Option<Value>, known: Option<&Value>) -> Managers {
    let known_managers = || known.cloned().map(managed_fields::read).unwrap_or_default();
    match sent {
        None => known_managers(),
        Some(sent) if managed_fields::is_reset(&sent) => Managers::new(),
        Some(sent) if Some(&sent) == known => managed_fields::read(sent),
        Some(sent) => match managed_fields::read_sent(sent) {
            Ok(managers) if !managers.is_empty() => managers,
            _ => known_managers(),
        },
    }
}

/// An object as it will be stored: what was applied may set a field to nothing.
fn settled(apply: &Apply<'_>, new: &Value) -> Value {
    let mut new = new.clone();
    apply.schema.settle(&mut new);
    new
}

/// Puts back the times at which managers wrote if nothing but these has changed by the time that an
/// object is stored: what they wanted is there already, however they put it.
pub fn keep_times(old: &Value, new: &mut Value) {
    let (Some(before), Some(after)) = (entries_of(old), entries_of(new)) else { return };
    let timeless = |(before, after): (&Value, &Value)| match (before, after) {
        (Value::Object(before), Value::Object(after)) => same_but("time", before, after),
        _ => false,
    };
    let only_times = before.len() == after.len()
        && before != after
        && before.iter().zip(after).all(timeless)
        && is_same(old, new);
    if only_times {
        new["metadata"]["managedFields"] = Value::Array(before.to_vec());
    }
}

fn entries_of(object: &Value) -> Option<&[Value]> {
    object.pointer("/metadata/managedFields")?.as_array().map(Vec::as_slice)
}

/// Whether two objects are the same but for managedFields, the order of lists included.
fn is_same(live: &Value, new: &Value) -> bool {
    let (Some(live), Some(new)) = (live.as_object(), new.as_object()) else { return live == new };
    same_but("metadata", live, new)
        && match (live.get("metadata"), new.get("metadata")) {
            (Some(Value::Object(live)), Some(Value::Object(new))) => {
                same_but("managedFields", live, new)
            }
            (live, new) => live == new,
        }
}

/// Whether two maps are the same but for one field.
fn same_but(field: &str, one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    let others = |map: &Map<String, Value>| map.len() - usize::from(map.contains_key(field));
    others(one) == others(other)
        && one.iter().all(|(key, value)| key == field || other.get(key) == Some(value))
}

/// Removes what a manager applied last time and does not any more, unless somebody owns it.
fn forget_abandoned(
    apply: &Apply<'_>,
    node: &Node,
    last: &Owned,
    (fields, managers): (&FieldSet, &Managers),
    new: &mut Value,
) {
    let other_version = last.api_version != apply.api_version;
    if !other_version && last.fields.to_set().difference(fields).is_empty() {
        return;
    }
    let sets: Vec<(&str, FieldSet)> = managers
        .values()
        .map(|owned| (owned.api_version.as_str(), owned.fields.to_set()))
        .collect();
    let mut owned: Vec<(&str, &FieldSet)> = sets.iter().map(|(v, set)| (*v, set)).collect();
    owned.push((apply.api_version, fields));
    *new = versions::prune(apply.write(node, new, new), last, &owned);
    // What the configuration has empty is empty now, and not gone.
    merge::merge(node, new, apply.applied);
}

/// The managers of the live object, taken out of it. If it exists and has none, everything in it
/// belongs to "before-first-apply", so that the first apply cannot silently overwrite it.
fn managers_before(apply: &Apply<'_>, node: &Node, live: &mut Value) -> Managers {
    let mut managers = managed_fields::take(live).map(managed_fields::read).unwrap_or_default();
    reconcile::reconcile(node, &mut managers);
    if managers.is_empty() && apply.live.is_some() {
        let empty = apply.schema.empty();
        let changes = Changes::new(apply.write(node, &empty, live), &managers);
        let version = apply.api_version;
        let subresource = apply.subresource;
        let id = ManagerId::new(Operation::Update, BEFORE_FIRST_APPLY, version, subresource);
        own_changes(&mut managers, id, changes, apply.now);
    }
    managers
}

/// An update owns what it changed, besides what it owned before.
fn own_changes(managers: &mut Managers, id: ManagerId, changes: Changes<'_>, now: &str) {
    let kept = managers.remove(&id);
    changes.take_over(managers);
    let Changed { written, removed } = changes.into_here();
    let written = written.minus(&UNOWNED);
    let mut owned = kept.unwrap_or_else(|| Owned {
        fields: Fields::Set(FieldSet::default()),
        api_version: id.api_version.clone(),
        time: None,
    });
    owned.fields.subtract(&removed);
    if !written.is_empty() {
        owned.fields.add(written);
        owned.time = (id.subresource != SCALE).then(|| now.to_owned());
    }
    if !owned.fields.is_empty() {
        managers.insert(id, owned);
    }
}
