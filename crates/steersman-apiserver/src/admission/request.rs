//! What plug-ins, policies and webhooks are asked about: one operation on one object.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use steersman_rules::resource::{Place, Resource};
use tokio::time::Instant;

use super::{admission_review, dispatch, policy_validation, rounds};
use crate::admission_policies::Candidates;
use crate::admission_registration::{Hooks, Operation};
use crate::call::Call;
use crate::metrics::Step;
use crate::state::effects::Taken;
use crate::state::plugins::{Attributes, Concerned};
use crate::status::Result;

/// One operation on one object. The objects themselves come with the questions, for they change.
pub(crate) struct Request<'a> {
    /// The plug-ins that have a say.
    plugins: Concerned<'a>,
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

/// Who has changed an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changes {
    pub(crate) plugins: bool,
    /// Whether webhooks or policies did.
    pub(crate) webhooks: bool,
}

impl Changes {
    /// Whether anybody has.
    pub(crate) fn any(self) -> bool {
        self.plugins || self.webhooks
    }
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

    /// Asks about the body of a POST below an object, such as a Binding: it may be changed, and
    /// refused.
    pub(crate) async fn body(call: &Call, dry_run: bool, body: &mut Value) -> Result<()> {
        let about = About {
            operation: Operation::Create,
            resource: &call.resource,
            subresource: call.subresource(),
            place: call.place(),
            dry_run,
        };
        let hooks = call.server.webhooks.of(&call.resource);
        let Some(request) = Request::of(call, hooks, about) else { return Ok(()) };
        admission_review::name_kind(body, &call.resource, call.subresource());
        request.mutate(body, None).await?;
        request.validate(Some(body), None).await
    }

    /// Lets plug-ins, then policies and mutating webhooks change an object; says who did.
    pub(crate) async fn mutate(&self, object: &mut Value, old: Option<&Value>) -> Result<Changes> {
        let began = Instant::now();
        let changes = self.mutate_by_all(object, old).await;
        self.stepped(Step::Admit, changes.is_err(), began);
        changes
    }

    /// A step is done.
    fn stepped(&self, step: Step, rejected: bool, began: Instant) {
        let metrics = &self.call.server.metrics.admission;
        metrics.stepped(step, self.operation.as_str(), rejected, began.elapsed());
    }

    async fn mutate_by_all(&self, object: &mut Value, old: Option<&Value>) -> Result<Changes> {
        let plugins = self.admit(object, old).await?;
        if !rounds::anybody(self) {
            return Ok(Changes { plugins, webhooks: false });
        }
        let mut current = Some(std::mem::take(object));
        // On the heap, so that requests stay small that nobody is asked about.
        let mutated = Box::pin(rounds::mutate(self, &mut current, old)).await;
        *object = current.unwrap_or_default();
        Ok(Changes { plugins, webhooks: mutated? })
    }

    /// Lets plug-ins change an object; says whether one did.
    pub(super) async fn admit(&self, object: &mut Value, old: Option<&Value>) -> Result<bool> {
        self.plugins.admit(self.attributes(), object, old).await
    }

    /// Asks everybody whether an object may be deleted.
    pub(crate) async fn delete(&self, old: &Value) -> Result<()> {
        if rounds::anybody(self) {
            Box::pin(rounds::mutate(self, &mut None, Some(old))).await?;
        }
        self.validate(None, Some(old)).await
    }

    /// Asks everybody whether a client may be led through the server to a node; `options` is what
    /// it wishes there.
    pub(crate) async fn connect(call: &Call, mut options: Value) -> Result<()> {
        let about = About {
            operation: Operation::Connect,
            resource: &call.resource,
            subresource: call.subresource(),
            place: call.place(),
            dry_run: false,
        };
        let hooks = call.server.webhooks.of(&call.resource);
        let Some(request) = Request::of(call, hooks, about) else { return Ok(()) };
        request.mutate(&mut options, None).await?;
        request.validate(Some(&options), None).await
    }

    /// Asks plug-ins, policies and validating webhooks whether an object may be written.
    pub(crate) async fn validate(&self, object: Option<&Value>, old: Option<&Value>) -> Result<()> {
        let began = Instant::now();
        let valid = self.validate_by_all(object, old).await;
        self.stepped(Step::Validate, valid.is_err(), began);
        valid
    }

    async fn validate_by_all(&self, object: Option<&Value>, old: Option<&Value>) -> Result<()> {
        self.plugins.validate_early(self.attributes(), object, old).await?;
        if let Some(candidates) = self.policies.as_ref().filter(|policies| policies.validate()) {
            Box::pin(policy_validation::validate(candidates, self, object, old)).await?;
        }
        if let Some(hooks) = self.hooks.as_ref().filter(|hooks| !hooks.validating.is_empty()) {
            Box::pin(dispatch::validate(hooks, self, object, old)).await?;
        }
        self.plugins.validate_late(self.attributes(), object, old).await
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
