//! What the writes of definitions, and of their instances, mean to the server.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::{Value, json};
use steersman_rules::metadata;
use steersman_rules::resource::Resource;
use steersman_store::Revision;

use super::ending::{finalize, reconsider, release_if_empty};
use super::serving::serve;
use super::status::{begin_deletion, keep_own_status, note_owner, prepare};
use super::{folder, is_held, names, refresh};
use crate::aggregation::local;
use crate::apart::LONG_BYTES;
use crate::document::exceeds;
use crate::registry::Accepted;
use crate::state::effects::{Effects, Turn, Write, Written};
use crate::status::{Result, Status};

/// A definition's status says whether its names are accepted, and what it says is served when its
/// write is done.
pub(crate) struct Definitions;

impl Effects for Definitions {
    fn prepare(&self, write: Write<'_>, _old: Option<&Value>, new: &mut Value) {
        prepare(write.server, new, write.now);
    }

    fn prepare_part(&self, write: Write<'_>, old: &Value, new: &mut Value) {
        if write.subresource == "status" {
            keep_own_status(old, new);
        }
    }

    fn begin_deletion(&self, old: &Value, new: &mut Value) {
        begin_deletion(old, new);
    }

    fn turn<'a>(&'a self, write: Write<'a>) -> BoxFuture<'a, Option<Turn>> {
        Box::pin(turn(write))
    }

    fn prepare_in_turn(&self, write: Write<'_>, old: Option<&Value>, new: &mut Value) {
        if write.user.is_some() && write.subresource.is_empty() {
            // Others may have taken its names while webhooks were asked about it. What was said
            // about them meanwhile is void.
            let status = old.and_then(|old| old.get("status")).cloned();
            let status = status.unwrap_or_else(|| json!({}));
            new["status"] = status.clone();
            prepare(write.server, new, write.now);
            note_owner(write, status, new);
        }
    }

    fn follow(&self, _gone: bool) -> bool {
        true
    }

    fn written<'a>(&'a self, written: Written<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            // Its schemas are read once more, and they may be long.
            let Written { server, object, .. } = written;
            let is_long = exceeds(object, LONG_BYTES);
            server.apart.run(is_long, pin!(definition_written(written))).await;
        })
    }
}

/// Waits until a request that is about to write a definition is the only one to do so, and keeps
/// the others waiting until the guard is gone. Whether names are free depends on what all others
/// claim, so [`prepare`] must have looked since. No webhook is asked meanwhile: it may want to
/// write definitions itself.
async fn turn(write: Write<'_>) -> Option<Turn> {
    // What the server itself writes follows from a write that has the turn.
    if write.user.is_none() {
        return write.turn.cloned();
    }
    let turn = Arc::clone(&write.server.definitions).lock_owned().await;
    // Whether names are free also depends on what others have written elsewhere.
    if let Err(error) = refresh(write.server).await {
        tracing::warn!(%error, "cannot list CustomResourceDefinitions");
    }
    Some(Arc::new(turn))
}

/// Serves what a written definition says, sees to the end of one that is deleted, and gives the
/// names that it no longer has to others.
async fn definition_written(written: Written<'_>) {
    let Written { server, object, revision, gone, .. } = written;
    let name = metadata::text(object, "name");
    let group = object["spec"]["group"].as_str().unwrap_or("");
    let before = server.registry.table().custom(name).cloned();
    let told = before.as_ref().map_or(&[][..], |custom| &custom.resources);
    let said = object["spec"]["versions"].as_array().into_iter().flatten();
    let said = said.filter_map(|version| version["name"].as_str());
    let versions: BTreeSet<&str> = told.iter().map(|r| &*r.version).chain(said).collect();
    let versions: Vec<&str> = versions.into_iter().collect();
    if gone {
        server.registry.remove(name, revision);
    } else {
        serve(server, object, revision);
    }
    local::follow_definition(server, group, &versions).await;
    if !gone && is_held(object) {
        finalize(server, name);
    }
    let after = if gone { Accepted::default() } else { names::accepted(object) };
    if before.is_some_and(|before| before.accepted.has_more_than(&after)) {
        tokio::spawn(reconsider(Arc::clone(server), group.to_owned()));
    }
}

/// An instance needs a definition that stays, and the last one lets go a definition that does not.
pub(crate) struct Instances;

impl Effects for Instances {
    fn accept(&self, write: Write<'_>, name: &str) -> Result<()> {
        let resource = write.resource;
        let table = write.server.registry.table();
        match table.custom(&resource.qualified()) {
            Some(custom) if custom.terminating => Err(terminating(resource, name)),
            None if table.get(&resource.group, &resource.version, &resource.plural).is_none() => {
                Err(Status::no_such_resource())
            }
            _ => Ok(()),
        }
    }

    fn follow(&self, gone: bool) -> bool {
        gone
    }

    fn written<'a>(&'a self, written: Written<'a>) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Written { server, resource, .. } = written;
            let definition = resource.qualified();
            let table = server.registry.table();
            if table.custom(&definition).is_some_and(|custom| custom.terminating) {
                release_if_empty(server, &definition).await;
            }
        })
    }

    fn accepted<'a>(
        &'a self,
        write: Write<'a>,
        name: &'a str,
        at: Revision,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.accept(write, name)?;
            instance_accepted(write, name, at).await
        })
    }
}

fn terminating(resource: &Resource, name: &str) -> Status {
    const WHY: &str = "create not allowed while custom resource definition is terminating";
    Status::forbidden(resource.named(name), WHY, Vec::new())
}

/// Refuses an instance that was written at a revision at which its definition was going or gone:
/// whoever deletes the instances may have looked before, and this server may not have heard.
async fn instance_accepted(write: Write<'_>, name: &str, written: Revision) -> Result<()> {
    let table = write.server.registry.table();
    let definition = write.resource.qualified();
    let Some(custom) = table.custom(&definition) else { return Ok(()) };
    let key = folder() + &definition;
    // If that cannot be told any more, the instance is there all the same.
    let Ok(modified) = write.server.store.modified(&key, written).await else { return Ok(()) };
    if modified == Some(custom.revision) {
        return Ok(());
    }
    let Ok(found) = write.server.at(&key, written).await else { return Ok(()) };
    let entry = found.ok_or_else(Status::no_such_resource)?;
    let object: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    if metadata::is_deleting(&object) {
        return Err(terminating(write.resource, name));
    }
    Ok(())
}
