//! Custom resources in several versions: in which they are stored, and who converts them.
//!
//! A definition whose versions all know the same changes nothing but `apiVersion`, which
//! [`versions`] does wherever a document is decoded. Those of another one carry a [`Strategy`].
//! What is written then is converted to the storage version, whose schema prunes it; what is read
//! is what the version in which it lies makes of it (its schema prunes and fills in defaults),
//! converted, and pruned by the version of the request. Defaults of the request's version are
//! filled in only in what a client sends. Kubernetes does the same, in the codec of the store
//! ([`schemaCoercingConverter`](https://github.com/kubernetes/apiextensions-apiserver/blob/v0.36.4/pkg/apiserver/customresource_handler.go)).
//!
//! With the strategy `Webhook` documents are converted before anybody looks at them: what comes
//! from here speaks the version of the request, and what goes into the store speaks the storage
//! version. With `None` lists and watches do so one by one, when they tell an object ([`shown`]).
//! Documents that already speak the right version are not touched, so whoever reads the storage
//! version pays nothing. What lies in a version that its definition has no more is told to nobody,
//! whatever the strategy. Nothing is locked while a webhook is asked. [`known`] is for server-side
//! apply, which must compare objects in the versions of all who own fields of it.

mod conversion_review;
mod known;
mod strategy;

use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use steersman_store::{Entry, Event};

pub(crate) use known::Known;
use steersman_rules::resource::Resource;
use steersman_rules::versions;
pub(crate) use strategy::Strategy;
use strategy::prune;

use crate::document::{Growth, Stored, encode};
use crate::state::Server;
use crate::status::Result;
use crate::webhook_client::Converter;

/// The webhook that converts objects of a resource, and the strategy that says so.
fn asked(resource: &Resource) -> Option<(&Strategy, &Converter)> {
    let strategy = Strategy::of(resource)?;
    Some((strategy, strategy.webhook()?))
}

/// Whether a webhook converts objects of a resource between its versions.
pub(crate) fn asks(resource: &Resource) -> bool {
    asked(resource).is_some()
}

/// Whether it takes more than to change `apiVersion` to read objects of a resource.
pub(crate) fn is_needed(resource: &Resource) -> bool {
    Strategy::of(resource).is_some()
}

/// A stored object as its resource has it now: in its version, by the schemas of both versions.
pub(crate) async fn read(server: &Server, resource: &Resource, stored: Stored) -> Result<Stored> {
    Strategy::check(resource, &stored.bytes)?;
    let Some(strategy) = Strategy::of(resource) else {
        return Ok(stored.refreshed(&resource.schema));
    };
    let stored = strategy.refreshed(stored, &mut Growth::default());
    let version = resource.api_version();
    if stored.speaks(&version) {
        return Ok(stored);
    }
    let object = stored.decode_as_stored()?;
    let mut object = converted(server, resource, object, &version).await?;
    prune(&resource.schema, &mut object);
    Ok(Stored { bytes: encode(&object)?, revision: stored.revision })
}

/// A stored object as its resource has it now, after [`entries`] or [`events`]: what these have
/// asked a webhook about is right already.
pub(crate) fn shown(resource: &Resource, stored: Stored, growth: &mut Growth) -> Stored {
    let Some(strategy) = Strategy::of(resource) else {
        return growth.refreshed(stored, &resource.schema);
    };
    if strategy.webhook().is_some() {
        return stored;
    }
    let stored = strategy.refreshed(stored, growth);
    if stored.speaks(&resource.api_version()) {
        return stored;
    }
    strategy::read(resource, &stored).unwrap_or(stored)
}

/// An object in the version of a resource, with all that the conversion leaves in it: so admission
/// and server-side apply see it.
pub(crate) async fn object(server: &Server, resource: &Resource, object: &Value) -> Result<Value> {
    let version = resource.api_version();
    if object["apiVersion"] == version {
        return Ok(object.clone());
    }
    converted(server, resource, object.clone(), &version).await
}

async fn converted(
    server: &Server,
    resource: &Resource,
    mut object: Value,
    version: &str,
) -> Result<Value> {
    let Some((_, webhook)) = asked(resource) else {
        versions::to_api_version(&mut object, version);
        return Ok(object);
    };
    // On the heap, so that requests stay small that need no conversion.
    let converted = webhook.convert(server, vec![object], version);
    let mut converted = Box::pin(converted).await?;
    Ok(converted.pop().unwrap_or_default())
}

/// The entries of a list; those that a webhook has to convert are converted together.
pub(crate) async fn entries(
    server: &Server,
    resource: &Resource,
    mut entries: Vec<Entry>,
) -> Result<Vec<Entry>> {
    check(resource, &entries)?;
    if asks(resource) {
        all(server, resource, entries.iter_mut().collect()).await?;
    }
    Ok(entries)
}

/// The events of a watch; those that a webhook has to convert are converted together.
pub(crate) async fn events(
    server: &Server,
    resource: &Resource,
    events: Vec<Arc<Event>>,
) -> Result<Vec<Arc<Event>>> {
    for event in &events {
        check(resource, event.current.iter().chain(&event.previous))?;
    }
    if !asks(resource) {
        return Ok(events);
    }
    let mut events: Vec<Event> = events.into_iter().map(Arc::unwrap_or_clone).collect();
    let entries = events.iter_mut().flat_map(|event| [&mut event.current, &mut event.previous]);
    all(server, resource, entries.flatten().collect()).await?;
    Ok(events.into_iter().map(Arc::new).collect())
}

/// Refuses what lies in a version that a definition has no more.
fn check<'a>(resource: &Resource, entries: impl IntoIterator<Item = &'a Entry>) -> Result<()> {
    if !resource.is_custom() {
        return Ok(());
    }
    entries.into_iter().try_for_each(|entry| Strategy::check(resource, &entry.value))
}

/// Lets a webhook convert the documents that need it. None of them is looked at again, so the
/// others are brought up to date as well.
async fn all(server: &Server, resource: &Resource, entries: Vec<&mut Entry>) -> Result<()> {
    let Some((strategy, webhook)) = asked(resource) else { return Ok(()) };
    let version = resource.api_version();
    let mut growth = Growth::default();
    let mut others = Vec::new();
    let mut objects = Vec::new();
    for entry in entries {
        let stored = strategy.refreshed(Stored::from(&*entry), &mut growth);
        if stored.speaks(&version) {
            entry.value = stored.bytes;
        } else {
            objects.push(stored.decode_as_stored()?);
            others.push(entry);
        }
    }
    let converted = Box::pin(webhook.convert(server, objects, &version)).await?;
    for (entry, mut object) in others.into_iter().zip(converted) {
        prune(&resource.schema, &mut object);
        entry.value = encode(&object)?;
    }
    Ok(())
}

/// Whether an object lies in the store as a write by its resource that changes nothing would leave
/// it: in the version in which it is stored now, and without what the version of the resource does
/// not know. What a webhook would make of it is not asked.
pub(crate) fn is_stored_right(resource: &Resource, stored: &Stored) -> bool {
    let Some(version) = &resource.stored_as else { return true };
    if !stored.speaks(version) {
        return false;
    }
    let strategy = Strategy::of(resource).filter(|strategy| strategy.webhook().is_none());
    let Some(strategy) = strategy.filter(|_| !stored.speaks(&resource.api_version())) else {
        return true;
    };
    strategy.survives(resource, stored).unwrap_or(true)
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
    let mut stored = converted(server, resource, object.clone(), version).await?;
    if let Some(strategy) = Strategy::of(resource) {
        strategy.settle(version, &mut stored)?;
    }
    encode(&stored).map(Some)
}
