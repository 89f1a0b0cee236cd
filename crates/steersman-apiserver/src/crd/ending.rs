//! What follows from a definition that goes: its instances go first, then it goes itself, and then
//! its names are free for others.
//!
//! Usually the server that was asked to delete it does all of that. Should it stop halfway, any
//! other that sees it undone after a while does it: every step may be done by several at once.
//! What must not happen is that a slow one takes a namesake, made anew meanwhile, for the one
//! that goes; so each step makes sure whose instances it deletes and whom it lets go.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::Place;
use steersman_store::{Entry, RangeRequest};

use super::status::prepare;
use super::{CLEANUP, GROUP, PLURAL, folder, refresh};
use crate::state::Server;
use crate::state::effects::Turn;
use crate::write::delete::delete_object;
use crate::write::{DeleteOptions, Writer, change};

/// Whether some definition waits for what its own server usually does at once.
pub(crate) fn needs_care(server: &Server) -> bool {
    let table = server.registry.table();
    table.terminating().next().is_some() || table.unserved_groups().next().is_some()
}

/// Does what others should have done: ends deletions, and gives names that have become free.
pub(crate) async fn tend(server: Arc<Server>) {
    let table = server.registry.table();
    for definition in table.terminating() {
        clean_up(&server, definition).await;
    }
    let groups: BTreeSet<&str> = table.unserved_groups().collect();
    for group in groups {
        reconsider(Arc::clone(&server), group.to_owned()).await;
    }
}

/// Looks again at the names of a group's definitions that were not accepted: they may be free.
pub(super) async fn reconsider(server: Arc<Server>, group: String) {
    let turn: Turn = Arc::new(Arc::clone(&server.definitions).lock_owned().await);
    if let Err(error) = refresh(&server).await {
        return tracing::debug!(%error, "cannot list CustomResourceDefinitions");
    }
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
            tracing::debug!(%error, "cannot accept the names of a CustomResourceDefinition");
        }
    }
}

/// Deletes the instances of a definition that is being deleted, then lets it go. Instances with
/// finalizers keep it until they are gone, too.
pub(super) async fn clean_up(server: &Arc<Server>, definition: &str) {
    let table = server.registry.table();
    let Some(custom) = table.custom(definition) else { return };
    let writer = Writer::internal(server, &custom.storage);
    let prefix = custom.storage.prefix("");
    let request = RangeRequest { prefix, ..RangeRequest::default() };
    let Ok(instances) = server.store.range(request).await else { return };
    // Asked after the instances were read: so they are those of the one that goes.
    if leaving(server, definition).await.is_none() {
        return;
    }
    for entry in &instances.entries {
        let place = custom.storage.place(&entry.key);
        let options = DeleteOptions { uid: Some(uid(entry)), ..DeleteOptions::default() };
        if let Err(error) = delete_object(&writer, place, &options).await {
            tracing::debug!(%error, "cannot delete an instance of a terminating CustomResourceDefinition");
        }
    }
    release_if_empty(server, definition).await;
}

/// Removes the finalizer of a definition that is being deleted and has no instances, and so the
/// definition.
pub(super) async fn release_if_empty(server: &Arc<Server>, definition: &str) {
    let table = server.registry.table();
    let Some(custom) = table.custom(definition) else { return };
    let Some(leaving) = leaving(server, definition).await else { return };
    let prefix = custom.storage.prefix("");
    let request = RangeRequest { prefix, limit: 1, ..RangeRequest::default() };
    let empty = server.store.range(request).await.is_ok_and(|found| found.entries.is_empty());
    let Some(definitions) = table.get(GROUP, "v1", PLURAL).filter(|_| empty) else { return };
    let writer = Writer::internal(server, definitions);
    let place = Place { namespace: "", name: definition };
    let released = change::change(&writer, place, |old| {
        let mut new = old.clone();
        if metadata::text(old, "uid") == leaving && metadata::is_deleting(old) {
            let mut finalizers = metadata::finalizers(old);
            finalizers.retain(|finalizer| finalizer != CLEANUP);
            metadata::set_finalizers(&mut new, finalizers);
        }
        Ok(new)
    });
    if let Err(error) = released.await {
        tracing::debug!(%error, "cannot remove the finalizer of a CustomResourceDefinition");
    }
}

/// The uid of a definition, if it is there and being deleted.
async fn leaving(server: &Server, definition: &str) -> Option<String> {
    let entry = server.get(&(folder() + definition)).await.ok().flatten()?;
    let object: Value = serde_json::from_slice(&entry.value).ok()?;
    metadata::is_deleting(&object).then(|| metadata::text(&object, "uid").to_owned())
}

fn uid(entry: &Entry) -> String {
    let object: Value = serde_json::from_slice(&entry.value).unwrap_or_default();
    metadata::text(&object, "uid").to_owned()
}
