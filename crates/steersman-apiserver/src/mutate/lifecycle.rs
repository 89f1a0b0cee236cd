//! Objects live in namespaces that exist and stay.
//!
//! A create looks at its namespace once, before it writes: what this server has heard of is enough
//! to go on, and what is not there is looked for in the store. That the namespace did not begin to go
//! meanwhile, unseen by whoever empties it, is told by [`Endings`](crate::state::endings::Endings): only if a namespace began to
//! go between the two moments is it read again.

use serde::Deserialize;
use serde::de::IgnoredAny;
use steersman_store::Entry;

use super::Writer;
use crate::state::endings::Moment;
use crate::status::{Cause, Named, Result, Status};

#[derive(Deserialize)]
struct Namespace {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    deletion_timestamp: Option<IgnoredAny>,
}

/// Refuses to create an object in a namespace that does not exist or is being deleted. Gives the
/// moment of which this is true.
pub(super) async fn accepts(writer: &Writer<'_>, namespace: &str, name: &str) -> Result<Moment> {
    let moment = writer.server.endings.moment();
    if !writer.resource.namespaced {
        return Ok(moment);
    }
    let missing = Named { group: "", resource: "namespaces", name: namespace };
    let key = format!("/registry/namespaces/{namespace}");
    if writer.server.known(&key).await?.is_some_and(|entry| stays(&entry)) {
        return Ok(moment);
    }
    let entry = writer.server.get(&key).await?.ok_or_else(|| Status::not_found(missing))?;
    if stays(&entry) { Ok(moment) } else { Err(terminating(writer, namespace, name)) }
}

/// Whether a namespace is not being deleted.
fn stays(entry: &Entry) -> bool {
    let stored: Result<Namespace, _> = serde_json::from_slice(&entry.value);
    !stored.is_ok_and(|namespace| namespace.metadata.deletion_timestamp.is_some())
}

/// Refuses an object, written since a moment, whose namespace has begun to go since.
pub(super) async fn still_accepts(
    writer: &Writer<'_>,
    namespace: &str,
    name: &str,
    since: Moment,
) -> Result<()> {
    if !writer.resource.namespaced || writer.server.endings.none_since(since) {
        return Ok(());
    }
    accepts(writer, namespace, name).await.map(drop)
}

fn terminating(writer: &Writer<'_>, namespace: &str, name: &str) -> Status {
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let cause = Cause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    };
    Status::forbidden(writer.resource.named(name), &why, vec![cause])
}
