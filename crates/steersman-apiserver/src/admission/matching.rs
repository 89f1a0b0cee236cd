//! Whether a webhook wants to be asked about a request, and in which version.

use std::sync::Arc;

use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::Named;
use steersman_rules::resource::Resource;
use steersman_rules::selector::LabelSelector;

use super::request::Request;
use crate::admission_registration::{Operation, Subject, Webhook};
use crate::document::Stored;
use crate::status::{Result, Status};

/// The version of the resource that a webhook is asked in.
#[derive(Clone, Debug)]
pub(super) enum Version {
    /// The one of the request.
    Same,
    /// Another in which it is served as well.
    Other(Arc<Resource>),
}

/// Which version to ask a webhook in; `None` if it does not want to be asked. Its conditions are
/// looked at in that version.
pub(super) async fn version(
    request: &Request<'_>,
    webhook: &Webhook,
    object: Option<&Value>,
    old: Option<&Value>,
) -> Result<Option<Version>> {
    let Some(version) = by_rules(request, webhook) else { return Ok(None) };
    let selected = |object: Option<&Value>| object.is_some_and(|o| labelled(&webhook.objects, o));
    if !webhook.objects.is_empty() && !selected(object) && !selected(old) {
        return Ok(None);
    }
    if !in_namespace(request, webhook, object).await? {
        return Ok(None);
    }
    Ok(Some(version))
}

fn by_rules(request: &Request<'_>, webhook: &Webhook) -> Option<Version> {
    let operation = request.operation;
    let subresource = request.subresource;
    let subject = |resource| Subject { operation, resource, subresource };
    if webhook.rules.iter().any(|rule| rule.matches(subject(request.resource))) {
        return Some(Version::Same);
    }
    if !webhook.equivalent {
        return None;
    }
    // Earlier rules come first, whichever version they name.
    webhook.rules.iter().find_map(|rule| {
        let mut others = request.equivalents().iter();
        let other = others.find(|other| rule.matches(subject(other)))?;
        Some(Version::Other(Arc::clone(other)))
    })
}

/// Whether the namespace of the object is one of those that the webhook is for. What lives in
/// none, and is none, is for everybody.
async fn in_namespace(
    request: &Request<'_>,
    webhook: &Webhook,
    object: Option<&Value>,
) -> Result<bool> {
    let namespace = request.namespace();
    let is_namespace = request.resource.is("", "namespaces");
    if webhook.namespaces.is_empty() || (namespace.is_empty() && !is_namespace) {
        return Ok(true);
    }
    let written = is_namespace
        && request.subresource.is_empty()
        && matches!(request.operation, Operation::Create | Operation::Update);
    if let Some(object) = object.filter(|_| written) {
        return Ok(labelled(&webhook.namespaces, object));
    }
    let server = &request.call.server;
    let key = format!("/registry/namespaces/{namespace}");
    let entry = match server.known(&key).await? {
        None => server.get(&key).await?,
        known => known,
    };
    let missing = Named { group: "", resource: "namespaces", name: namespace };
    let entry = entry.ok_or_else(|| Status::not_found(missing))?;
    Ok(labelled(&webhook.namespaces, &Stored::from(&entry).decode("v1")?))
}

fn labelled(selector: &LabelSelector, object: &Value) -> bool {
    let labels = &object["metadata"]["labels"];
    selector.matches(|key| labels[key].as_str())
}

impl Version {
    /// The resource in this version.
    pub(super) fn resource<'a>(&'a self, request: &'a Request<'_>) -> &'a Resource {
        match self {
            Self::Same => request.resource,
            Self::Other(resource) => resource,
        }
    }
}

impl Request<'_> {
    /// How errors of the object's metadata name it.
    pub(super) fn object_name(&self, object: Option<&Value>) -> String {
        // A name may be generated after the client has sent none.
        match (self.place.name, object) {
            ("", Some(object)) => metadata::text(object, "name").to_owned(),
            (name, _) => name.to_owned(),
        }
    }
}
