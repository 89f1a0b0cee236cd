//! From stored definitions to what is served, whoever wrote them.
//!
//! News of a definition come from three sides: from the write that this server has just done,
//! from following what others write, and from reading them all. They come in any order, so each
//! counts only if it is newer than what is known.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock};

use hashbrown::DefaultHashBuilder;
use serde_json::Value;
use steersman_rules::kinds::custom_resource_definition::{
    self as definitions, Defined, is_established,
};
use steersman_rules::metadata;
use steersman_rules::resource::{ConverterHandle, Resource, Verb};
use steersman_store::{Entry, Event, RangeRequest, Revision};

use super::{GROUP, PLURAL, is_held, names};
use crate::conversion::Strategy;
use crate::document::Stored;
use crate::registry::Custom;
use crate::state::Server;
use crate::status::Result;

/// Where definitions are stored.
pub(crate) fn folder() -> String {
    format!("/registry/{GROUP}/{PLURAL}/")
}

/// Whether a write of whatever server is not known yet.
pub(crate) fn is_news(server: &Server, event: &Event) -> bool {
    !server.registry.knows(name(&event.key), event.revision)
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
    // They may be long and many, and nearly all of them are known.
    let request = RangeRequest { prefix: folder(), keys_only: true, ..RangeRequest::default() };
    let state = server.store.range(request).await?;
    let is_known = |entry: &&Entry| {
        before.custom(name(&entry.key)).is_some_and(|known| known.revision >= entry.modified)
    };
    let (known, news): (Vec<&Entry>, Vec<&Entry>) = state.entries.iter().partition(is_known);
    for entry in news {
        // Who removes it meanwhile, or writes it again, is heard of later.
        if let Some(entry) = server.store.get(&entry.key).await? {
            serve_entry(server, &entry);
        }
    }
    // Where all that is served is stored, which is nearly always, nobody has to be looked for.
    if known.len() < before.definitions().count() {
        let stored: HashSet<&str> = state.entries.iter().map(|entry| name(&entry.key)).collect();
        for gone in before.definitions().filter(|name| !stored.contains(name)) {
            server.registry.remove(gone, state.revision);
        }
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
    let Defined { served, unserved_storage } = definitions::resources(definition);
    let versions = served.iter().chain(&unserved_storage);
    let strategy = Strategy::of_definition(definition, versions, revision);
    let converter = Some(ConverterHandle::new(Arc::new(strategy)));
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
    // A definition may have a megabyte, and nobody else sees the digest.
    static DIGESTS: LazyLock<DefaultHashBuilder> = LazyLock::new(DefaultHashBuilder::default);
    let mut hasher = DIGESTS.build_hasher();
    definition["spec"].hash(&mut hasher);
    definition["status"]["acceptedNames"].hash(&mut hasher);
    is_established(definition).hash(&mut hasher);
    hasher.finish()
}
