//! What is stored of other objects, read as far as a plug-in needs to know it.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use steersman_rules::resource::Named;
use steersman_store::{Entry, RangeRequest};

use crate::document::metadata_of;
use crate::state::Server;
use crate::state::plugins::Attributes;
use crate::status::{Result, Status};

/// What is known of an object here; what is not, is looked for in the store.
pub(super) async fn object<T: DeserializeOwned>(server: &Server, key: &str) -> Result<Option<T>> {
    if let Some(entry) = server.known(key).await? {
        return read(&entry).map(Some);
    }
    server.get(key).await?.as_ref().map(read).transpose()
}

/// What is known of an object here.
pub(super) async fn known<T: DeserializeOwned>(server: &Server, key: &str) -> Result<Option<T>> {
    server.known(key).await?.as_ref().map(read).transpose()
}

/// What is known of the metadata of an object here.
pub(super) async fn known_metadata<T: DeserializeOwned>(
    server: &Server,
    key: &str,
) -> Result<Option<T>> {
    server.known(key).await?.map(|entry| metadata_of(&entry.value)).transpose()
}

/// The metadata of the namespace of a write, of which it must be one.
pub(super) async fn namespace<T: DeserializeOwned>(write: &Attributes<'_>) -> Result<T> {
    let name = write.place.namespace;
    let key = format!("/registry/namespaces/{name}");
    if let Some(known) = known_metadata(write.server, &key).await? {
        return Ok(known);
    }
    let missing = Named { group: "", resource: "namespaces", name };
    let entry = write.server.get(&key).await?.ok_or_else(|| Status::not_found(missing))?;
    metadata_of(&entry.value)
}

/// Metadata of which nothing but some annotations is wanted.
#[derive(Deserialize)]
#[serde(bound = "A: Default + Deserialize<'de>")]
pub(super) struct Annotated<A: Default> {
    #[serde(default, deserialize_with = "absent")]
    pub(super) annotations: A,
}

/// What is known of all objects in a folder, by name.
pub(super) async fn all<T: DeserializeOwned>(server: &Server, folder: &str) -> Result<Vec<T>> {
    let prefix = folder.to_owned();
    let request = RangeRequest { prefix, stale: true, ..RangeRequest::default() };
    server.store.range(request).await?.entries.iter().map(read).collect()
}

fn read<T: DeserializeOwned>(entry: &Entry) -> Result<T> {
    serde_json::from_slice(&entry.value)
        .map_err(|error| Status::internal(&format!("stored object: {error}")))
}

/// A field that may be null as well as absent.
pub(super) fn absent<'de, D: Deserializer<'de>, T>(from: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
{
    Option::deserialize(from).map(Option::unwrap_or_default)
}

/// A class of which one can be the one to take where none is named.
#[derive(Deserialize)]
pub(super) struct Class {
    metadata: ClassMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClassMetadata {
    name: String,
    #[serde(default, deserialize_with = "absent")]
    creation_timestamp: String,
    #[serde(default, deserialize_with = "absent")]
    annotations: std::collections::BTreeMap<String, String>,
}

/// The name of the class in a folder that one of these annotations makes the default: of several
/// the newest, then the first by name.
pub(super) async fn default_class(
    server: &Server,
    folder: &str,
    annotations: &[&str],
) -> Result<Option<String>> {
    let classes: Vec<Class> = all(server, folder).await?;
    let is_default = |class: &ClassMetadata| {
        annotations.iter().any(|key| class.annotations.get(*key).is_some_and(|is| is == "true"))
    };
    let defaults = classes.into_iter().map(|class| class.metadata).filter(is_default);
    // Times of objects are in UTC and of whole seconds, so that their texts are in order.
    let newest = defaults.min_by(|one, other| {
        other.creation_timestamp.cmp(&one.creation_timestamp).then(one.name.cmp(&other.name))
    });
    Ok(newest.map(|class| class.name))
}
