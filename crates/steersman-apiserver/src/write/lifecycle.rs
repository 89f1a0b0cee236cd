//! Objects live in namespaces that exist and stay: the plug-in `NamespaceLifecycle`, which is here
//! because looking once before the write is not enough.
//!
//! A create looks at its namespace before it writes: what this server has heard of is enough to go
//! on, and what is not there is looked for in the store. Once it has written, it looks at the
//! namespace as it was at that very revision: if it was not going then, whoever empties it later
//! finds the object, whatever this or another server had heard by then. While the plug-in is off
//! nobody looks. With `NamespaceAutoProvision` a namespace that is not there is made first.

use futures::future::BoxFuture;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::json;
use steersman_rules::resource::Named;
use steersman_store::{Entry, Revision};

use super::create::create_object;
use super::{Tracking, Writer};
use crate::document::metadata_of;
use crate::status::{Cause, Result, Status};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    deletion_timestamp: Option<IgnoredAny>,
}

/// Refuses to create an object in a namespace that does not exist or is being deleted. Gives the
/// revision of the namespace that says so.
pub(super) async fn accepts(
    writer: &Writer<'_>,
    namespace: &str,
    name: &str,
) -> Result<Option<Revision>> {
    if !writer.resource.namespaced {
        return Ok(None);
    }
    let plugins = &writer.server.plugins;
    if plugins.namespace_provision && writer.call.is_some() && !writer.dry_run {
        provide(writer, namespace, name).await?;
    }
    if !plugins.namespace_lifecycle {
        return Ok(None);
    }
    let missing = Named { group: "", resource: "namespaces", name: namespace };
    let key = key(namespace);
    if let Some(known) = writer.server.known(&key).await?.filter(stays) {
        return Ok(Some(known.modified));
    }
    let entry = writer.server.get(&key).await?.ok_or_else(|| Status::not_found(missing))?;
    if stays(&entry) { Ok(Some(entry.modified)) } else { Err(terminating(writer, namespace, name)) }
}

/// Refuses an object that was written at a revision at which its namespace, last `seen` as it was
/// at another, was going or gone.
pub(super) async fn accepted(
    writer: &Writer<'_>,
    namespace: &str,
    name: &str,
    seen: Option<Revision>,
    written: Revision,
) -> Result<()> {
    // If that cannot be told any more, the object is there all the same.
    let Some(seen) = seen else { return Ok(()) };
    let Ok(found) = writer.server.at(&key(namespace), written).await else { return Ok(()) };
    match found {
        Some(entry) if entry.modified == seen || stays(&entry) => Ok(()),
        _ => Err(terminating(writer, namespace, name)),
    }
}

/// Makes a namespace that is not there. Boxed, for it is itself created on this way.
fn provide<'a>(
    writer: &'a Writer<'a>,
    namespace: &'a str,
    name: &'a str,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        if writer.server.known(&key(namespace)).await?.is_some() {
            return Ok(());
        }
        let table = writer.server.registry.table();
        let namespaces = table.get("", "v1", "namespaces").ok_or_else(Status::no_such_resource)?;
        let object = json!({
            "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace},
        });
        let own = Writer::internal(writer.server, namespaces);
        match create_object(&own, "", object, Tracking::Record).await {
            Err(status) if status.reason != "AlreadyExists" => {
                let named = writer.resource.named(name);
                Err(Status::forbidden(named, &status.message, Vec::new()))
            }
            _ => Ok(()),
        }
    })
}

fn key(namespace: &str) -> String {
    format!("/registry/namespaces/{namespace}")
}

/// Whether a namespace is not being deleted.
fn stays(entry: &Entry) -> bool {
    let namespace: Result<Metadata> = metadata_of(&entry.value);
    !namespace.is_ok_and(|namespace| namespace.deletion_timestamp.is_some())
}

fn terminating(writer: &Writer<'_>, namespace: &str, name: &str) -> Status {
    let why = Cause::no_new_content(namespace);
    let cause = Cause::namespace_terminating(namespace);
    Status::forbidden(writer.resource.named(name), &why, vec![cause])
}
