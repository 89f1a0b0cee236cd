//! Custom resource definitions: objects that change what is served.
//!
//! A definition is an object like any other. When it is written its status says whether its
//! names are accepted, and when the write is done, before the client hears of it, the registry
//! serves what it says. When it is deleted, its instances go first, then the definition, then
//! the resource.

mod definition;
mod names;
mod validate;

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use steersman_store::{RangeRequest, Revision};
use tokio::sync::OwnedMutexGuard;

use crate::document::Stored;
use crate::metadata;
use crate::mutate::delete::{DeleteOptions, delete_object};
use crate::mutate::{Writer, change};
use crate::registry::Custom;
use crate::resource::{Place, Resource};
use crate::state::Server;
use crate::status::{Result, Status};

pub(crate) use validate::validate;

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
    Some(Arc::new(Arc::clone(&writer.server.definitions).lock_owned().await))
}

/// Refuses new instances of a definition that is being deleted, or is gone.
pub(crate) fn accepts_instances(writer: &Writer<'_>) -> Result<()> {
    let table = writer.server.registry.table();
    let resource = writer.resource;
    match table.custom(&resource.qualified()) {
        Some(custom) if custom.terminating => {
            let why = "create not allowed while custom resource definition is terminating";
            Err(Status::not_supported(why))
        }
        None if table.get(&resource.group, &resource.version, &resource.plural).is_none() => {
            Err(Status::no_such_resource())
        }
        _ => Ok(()),
    }
}

/// Completes a definition that is about to be written: names, finalizer and status.
pub(crate) fn prepare(server: &Server, definition: &mut Value, now: &str) {
    names::complete(definition);
    let mut finalizers = metadata::finalizers(definition);
    if !metadata::is_deleting(definition) && !finalizers.iter().any(|f| f == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
        metadata::set_finalizers(definition, finalizers);
    }
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

/// Says of a definition whose deletion begins that it does.
pub(crate) fn begin_deletion(definition: &mut Value) {
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
    let Some(version) = definition::storage_version(definition).map(str::to_owned) else { return };
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

/// Follows a write: serves what a written definition says, and ends the deletion of one that
/// nothing holds any more. `gone` is whether the write, at this revision, removed the object.
pub(crate) fn committed<'a>(
    server: &'a Arc<Server>,
    resource: &'a Resource,
    object: &'a Value,
    revision: Revision,
    gone: bool,
) -> BoxFuture<'a, ()> {
    Box::pin(async move {
        let name = metadata::text(object, "name");
        match (is_definition(resource), gone) {
            (true, false) => {
                serve(server, object, revision);
                if metadata::is_deleting(object) {
                    clean_up(server, name).await;
                }
            }
            (true, true) => {
                server.registry.remove(name, revision);
                let group = object["spec"]["group"].as_str().unwrap_or("").to_owned();
                tokio::spawn(reconsider(Arc::clone(server), group));
            }
            (false, true) => {
                let definition = resource.qualified();
                let table = server.registry.table();
                if table.custom(&definition).is_some_and(|custom| custom.terminating) {
                    release_if_empty(server, &definition).await;
                }
            }
            (false, false) => {}
        }
    })
}

/// Looks again at the names of a group's definitions that were not accepted: they may be free.
async fn reconsider(server: Arc<Server>, group: String) {
    let turn: Turn = Arc::new(Arc::clone(&server.definitions).lock_owned().await);
    let waiting = server.registry.table().unserved_in_group(&group);
    let table = server.registry.table();
    let Some(definitions) = table.get(GROUP, "v1", PLURAL) else { return };
    let writer = Writer { turn: Some(turn), ..Writer::internal(&server, definitions) };
    for name in waiting {
        let place = Place { namespace: "", name: &name };
        let established = change::change(&writer, place, |old| {
            let mut new = old.clone();
            if !metadata::is_deleting(old) {
                prepare(&server, &mut new, &writer.now);
            }
            Ok(new)
        });
        if let Err(error) = established.await {
            tracing::debug!(%error, "a definition was gone before its names were free");
        }
    }
}

/// Reads the definitions that the store holds when the server starts.
pub(crate) async fn load(server: &Arc<Server>) -> Result<()> {
    let prefix = format!("/registry/{GROUP}/{PLURAL}/");
    let state = server.store.range(RangeRequest { prefix, ..RangeRequest::default() }).await?;
    for entry in &state.entries {
        let definition = Stored::from(entry).decode("apiextensions.k8s.io/v1")?;
        serve(server, &definition, entry.modified);
        if metadata::is_deleting(&definition) {
            clean_up(server, metadata::text(&definition, "name")).await;
        }
    }
    Ok(())
}

fn serve(server: &Server, definition: &Value, revision: Revision) {
    let name = metadata::text(definition, "name");
    let dated = |resource: Resource| Resource {
        schema: resource.schema.clone().since(revision),
        ..resource
    };
    let Some(storage) = definition::storage(definition).map(dated) else { return };
    let resources = if is_established(definition) {
        definition::served(definition).into_iter().map(|served| Arc::new(dated(served))).collect()
    } else {
        Vec::new()
    };
    let terminating = metadata::is_deleting(definition);
    let custom = Custom { revision, resources, storage: Arc::new(storage), terminating };
    server.registry.install(name, custom);
}

/// Deletes the instances of a definition, then lets it go. Instances with finalizers keep it
/// until they are gone, too.
async fn clean_up(server: &Arc<Server>, definition: &str) {
    let table = server.registry.table();
    let Some(custom) = table.custom(definition) else { return };
    let writer = Writer::internal(server, &custom.storage);
    let prefix = custom.storage.prefix("");
    let request = RangeRequest { prefix, ..RangeRequest::default() };
    let Ok(instances) = server.store.range(request).await else { return };
    for entry in &instances.entries {
        let place = custom.storage.place(&entry.key);
        if let Err(error) = delete_object(&writer, place, &DeleteOptions::default()).await {
            tracing::debug!(%error, "an instance was gone before its definition");
        }
    }
    release_if_empty(server, definition).await;
}

/// Removes the finalizer of a definition without instances, and so the definition.
async fn release_if_empty(server: &Arc<Server>, definition: &str) {
    let table = server.registry.table();
    let Some(custom) = table.custom(definition) else { return };
    let prefix = custom.storage.prefix("");
    let request = RangeRequest { prefix, limit: 1, ..RangeRequest::default() };
    let empty = server.store.range(request).await.is_ok_and(|found| found.entries.is_empty());
    let Some(definitions) = table.get(GROUP, "v1", PLURAL).filter(|_| empty) else { return };
    let writer = Writer::internal(server, definitions);
    let place = Place { namespace: "", name: definition };
    let released = change::change(&writer, place, |old| {
        let mut new = old.clone();
        let mut finalizers = metadata::finalizers(old);
        finalizers.retain(|finalizer| finalizer != CLEANUP);
        metadata::set_finalizers(&mut new, finalizers);
        Ok(new)
    });
    if let Err(error) = released.await {
        tracing::debug!(%error, "a definition was gone before it was released");
    }
}
