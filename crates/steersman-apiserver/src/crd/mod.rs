//! Custom resource definitions: objects that change what is served.
//!
//! A definition is an object like any other. When it is written its status says whether its
//! names are accepted, and when the write is done, before the client hears of it, the registry
//! serves what it says. When it is deleted, its instances go first, then the definition, then
//! the resource.
//!
//! Other servers over the same store write definitions, too: [`crate::follow`] tells of them, and
//! whoever is about to write one looks at them all first.

mod ending;
mod names;
mod serving;

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_rules::kinds::custom_resource_definition::{self as definitions, complete};
use steersman_store::Revision;
use tokio::sync::OwnedMutexGuard;

use crate::mutate::Writer;
use crate::state::Server;
use crate::status::{Result, Status};
use steersman_rules::metadata;
use steersman_rules::resource::Resource;

pub(crate) use ending::{needs_care, tend};
pub(crate) use serving::{committed, folder, followed, refresh};

/// Holds a definition until its instances are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The right to write definitions; it ends when the last clone is gone.
pub(crate) type Turn = Arc<OwnedMutexGuard<()>>;

/// The conditions that the server sets, and nobody else.
const OWN_CONDITIONS: [&str; 3] = ["NamesAccepted", "Established", "Terminating"];

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// Whether a resource is the one of definitions.
pub(crate) fn is_definition(resource: &Resource) -> bool {
    resource.is(GROUP, PLURAL)
}

/// Whether a write to a resource may change what is served: of a definition, or the removal of
/// an instance, which may be the last that holds its definition.
pub(crate) fn concerns(server: &Server, resource: &Resource, gone: bool) -> bool {
    is_definition(resource) || (gone && server.registry.table().is_custom(resource))
}

/// Waits until a request that is about to write a definition is the only one to do so, and keeps
/// the others waiting until the guard is gone. Whether names are free depends on what all others
/// claim, so [`prepare`] must have looked since. No webhook is asked meanwhile: it may want to
/// write definitions itself.
pub(crate) async fn turn(writer: &Writer<'_>) -> Option<Turn> {
    // What the server itself writes follows from a write that has the turn.
    if !is_definition(writer.resource) || writer.call.is_none() {
        return writer.turn.clone();
    }
    let turn = Arc::clone(&writer.server.definitions).lock_owned().await;
    // Whether names are free also depends on what others have written elsewhere.
    if let Err(error) = refresh(writer.server).await {
        tracing::warn!(%error, "definitions of others cannot be read");
    }
    Some(Arc::new(turn))
}

/// Refuses new instances of a definition that is being deleted, or is gone.
pub(crate) fn accepts_instances(writer: &Writer<'_>) -> Result<()> {
    let table = writer.server.registry.table();
    let resource = writer.resource;
    match table.custom(&resource.qualified()) {
        Some(custom) if custom.terminating => Err(terminating()),
        None if table.get(&resource.group, &resource.version, &resource.plural).is_none() => {
            Err(Status::no_such_resource())
        }
        _ => Ok(()),
    }
}

fn terminating() -> Status {
    Status::not_supported("create not allowed while custom resource definition is terminating")
}

/// Refuses an instance that was written at a revision at which its definition was going or gone:
/// whoever deletes the instances may have looked before, and this server may not have heard.
pub(crate) async fn accepted_instance(writer: &Writer<'_>, written: Revision) -> Result<()> {
    accepts_instances(writer)?;
    let (table, definition) = (writer.server.registry.table(), writer.resource.qualified());
    let Some(custom) = table.custom(&definition) else { return Ok(()) };
    // If that cannot be told any more, the instance is there all the same.
    let found = writer.server.at(&(folder() + &definition), written).await;
    let Ok(found) = found else { return Ok(()) };
    let entry = found.ok_or_else(Status::no_such_resource)?;
    if entry.modified == custom.revision {
        return Ok(());
    }
    let object: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    if metadata::is_deleting(&object) { Err(terminating()) } else { Ok(()) }
}

/// Completes a definition that is about to be written: names and status.
pub(crate) fn prepare(server: &Server, definition: &mut Value, now: &str) {
    complete(definition);
    let conflict = names::conflict(&server.registry.table(), definition);
    let accepted = definition["spec"]["names"].clone();
    match conflict {
        None => {
            set_condition(
                definition,
                now,
                ["NamesAccepted", "True", "NoConflicts", "no conflicts found"],
            );
            let message = "the initial names have been accepted";
            set_condition(
                definition,
                now,
                ["Established", "True", "InitialNamesAccepted", message],
            );
            definition["status"]["acceptedNames"] = accepted;
        }
        Some((reason, message)) => {
            set_condition(definition, now, ["NamesAccepted", "False", reason, &message]);
            if !is_established(definition) {
                let message = "not all names are accepted";
                set_condition(definition, now, ["Established", "False", "NotAccepted", message]);
                definition["status"]["acceptedNames"] = json!({"plural": "", "kind": ""});
            }
        }
    }
    remember_stored_version(definition);
}

/// Looks again, in turn, whether the names of a definition are free: others may have taken them
/// while webhooks were asked about it. What was said about them meanwhile is void.
pub(crate) fn prepare_in_turn(writer: &Writer<'_>, old: Option<&Value>, definition: &mut Value) {
    if is_definition(writer.resource) && writer.call.is_some() && writer.subresource.is_empty() {
        let status = old.and_then(|old| old.get("status")).cloned();
        definition["status"] = status.unwrap_or_else(|| json!({}));
        prepare(writer.server, definition, &writer.now);
    }
}

/// Says of a definition whose deletion begins that it does, and holds it until its instances are
/// gone. Nothing else of it changes.
pub(crate) fn begin_deletion(old: &Value, definition: &mut Value) {
    let mut finalizers = metadata::finalizers(old);
    if !finalizers.iter().any(|finalizer| finalizer == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    metadata::set_finalizers(definition, finalizers);
    metadata::set(definition, "generation", old["metadata"].get("generation").cloned());
    metadata::set(definition, "deletionGracePeriodSeconds", None);
    let now = metadata::text(definition, "deletionTimestamp").to_owned();
    let message = "CustomResourceDefinition marked for deletion; \
                   CustomResource deletion will begin soon";
    let condition = ["Terminating", "True", "InstanceDeletionPending", message];
    set_condition(definition, &now, condition);
}

/// Puts back what of a definition's status only the server sets.
pub(crate) fn keep_own_status(old: &Value, new: &mut Value) {
    let own = |condition: &&Value| OWN_CONDITIONS.iter().any(|own| condition["type"] == *own);
    let conditions =
        |object: &Value| object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let kept = conditions(old);
    let added = conditions(new);
    let all: Vec<&Value> =
        kept.iter().filter(own).chain(added.iter().filter(|other| !own(other))).collect();
    metadata::set_at(new, "status.conditions", json!(all));
    metadata::set_at(new, "status.acceptedNames", old["status"]["acceptedNames"].clone());
    remember_stored_version(new);
}

/// A version that was once stored stays listed until someone migrates and says so.
fn remember_stored_version(definition: &mut Value) {
    let Some(version) = definitions::storage_version(definition).map(str::to_owned) else { return };
    let stored = definition["status"]["storedVersions"].as_array().cloned();
    let mut stored = stored.unwrap_or_default();
    if !stored.iter().any(|known| *known == version) {
        stored.push(version.into());
    }
    definition["status"]["storedVersions"] = stored.into();
}

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// Sets a condition, given as type, status, reason and message.
fn set_condition(definition: &mut Value, now: &str, condition: [&str; 4]) {
    let [kind, status, reason, message] = condition;
    if !definition["status"]["conditions"].is_array() {
        metadata::set_at(definition, "status.conditions", json!([]));
    }
    let Some(conditions) = definition["status"]["conditions"].as_array_mut() else { return };
    let old = conditions.iter().position(|condition| condition["type"] == kind);
    let mut new = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now,
    });
    match old {
        Some(index) => {
            if conditions[index]["status"] == status {
                new["lastTransitionTime"] = conditions[index]["lastTransitionTime"].clone();
            }
            conditions[index] = new;
        }
        None => conditions.push(new),
    }
}
