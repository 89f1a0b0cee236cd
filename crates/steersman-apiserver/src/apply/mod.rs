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
//! The parts: `path` and `fieldset` (sets of paths), `typed` (documents through a schema), `check`,
//! `merge`, `managed_fields` (the record), `conflict`, `last_applied` (kubectl's annotation).

mod check;
mod conflict;
mod fieldset;
mod last_applied;
mod managed_fields;
mod merge;
mod path;
#[cfg(test)]
mod tests;
mod typed;

use serde_json::{Map, Value};

use self::managed_fields::{ManagerId, Managers, Operation, Owned, Sent};
use self::typed::Comparison;
use crate::schema::Schema;

pub use self::conflict::{ConflictCause, FieldConflict, conflict_message};

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
}

/// Merges an applied configuration into the live object and updates `managedFields`. An apply
/// that changes nothing returns the live object as it is.
pub fn apply(apply: Apply<'_>) -> Result<Value, ApplyError> {
    if !apply.applied["metadata"]["managedFields"].is_null() {
        return Err(ApplyError::Invalid("metadata.managedFields must be nil".to_owned()));
    }
    let node = apply.schema.root();
    check::check(node, apply.applied)
        .map_err(|error| ApplyError::Invalid(explain(&apply, &error)))?;

    let mut live = apply.live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    let mut managers = managers_before(&apply)?;
    managed_fields::strip(&mut live);
    let id = ManagerId::new(Operation::Apply, apply.manager, apply.api_version, apply.subresource);

    let last = managers.remove(&id);
    let fields = typed::paths_of(node, apply.applied);
    let mut new = merge::merge(node, &live, apply.applied);
    // Only what was given up can need removing.
    if let Some(last) = last.as_ref().filter(|last| !last.fields.difference(&fields).is_empty()) {
        let owned = managers.values().fold(fields.clone(), |all, owned| all.union(&owned.fields));
        new = merge::prune(node, &new, &last.fields, &owned);
    }

    let changes = typed::compare(node, &live, &new);
    if !apply.force {
        let conflicts =
            last_applied::without_own(&apply, &live, conflict::find(&managers, &changes));
        if !conflicts.is_empty() {
            let conflicts = conflicts.into_iter().map(|(conflict, _)| conflict).collect();
            return Err(ApplyError::Conflict(conflicts));
        }
    }
    take_over(&mut managers, &changes);

    let fields = fields.difference(&managed_fields::UNOWNED);
    let same = new == live && last.as_ref().is_some_and(|last| last.fields == fields);
    let time = if same { last.and_then(|last| last.time) } else { Some(apply.now.to_owned()) };
    managers.insert(id, Owned { fields, api_version: apply.api_version.to_owned(), time });
    last_applied::refresh(&apply, &mut new);
    managed_fields::encode(&managers, &mut new);
    Ok(new)
}

/// Records who owns which fields after a create, update or patch.
pub fn track(track: Track<'_>) {
    let Track { live, new, manager, subresource, api_version, now, schema } = track;
    // A subresource has no say in managedFields; the main resource may correct or reset them.
    let sent = if subresource.is_empty() { managed_fields::sent(new) } else { Sent::Nothing };
    let mut managers = match sent {
        Sent::Reset => Managers::new(),
        Sent::Managers(managers) if !managers.is_empty() => managers,
        Sent::Managers(_) | Sent::Nothing => {
            live.map(managed_fields::decode).and_then(Result::ok).unwrap_or_default()
        }
    };
    managed_fields::strip(new);
    // Objects that nobody tracks stay so until the first apply.
    if managers.is_empty() && live.is_some() {
        return;
    }
    let mut live = live.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    managed_fields::strip(&mut live);
    let changes = typed::compare(schema.root(), &live, new);
    let id = ManagerId::new(Operation::Update, manager, api_version, subresource);
    own_changes(&mut managers, id, &changes, now);
    managed_fields::cap_updaters(&mut managers);
    managed_fields::encode(&managers, new);
}

fn explain(apply: &Apply<'_>, error: &str) -> String {
    let text =
        |pointer: &str| apply.applied.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (namespace, name) = (text("/metadata/namespace"), text("/metadata/name"));
    let kind = format!("{}, Kind={}", apply.api_version, text("/kind"));
    format!("failed to create typed patch object ({namespace}/{name}; {kind}): {error}")
}

/// The managers of the live object. If it exists and has none, everything in it belongs to
/// "before-first-apply", so that the first apply cannot silently overwrite it.
fn managers_before(apply: &Apply<'_>) -> Result<Managers, ApplyError> {
    let Some(live) = apply.live else { return Ok(Managers::new()) };
    let mut managers = managed_fields::decode(live).map_err(|error| {
        ApplyError::Invalid(format!("failed to decode managed fields: {error}"))
    })?;
    if managers.is_empty() {
        let mut live = live.clone();
        managed_fields::strip(&mut live);
        let node = apply.schema.root();
        let changes = typed::compare(node, &Value::Object(Map::new()), &live);
        let id = ManagerId::new(
            Operation::Update,
            BEFORE_FIRST_APPLY,
            apply.api_version,
            apply.subresource,
        );
        own_changes(&mut managers, id, &changes, apply.now);
    }
    Ok(managers)
}

/// Others lose what this write changed or removed.
fn take_over(managers: &mut Managers, changes: &Comparison) {
    let lost = changes.modified.clone().union(&changes.added).union(&changes.removed);
    for owned in managers.values_mut() {
        owned.fields = owned.fields.difference(&lost);
    }
    managers.retain(|_, owned| !owned.fields.is_empty());
}

/// An update owns what it changed, besides what it owned before.
fn own_changes(managers: &mut Managers, id: ManagerId, changes: &Comparison, now: &str) {
    take_over(managers, changes);
    let written = changes.modified.clone().union(&changes.added);
    let written = written.difference(&managed_fields::UNOWNED);
    if written.is_empty() {
        return;
    }
    let kept = managers.remove(&id).map(|owned| owned.fields).unwrap_or_default();
    let api_version = id.api_version.clone();
    let owned = Owned { fields: kept.union(&written), api_version, time: Some(now.to_owned()) };
    managers.insert(id, owned);
}
