//! What webhooks are asked about: one operation on one object.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use steersman_rules::resource::{Place, Resource};

use super::{admission_review, dispatch};
use crate::admission_registration::{Hooks, Operation};
use crate::call::Call;
use crate::status::Result;

/// One operation on one object. The objects themselves come with the questions, for they change.
pub(crate) struct Request<'a> {
    pub(super) hooks: Arc<Hooks>,
    pub(super) call: &'a Call,
    pub(super) resource: &'a Resource,
    pub(super) subresource: &'a str,
    pub(super) operation: Operation,
    pub(super) place: Place<'a>,
    pub(super) options: Value,
    pub(super) dry_run: bool,
    /// The other versions of the resource, found when first needed.
    pub(super) equivalents: OnceLock<Vec<Arc<Resource>>>,
}

/// What is asked about.
#[derive(Clone, Copy)]
pub(crate) struct About<'a> {
    pub(crate) operation: Operation,
    pub(crate) resource: &'a Resource,
    pub(crate) subresource: &'a str,
    pub(crate) place: Place<'a>,
    pub(crate) dry_run: bool,
}

impl<'a> Request<'a> {
    /// What a call asks webhooks.
    pub(crate) fn of(call: &'a Call, hooks: Arc<Hooks>, about: About<'a>) -> Self {
        let About { operation, resource, subresource, place, dry_run } = about;
        Self {
            hooks,
            call,
            resource,
            subresource,
            operation,
            place,
            options: options(call, operation),
            dry_run,
            equivalents: OnceLock::new(),
        }
    }

    /// The same, with options that are not in the query.
    pub(crate) fn with_options(self, options: Value) -> Self {
        Self { options, ..self }
    }

    /// Asks about the body of a POST below an object, such as a Binding: it may be changed, and
    /// refused.
    pub(crate) async fn body(call: &Call, dry_run: bool, body: &mut Value) -> Result<()> {
        let Some(hooks) = call.server.webhooks.of(&call.resource) else { return Ok(()) };
        let request = Request::of(
            call,
            hooks,
            About {
                operation: Operation::Create,
                resource: &call.resource,
                subresource: call.subresource(),
                place: call.place(),
                dry_run,
            },
        );
        admission_review::name_kind(body, &call.resource, call.subresource());
        request.mutate(body, None).await?;
        request.validate(Some(body), None).await
    }

    /// Lets mutating webhooks change an object; says whether one did.
    pub(crate) async fn mutate(&self, object: &mut Value, old: Option<&Value>) -> Result<bool> {
        if self.hooks.mutating.is_empty() {
            return Ok(false);
        }
        let mut current = Some(std::mem::take(object));
        // On the heap, so that requests stay small that nobody is asked about.
        let changed = Box::pin(dispatch::mutate(self, &mut current, old)).await;
        *object = current.unwrap_or_default();
        changed
    }

    /// Asks all webhooks whether an object may be deleted.
    pub(crate) async fn delete(&self, old: &Value) -> Result<()> {
        Box::pin(dispatch::mutate(self, &mut None, Some(old))).await?;
        self.validate(None, Some(old)).await
    }

    /// Asks validating webhooks whether an object may be written.
    pub(crate) async fn validate(&self, object: Option<&Value>, old: Option<&Value>) -> Result<()> {
        if self.hooks.validating.is_empty() {
            return Ok(());
        }
        Box::pin(dispatch::validate(self, object, old)).await
    }

    /// The namespace that the request is about: of a namespace, that itself.
    pub(super) fn namespace(&self) -> &'a str {
        if self.resource.is("", "namespaces") { self.place.name } else { self.place.namespace }
    }

    /// The other versions in which the resource is served.
    pub(super) fn equivalents(&self) -> &[Arc<Resource>] {
        self.equivalents.get_or_init(|| {
            let table = self.call.server.registry.table();
            let same = |other: &&Arc<Resource>| {
                other.storage_prefix == self.resource.storage_prefix
                    && (&other.group, &other.version)
                        != (&self.resource.group, &self.resource.version)
            };
            table.resources().filter(same).cloned().collect()
        })
    }
}

/// The options of a write, from its query.
fn options(call: &Call, operation: Operation) -> Value {
    let kind = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete => "DeleteOptions",
    };
    let mut options = json!({"kind": kind, "apiVersion": "meta.k8s.io/v1"});
    let query = &call.info.query;
    for field in ["fieldManager", "fieldValidation"] {
        if let Some(text) = query.text(field) {
            options[field] = text.into();
        }
    }
    let dry_run: Vec<&str> = query.all("dryRun").collect();
    if !dry_run.is_empty() {
        options["dryRun"] = dry_run.into();
    }
    options
}
