//! From stored definitions to what is served, whoever wrote them.
//!
//! News of a definition come from three sides: from the write that this server has just done,
//! from following what others write, and from reading them all. They come in any order, so each
//! counts only if it is newer than what is known.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::Value;
use steersman_rules::kinds::custom_resource_definition::{
    self as definitions, Defined, is_established,
};
use steersman_rules::metadata;
use steersman_rules::resource::{ConverterHandle, Resource, Verb};
use steersman_store::{Entry, Event, RangeRequest, Revision};

use super::{GROUP, PLURAL, is_held, names};
use crate::document::Stored;
use crate::registry::Custom;
use crate::state::Server;
use crate::status::Result;
use crate::webhook_client::Converter;

/// Where definitions are stored.
pub(crate) fn folder() -> String {
    format!("/registry/{GROUP}/{PLURAL}/")
}

/// Follows a write of whatever server: only serves what it says. Who wrote it does the rest, and
/// if they do not, [`super::tend`] does.
pub(crate) fn followed(server: &Server, event: &Event) {
    let name = name(&event.key);
    match &event.current {
        Some(entry) => serve_entry(server, entry),
        None => server.registry.remove(name, event.revision),
    }
}

/// Brings what is served up to all that is stored, and says of which revision that is.
pub(crate) async fn refresh(server: &Server) -> Result<Revision> {
    let before = server.registry.table();
    let request = RangeRequest { prefix: folder(), ..RangeRequest::default() };
    let state = server.store.range(request).await?;
    state.entries.iter().for_each(|entry| serve_entry(server, entry));
    let stored: HashSet<&str> = state.entries.iter().map(|entry| name(&entry.key)).collect();
    for gone in before.definitions().filter(|name| !stored.contains(name)) {
        server.registry.remove(gone, state.revision);
    }
    Ok(state.revision)
}

fn name(key: &str) -> &str {
    key.rsplit_once('/').map_or(key, |(_, name)| name)
}

fn serve_entry(server: &Server, entry: &Entry) {
    if server.registry.knows(name(&entry.key), entry.modified) {
        return;
    }
    match Stored::from(entry).decode("apiextensions.k8s.io/v1") {
        Ok(definition) => serve(server, &definition, entry.modified),
        // The others are served all the same.
        Err(error) => {
            tracing::error!(%error, key = %entry.key, "cannot decode CustomResourceDefinition");
        }
    }
}

pub(super) fn serve(server: &Server, definition: &Value, revision: Revision) {
    let name = metadata::text(definition, "name");
    let converter = Converter::of(definition).map(ConverterHandle::new);
    let computed = server.extended.computed.get(name);
    let is_watched = computed.is_some_and(|computed| computed.watch_period().is_some());
    let dated = |resource: Resource| Resource {
        schema: resource.schema.clone().since(revision.0),
        converter: converter.clone(),
        verbs: match computed {
            Some(_) if is_watched => &[Verb::Get, Verb::List, Verb::Watch],
            Some(_) => &[Verb::Get, Verb::List],
            None => resource.verbs,
        },
        ..resource
    };
    let Defined { served, unserved_storage } = definitions::resources(definition);
    let served: Vec<_> = served.into_iter().map(|served| Arc::new(dated(served))).collect();
    let stored = definitions::storage_version(definition);
    let storage = served.iter().find(|served| Some(served.version.as_ref()) == stored).cloned();
    let storage = storage.or_else(|| unserved_storage.map(|storage| Arc::new(dated(storage))));
    let Some(storage) = storage else { return };
    let resources = if is_established(definition) { served } else { Vec::new() };
    let terminating = metadata::is_deleting(definition);
    let says = digest(definition);
    let custom = Custom {
        revision,
        resources,
        storage,
        terminating,
        held: is_held(definition),
        accepted: names::accepted(definition),
        waits: !terminating && !names::is_settled(definition),
        says,
    };
    server.registry.install(name, custom);
}

/// A digest of what is served because of a definition: of its spec and the names it got.
fn digest(definition: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    definition["spec"].hash(&mut hasher);
    definition["status"]["acceptedNames"].hash(&mut hasher);
    is_established(definition).hash(&mut hasher);
    hasher.finish()
}
