//! Objects live in namespaces that exist and stay.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::Writer;
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

/// Refuses to create an object in a namespace that does not exist or is being deleted.
pub(super) async fn accepts(writer: &Writer<'_>, namespace: &str, name: &str) -> Result<()> {
    if !writer.resource.namespaced {
        return Ok(());
    }
    let missing = Named { group: "", resource: "namespaces", name: namespace };
    let entry = writer.server.get(&format!("/registry/namespaces/{namespace}")).await?;
    let entry = entry.ok_or_else(|| Status::not_found(missing))?;
    let stored: Result<Namespace, _> = serde_json::from_slice(&entry.value);
    if stored.is_ok_and(|namespace| namespace.metadata.deletion_timestamp.is_some()) {
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let cause = Cause {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        return Err(Status::forbidden(writer.resource.named(name), &why, vec![cause]));
    }
    Ok(())
}
