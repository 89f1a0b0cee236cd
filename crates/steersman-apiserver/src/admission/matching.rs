//! Whether a webhook or policy is about a request, and in which version.

use std::sync::Arc;

use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::Named;
use steersman_rules::resource::Resource;
use steersman_rules::selector::LabelSelector;

use super::request::Request;
use crate::admission_registration::{Operation, Rule, Subject, Webhook};
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
    let matches = |rule: &Rule, subject: Subject<'_>| rule.matches(subject);
    let Some(version) = by_rules(request, &webhook.rules, webhook.equivalent, matches) else {
        return Ok(None);
    };
    let wanted = selected(&webhook.objects, object, old)
        && in_namespace(request, &webhook.namespaces, object).await?;
    Ok(wanted.then_some(version))
}

/// The version of the request that rules name, if any; another one only if that is as good.
pub(super) fn by_rules<R>(
    request: &Request<'_>,
    rules: &[R],
    equivalent: bool,
    matches: impl Fn(&R, Subject<'_>) -> bool,
) -> Option<Version> {
    let operation = request.operation;
    let subresource = request.subresource;
    let subject = |resource| Subject { operation, resource, subresource };
    if rules.iter().any(|rule| matches(rule, subject(request.resource))) {
        return Some(Version::Same);
    }
    if !equivalent {
        return None;
    }
    // Earlier rules come first, whichever version they name.
    rules.iter().find_map(|rule| {
        let mut others = request.equivalents().iter();
        let other = others.find(|other| matches(rule, subject(other)))?;
        Some(Version::Other(Arc::clone(other)))
    })
}

/// Whether a selector wants the object, as it was or as it will be.
pub(super) fn selected(
    selector: &LabelSelector,
    object: Option<&Value>,
    old: Option<&Value>,
) -> bool {
    let selected = |object: Option<&Value>| object.is_some_and(|o| labelled(selector, o));
    selector.is_empty() || selected(object) || selected(old)
}

/// Whether the namespace of the object is one of those that a webhook or policy is for. What lives
/// in none, and is none, is for everybody.
pub(super) async fn in_namespace(
    request: &Request<'_>,
    selector: &LabelSelector,
    object: Option<&Value>,
) -> Result<bool> {
    let namespace = request.namespace();
    let is_namespace = request.resource.is("", "namespaces");
    if selector.is_empty() || (namespace.is_empty() && !is_namespace) {
        return Ok(true);
    }
    let written = is_namespace
        && request.subresource.is_empty()
        && matches!(request.operation, Operation::Create | Operation::Update);
    if let Some(object) = object.filter(|_| written) {
        return Ok(labelled(selector, object));
    }
    Ok(labelled(selector, &stored_namespace(request, namespace).await?))
}

/// A namespace, as far as this server has heard of it, else as it is.
pub(super) async fn stored_namespace(request: &Request<'_>, name: &str) -> Result<Value> {
    let server = &request.call.server;
    let key = format!("/registry/namespaces/{name}");
    let entry = match server.known(&key).await? {
        None => server.get(&key).await?,
        known => known,
    };
    let missing = Named { group: "", resource: "namespaces", name };
    let entry = entry.ok_or_else(|| Status::not_found(missing))?;
    Stored::from(&entry).decode("v1")
}

pub(super) fn labelled(selector: &LabelSelector, object: &Value) -> bool {
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
