//! What plug-ins, policies and webhooks are asked about: one operation on one object.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use steersman_rules::resource::{Place, Resource};

use crate::admission_policies::Candidates;
use crate::admission_registration::{Hooks, Operation};
use crate::call::Call;
use crate::state::effects::Taken;
use crate::state::plugins::{Attributes, Concerned};
use crate::status::Result;

/// One operation on one object. The objects themselves come with the questions, for they change.
pub(crate) struct Request<'a> {
    /// The plug-ins that have a say.
    pub(super) plugins: Concerned<'a>,
    /// The webhooks that may have one.
    pub(super) hooks: Option<Arc<Hooks>>,
    /// The policies that may be about it.
    pub(super) policies: Option<Candidates>,
    pub(super) call: &'a Call,
    pub(super) resource: &'a Resource,
    pub(super) subresource: &'a str,
    pub(super) operation: Operation,
    pub(super) place: Place<'a>,
    /// The options of a deletion, which are not in the query.
    options: Option<Value>,
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
    /// What a call asks plug-ins and webhooks; `None` if nobody wants to be asked.
    pub(crate) fn of(call: &'a Call, hooks: Option<Arc<Hooks>>, about: About<'a>) -> Option<Self> {
        let About { operation, resource, subresource, place, dry_run } = about;
        let mut request = Self {
            plugins: Concerned::default(),
            hooks,
            policies: None,
            call,
            resource,
            subresource,
            operation,
            place,
            options: None,
            dry_run,
            equivalents: OnceLock::new(),
        };
        // What leads to a node is no write, and plug-ins judge writes.
        if operation != Operation::Connect {
            request.plugins = call.server.plugins.concerned(&request.attributes());
        }
        request.policies = call.server.policies.of(resource, || request.equivalents().to_vec());
        let nobody =
            request.hooks.is_none() && request.policies.is_none() && request.plugins.is_empty();
        (!nobody).then_some(request)
    }

    /// The same, with options that are not in the query.
    pub(crate) fn with_options(self, options: Value) -> Self {
        Self { options: Some(options), ..self }
    }

    /// Lets plug-ins change an object; says whether one did.
    pub(super) async fn admit(&self, object: &mut Value, old: Option<&Value>) -> Result<bool> {
        self.plugins.admit(self.attributes(), object, old).await
    }

    /// Lets plug-ins take what the write of an object needs that nobody has refused.
    pub(crate) async fn take(
        &self,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<Box<dyn Taken>>> {
        self.plugins.take(self.attributes(), object, old).await
    }

    /// The write, as plug-ins see it.
    pub(super) fn attributes(&self) -> Attributes<'a> {
        Attributes {
            server: &self.call.server,
            user: &self.call.user,
            operation: self.operation,
            resource: self.resource,
            subresource: self.subresource,
            place: self.place,
            dry_run: self.dry_run,
            warnings: &self.call.warnings,
            trail: self.call.trail.as_deref(),
        }
    }

    /// The options of the operation.
    pub(super) fn options(&self) -> Value {
        self.options.clone().unwrap_or_else(|| options(self.call, self.operation))
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
    if operation == Operation::Connect {
        return Value::Null;
    }
    let kind = match operation {
        Operation::Create => "CreateOptions",
        Operation::Update => "UpdateOptions",
        Operation::Delete | Operation::Connect => "DeleteOptions",
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
