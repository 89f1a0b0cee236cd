//! What a write asks, of whom and in which order: plug-ins, then policies and webhooks.

use serde_json::Value;
use tokio::time::Instant;

use super::request::{About, Request};
use super::{admission_review, dispatch, policy_validation, rounds};
use crate::admission_registration::Operation;
use crate::call::Call;
use crate::metrics::Step;
use crate::status::Result;

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
    /// What is asked about the body of a POST that is not stored as it is, such as a Binding or a
    /// review; `None` if nobody wants to be asked.
    pub(crate) fn of_body(call: &'a Call, dry_run: bool) -> Option<Self> {
        let about = About {
            operation: Operation::Create,
            resource: &call.resource,
            subresource: call.subresource(),
            place: call.place(),
            dry_run,
        };
        Self::of(call, call.server.webhooks.of(&call.resource), about)
    }
}

impl Request<'_> {
    /// Asks about the body of a POST below an object, such as a Binding: it may be changed, and
    /// refused.
    pub(crate) async fn body(call: &Call, dry_run: bool, body: &mut Value) -> Result<()> {
        let Some(request) = Request::of_body(call, dry_run) else { return Ok(()) };
        request.change_body(body).await?;
        request.validate(Some(body), None).await
    }

    /// Lets everybody change such a body, who is told what it is.
    pub(crate) async fn change_body(&self, body: &mut Value) -> Result<()> {
        admission_review::name_kind(body, self.resource, self.subresource);
        self.mutate(body, None).await.map(drop)
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

    /// Asks everybody whether an object may be deleted.
    pub(crate) async fn delete(&self, old: &Value) -> Result<()> {
        if rounds::anybody(self) {
            Box::pin(rounds::mutate(self, &mut None, Some(old))).await?;
        }
        self.validate(None, Some(old)).await
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
}
