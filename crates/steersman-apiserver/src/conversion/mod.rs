//! Custom resources in several versions: in which they are stored, and who converts them.
//!
//! A definition whose strategy is `None` changes nothing but `apiVersion`, which
//! [`versions`] does wherever a document is decoded. With the strategy `Webhook`
//! documents are converted before anybody looks at them: what comes from here speaks the version
//! of the request, and what goes into the store speaks the storage version. Documents that
//! already speak the right version are not touched, so whoever reads the storage version pays
//! nothing. Nothing is locked while a webhook is asked. [`known`] is for server-side apply, which
//! must compare objects in the versions of all who own fields of it.

mod conversion_review;
mod known;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use steersman_store::{Entry, Event};

pub(crate) use known::Known;
use steersman_rules::resource::Resource;
use steersman_rules::versions;

use crate::document::{Stored, encode};
use crate::state::Server;
use crate::status::Result;
use crate::webhook_client::Converter;

/// The webhook that converts objects of a resource.
fn webhook(resource: &Resource) -> Option<&Converter> {
    resource.converter.as_ref()?.get()
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
        versions::to_api_version(&mut object, &version);
        return Ok(object);
    };
    // On the heap, so that requests stay small that need no conversion.
    let converted = webhook.convert(server, vec![object.clone()], &version);
    let mut converted = Box::pin(converted).await?;
    let mut object = converted.pop().unwrap_or_default();
    complete(resource, &mut object)?;
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
        all(server, resource, webhook, entries.iter_mut().collect()).await?;
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
    all(server, resource, webhook, entries.flatten().collect()).await?;
    Ok(events.into_iter().map(Arc::new).collect())
}

async fn all(
    server: &Server,
    resource: &Resource,
    webhook: &Converter,
    mut entries: Vec<&mut Entry>,
) -> Result<()> {
    let version = resource.api_version();
    entries.retain(|entry| !Stored::from(&**entry).speaks(&version));
    let objects = entries.iter().map(|entry| Stored::from(&**entry).decode_as_stored());
    let objects = objects.collect::<Result<Vec<_>>>()?;
    let converted = Box::pin(webhook.convert(server, objects, &version)).await?;
    for (entry, mut object) in entries.into_iter().zip(converted) {
        complete(resource, &mut object)?;
        entry.value = encode(&object)?;
    }
    Ok(())
}

/// Whether a stored document speaks the version in which its resource is stored now.
pub(crate) fn is_stored_right(resource: &Resource, stored: &Stored) -> bool {
    resource.stored_as.as_ref().is_none_or(|version| stored.speaks(version))
}

/// The document of an object that is about to be written, in the storage version; `None` if it
/// already speaks that.
pub(crate) async fn to_storage(
    server: &Server,
    resource: &Resource,
    object: &Value,
) -> Result<Option<Bytes>> {
    let Some(version) = &resource.stored_as else { return Ok(None) };
    if object["apiVersion"] == **version {
        return Ok(None);
    }
    let mut stored = match webhook(resource) {
        Some(webhook) => {
            let converted = webhook.convert(server, vec![object.clone()], version);
            Box::pin(converted).await?.pop().unwrap_or_default()
        }
        None => object.clone(),
    };
    versions::to_api_version(&mut stored, version);
    encode(&stored).map(Some)
}

/// Drops what the schema of the new version does not know, and fills in its defaults.
fn complete(resource: &Resource, object: &mut Value) -> Result<()> {
    resource.schema.prune(object);
    Ok(resource.schema.apply_defaults(object)?)
}
