//! What the objects that tokens speak of say about them.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Refused;
use crate::state::Server;

/// Any object.
#[derive(Deserialize)]
pub(super) struct Object {
    pub(super) metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    pub(super) uid: String,
    pub(super) deletion_timestamp: Option<Timestamp>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
}

/// A ServiceAccount.
#[derive(Deserialize)]
pub(super) struct Account {
    pub(super) metadata: Metadata,
    #[serde(default)]
    pub(super) secrets: Vec<Named>,
}

#[derive(Deserialize)]
pub(super) struct Named {
    #[serde(default)]
    pub(super) name: String,
}

/// A Secret.
#[derive(Deserialize)]
pub(super) struct Secret {
    pub(super) metadata: Metadata,
    #[serde(default, rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    data: BTreeMap<String, String>,
}

impl Secret {
    /// What is under a key; nothing, if it is not there.
    pub(super) fn get(&self, key: &str) -> Vec<u8> {
        let data = self.data.get(key).and_then(|text| STANDARD.decode(text).ok());
        data.unwrap_or_default()
    }

    /// The same as a text.
    pub(super) fn text(&self, key: &str) -> String {
        String::from_utf8_lossy(&self.get(key)).into_owned()
    }
}

/// What `judge` makes of an object. It is asked again about the latest one if what this server has
/// heard of is not good: another server may have written since.
pub(super) async fn judged<T: DeserializeOwned, J>(
    server: &Server,
    key: &str,
    judge: impl Fn(Option<T>) -> Result<J, String>,
) -> Result<J, Refused> {
    let read = |bytes: &[u8]| serde_json::from_slice::<T>(bytes).ok();
    let known = server.known(key).await?;
    if let Ok(judged) = judge(known.as_ref().and_then(|entry| read(&entry.value))) {
        return Ok(judged);
    }
    let latest = server.get(key).await?;
    Ok(judge(latest.and_then(|entry| read(&entry.value)))?)
}

/// An object as far as this server has heard of it.
pub(super) async fn known<T: DeserializeOwned>(
    server: &Server,
    key: &str,
) -> Result<Option<T>, Refused> {
    let known = server.known(key).await?;
    Ok(known.and_then(|entry| serde_json::from_slice(&entry.value).ok()))
}

/// Whether two secrets are the same, in a time that does not tell how far they are.
pub(super) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differences) == 0
}
