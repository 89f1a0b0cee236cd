//! Custom resources in several versions: in which they are stored, and who converts them.
//!
//! A definition whose strategy is `None` changes nothing but `apiVersion`, which
//! [`convert`](crate::convert) does wherever a document is decoded. With the strategy `Webhook`
//! documents are converted before anybody looks at them: what comes from here speaks the version
//! of the request, and what goes into the store speaks the storage version. Documents that
//! already speak the right version are not touched, so whoever reads the storage version pays
//! nothing. Nothing is locked while a webhook is asked. [`known`] is for server-side apply, which
//! must compare objects in the versions of all who own fields of it.

mod known;
mod review;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use steersman_store::{Entry, Event};

pub(crate) use known::Known;
use review::Webhook;

use crate::convert;
use crate::document::{Stored, encode};
use crate::resource::Resource;
use crate::state::Server;
use crate::status::Result;

/// How the versions of a custom resource belong together.
#[derive(Debug)]
pub(crate) struct Conversion {
    /// The `apiVersion` in which instances are stored.
    storage: String,
    /// Who converts, if it takes more than to change `apiVersion`.
    webhook: Option<Webhook>,
}

impl Conversion {
    /// Reads a definition.
    pub(crate) fn of(definition: &Value, storage_version: &str) -> Self {
        let group = definition["spec"]["group"].as_str().unwrap_or("");
        let conversion = &definition["spec"]["conversion"];
        let asks = conversion["strategy"] == "Webhook";
        Self {
            storage: format!("{group}/{storage_version}"),
            webhook: asks.then(|| Webhook::of(&conversion["webhook"])),
        }
    }
}

/// Who converts objects of a resource, if anybody needs to be asked.
fn webhook(resource: &Resource) -> Option<&Webhook> {
    resource.conversion.as_ref()?.webhook.as_ref()
}

/// Whether a webhook converts objects of a resource.
pub(crate) fn asks(resource: &Resource) -> bool {
    webhook(resource).is_some()
}

/// A stored object as its resource has it now: in its version, by its schema.
pub(crate) async fn read(server: &Server, resource: &Resource, stored: Stored) -> Result<Stored> {
    let version = || resource.api_version();
    if webhook(resource).is_none() || stored.speaks(&version()) {
        return Ok(stored.refreshed(&resource.schema));
    }
    let object = stored.decode_as_stored()?;
    let bytes = encode(&self::object(server, resource, &object).await?)?;
    Ok(Stored { bytes, revision: stored.revision })
}

/// An object in the version of a resource.
pub(crate) async fn object(server: &Server, resource: &Resource, object: &Value) -> Result<Value> {
    let version = resource.api_version();
    if object["apiVersion"] == version {
        return Ok(object.clone());
    }
    let Some(webhook) = webhook(resource) else {
        let mut object = object.clone();
        convert::to_api_version(&mut object, &version);
        return Ok(object);
    };
    // On the heap, so that requests stay small that need no conversion.
    let converted = webhook.convert(server, vec![object.clone()], &version);
    let mut converted = Box::pin(converted).await?;
    let mut object = converted.pop().unwrap_or_default();
    complete(resource, &mut object);
    Ok(object)
}

/// The entries of a list with their documents in the version of a resource; those that need it
/// are converted together.
pub(crate) async fn entries(
    server: &Server,
    resource: &Resource,
    mut entries: Vec<Entry>,
) -> Result<Vec<Entry>> {
    if let Some(webhook) = webhook(resource) {
        all(server, (resource, webhook), entries.iter_mut().collect()).await?;
    }
    Ok(entries)
}

/// The events of a watch with their documents in the version of a resource.
pub(crate) async fn events(
    server: &Server,
    resource: &Resource,
    events: Vec<Arc<Event>>,
) -> Result<Vec<Arc<Event>>> {
    let Some(webhook) = webhook(resource) else { return Ok(events) };
    let mut events: Vec<Event> = events.into_iter().map(Arc::unwrap_or_clone).collect();
    let entries = events.iter_mut().flat_map(|event| [&mut event.current, &mut event.previous]);
    all(server, (resource, webhook), entries.flatten().collect()).await?;
    Ok(events.into_iter().map(Arc::new).collect())
}

async fn all(
    server: &Server,
    (resource, webhook): (&Resource, &Webhook),
    mut entries: Vec<&mut Entry>,
) -> Result<()> {
    let version = resource.api_version();
    entries.retain(|entry| !Stored::from(&**entry).speaks(&version));
    let objects = entries.iter().map(|entry| Stored::from(&**entry).decode_as_stored());
    let objects = objects.collect::<Result<Vec<_>>>()?;
    let converted = Box::pin(webhook.convert(server, objects, &version)).await?;
    for (entry, mut object) in entries.into_iter().zip(converted) {
        complete(resource, &mut object);
        entry.value = encode(&object)?;
    }
    Ok(())
}

/// Whether a stored document speaks the version in which its resource is stored now.
pub(crate) fn is_stored_right(resource: &Resource, stored: &Stored) -> bool {
    resource.conversion.as_ref().is_none_or(|conversion| stored.speaks(&conversion.storage))
}

/// The document of an object that is about to be written, in the storage version; `None` if it
/// already speaks that.
pub(crate) async fn to_storage(
    server: &Server,
    resource: &Resource,
    object: &Value,
) -> Result<Option<Bytes>> {
    let Some(conversion) = &resource.conversion else { return Ok(None) };
    if object["apiVersion"] == conversion.storage {
        return Ok(None);
    }
    let mut stored = match &conversion.webhook {
        Some(webhook) => {
            let converted = webhook.convert(server, vec![object.clone()], &conversion.storage);
            Box::pin(converted).await?.pop().unwrap_or_default()
        }
        None => object.clone(),
    };
    convert::to_api_version(&mut stored, &conversion.storage);
    encode(&stored).map(Some)
}

/// Drops what the schema of the new version does not know, and fills in its defaults.
fn complete(resource: &Resource, object: &mut Value) {
    resource.schema.prune(object);
    resource.schema.apply_defaults(object);
}
