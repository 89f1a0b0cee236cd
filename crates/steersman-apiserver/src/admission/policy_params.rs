//! The parameters of a policy, as a binding refers to them.

use std::sync::Arc;

use serde_json::Value;
use steersman_rules::resource::{Place, Resource};
use steersman_store::RangeRequest;

use super::matching::labelled;
use super::request::Request;
use crate::admission_policies::ParamRef;
use crate::conversion;
use crate::document::Stored;
use crate::state::Server;
use crate::status::{Result as StatusResult, Status};

/// The resource that parameters are of; fails with why there is none.
pub(super) fn resource(
    server: &Server,
    (version, kind): &(String, String),
) -> Result<Arc<Resource>, String> {
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let table = server.registry.table();
    let mut resources = table.resources();
    let is = |resource: &&Arc<Resource>| {
        resource.group == group && resource.version == version && *resource.kind == **kind
    };
    resources.find(is).cloned().ok_or_else(|| {
        format!("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")
    })
}

/// The parameters that a binding refers to: each is one evaluation. Without a kind of parameters, or
/// without a reference, there is one evaluation without any. Fails with why there are none.
pub(super) async fn collect(
    request: &Request<'_>,
    resource: Option<&Resource>,
    reference: Option<&ParamRef>,
) -> Result<Vec<Value>, String> {
    let (Some(resource), Some(reference)) = (resource, reference) else {
        return Ok(vec![Value::Null]);
    };
    let mut namespace = "";
    if resource.namespaced {
        namespace = match reference.namespace.as_str() {
            "" => request.namespace(),
            given => given,
        };
        if namespace.is_empty() {
            return Err("cannot use namespaced paramRef in policy binding that matches \
                        cluster-scoped resources"
                .to_owned());
        }
    } else if !reference.namespace.is_empty() {
        return Err(
            "paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned()
        );
    }
    let server = &request.call.server;
    let found = match reference.name.as_str() {
        "" => selected(server, resource, namespace, reference).await,
        name => named(server, resource, Place { namespace, name }).await,
    };
    let found = found.map_err(|status: Status| status.message)?;
    if found.is_empty() && reference.denies {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned()
        );
    }
    Ok(found)
}

async fn named(server: &Server, resource: &Resource, place: Place<'_>) -> StatusResult<Vec<Value>> {
    let entry = server.known(&resource.key(place)).await?;
    let Some(entry) = entry else { return Ok(Vec::new()) };
    Ok(vec![decoded(server, resource, Stored::from(&entry)).await?])
}

async fn selected(
    server: &Server,
    resource: &Resource,
    namespace: &str,
    reference: &ParamRef,
) -> StatusResult<Vec<Value>> {
    let prefix = resource.prefix(namespace);
    let range = RangeRequest { prefix, stale: true, ..RangeRequest::default() };
    let mut found = Vec::new();
    for entry in server.store.range(range).await?.entries {
        let object = decoded(server, resource, Stored::from(&entry)).await?;
        if reference.selector.as_ref().is_some_and(|selector| labelled(selector, &object)) {
            found.push(object);
        }
    }
    Ok(found)
}

async fn decoded(server: &Server, resource: &Resource, stored: Stored) -> StatusResult<Value> {
    let stored = conversion::read(server, resource, stored).await?;
    stored.decode(&resource.api_version())
}
