//! One webhook: its path, its handler, and when the API server is to call it.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{
    MatchCondition, MutatingWebhook, RuleWithOperations,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::ApiResource;

use super::defaulter::{self, CustomDefaulter, Defaulter, OwnDefaults};
use super::handler::{self, ErasedHandler, Handler};
use super::request::Operation;
use super::validator::{self, CustomValidator, OwnChecks, Validator};
use crate::object::{Object, api_resource};

/// Whether a webhook may change objects. The API server calls all that may before all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Mutating,
    Validating,
}

/// What becomes of an operation while its webhook cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It is refused.
    Fail,
    /// It goes on as if there were no webhook.
    Ignore,
}

/// One webhook. [`WebhookServerBuilder`](super::WebhookServerBuilder) makes the usual ones; make
/// one here to say more about it: `Webhook::validates::<Pod>().timeout(Duration::from_secs(2))`.
pub struct Webhook {
    pub(super) phase: Phase,
    pub(super) path: String,
    pub(super) handler: ErasedHandler,
    /// As in a configuration; validating webhooks have all of its fields but one.
    pub(super) registration: MutatingWebhook,
}

impl Webhook {
    /// Sets the defaults that a kind knows itself, at `/mutate-<group>-<version>-<kind>`.
    pub fn defaults<K: Defaulter>() -> Self {
        Self::defaults_with::<K>(OwnDefaults(PhantomData))
    }

    /// Sets defaults on objects of a kind, at `/mutate-<group>-<version>-<kind>`.
    pub fn defaults_with<K: Object>(defaulter: impl CustomDefaulter<K>) -> Self {
        let operations = operations_of::<K, _>(&defaulter);
        let handler = defaulter::handler(defaulter);
        Self::typed::<K>(Phase::Mutating, operations, handler)
    }

    /// Makes the checks that a kind knows itself, at `/validate-<group>-<version>-<kind>`.
    pub fn validates<K: Validator>() -> Self {
        Self::validates_with::<K>(OwnChecks(PhantomData))
    }

    /// Validates objects of a kind, at `/validate-<group>-<version>-<kind>`.
    pub fn validates_with<K: Object>(validator: impl CustomValidator<K>) -> Self {
        let operations = checks_of::<K, _>(&validator);
        let handler = validator::handler(validator);
        Self::typed::<K>(Phase::Validating, operations, handler)
    }

    /// Asks this handler, which may change objects, about what the rules name.
    pub fn mutating(
        path: impl Into<String>,
        rules: impl IntoIterator<Item = RuleWithOperations>,
        handler: impl Handler,
    ) -> Self {
        Self::raw(Phase::Mutating, path.into(), rules, handler)
    }

    /// Asks this handler, which changes nothing, about what the rules name.
    pub fn validating(
        path: impl Into<String>,
        rules: impl IntoIterator<Item = RuleWithOperations>,
        handler: impl Handler,
    ) -> Self {
        Self::raw(Phase::Validating, path.into(), rules, handler)
    }

    fn raw(
        phase: Phase,
        path: String,
        rules: impl IntoIterator<Item = RuleWithOperations>,
        handler: impl Handler,
    ) -> Self {
        let name = path.trim_matches('/').replace(['/', '_'], "-").to_ascii_lowercase();
        let registration = registration(format!("{name}.webhooks.local"), rules);
        Self { phase, path, handler: handler::erase(handler), registration }
    }

    fn typed<K: Object>(phase: Phase, operations: &[Operation], handler: ErasedHandler) -> Self {
        let resource = api_resource::<K>();
        let rule = rule(&resource, operations, K::NAMESPACED);
        Self {
            phase,
            path: path(phase, &resource),
            handler,
            registration: registration(name(phase, &resource), [rule]),
        }
    }

    /// Serves it at another path. Several webhooks of one path are asked one after the other,
    /// each sees the object as those before it left it.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Its name in the configuration: a domain name of at least three parts.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        self.configure(|registration| registration.name = name.into())
    }

    /// What becomes of operations while it does not answer; refuses them unless said otherwise.
    #[must_use]
    pub fn failure_policy(self, policy: FailurePolicy) -> Self {
        self.configure(|registration| registration.failure_policy = Some(format!("{policy:?}")))
    }

    /// How long the API server waits for it: whole seconds, from 1 to 30.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        let seconds = timeout.as_secs().clamp(1, 30);
        let seconds = i32::try_from(seconds).unwrap_or(30);
        self.configure(|registration| registration.timeout_seconds = Some(seconds))
    }

    /// Is only asked about objects in namespaces with these labels.
    #[must_use]
    pub fn namespace_selector(self, selector: LabelSelector) -> Self {
        self.configure(|registration| registration.namespace_selector = Some(selector))
    }

    /// Is only asked about objects with these labels.
    #[must_use]
    pub fn object_selector(self, selector: LabelSelector) -> Self {
        self.configure(|registration| registration.object_selector = Some(selector))
    }

    /// Is only asked where this CEL expression holds.
    #[must_use]
    pub fn match_condition(self, name: impl Into<String>, expression: impl Into<String>) -> Self {
        let condition = MatchCondition { name: name.into(), expression: expression.into() };
        self.configure(|r| r.match_conditions.get_or_insert_default().push(condition))
    }

    /// Changes whatever else its configuration says.
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(&mut MutatingWebhook)) -> Self {
        change(&mut self.registration);
        self
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.registration.name;
        f.debug_struct("Webhook")
            .field("name", name)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

fn operations_of<K, D: CustomDefaulter<K>>(_: &D) -> &'static [Operation] {
    D::OPERATIONS
}

fn checks_of<K, V: CustomValidator<K>>(_: &V) -> &'static [Operation] {
    V::OPERATIONS
}

/// The path that controller-runtime would give it.
fn path(phase: Phase, resource: &ApiResource) -> String {
    let verb = match phase {
        Phase::Mutating => "mutate",
        Phase::Validating => "validate",
    };
    let group = resource.group.replace('.', "-");
    format!("/{verb}-{group}-{}-{}", resource.version, resource.kind.to_lowercase())
}

/// A name that no other webhook has: `default.v1.appservices.demo.steersman.dev`.
fn name(phase: Phase, resource: &ApiResource) -> String {
    let verb = match phase {
        Phase::Mutating => "default",
        Phase::Validating => "validate",
    };
    let mut name = format!("{verb}.{}.{}", resource.version, resource.plural);
    if !resource.group.is_empty() {
        name = format!("{name}.{}", resource.group);
    }
    name
}

fn rule(resource: &ApiResource, operations: &[Operation], namespaced: bool) -> RuleWithOperations {
    let operations = operations.iter().map(|operation| format!("{operation:?}").to_uppercase());
    RuleWithOperations {
        api_groups: Some(vec![resource.group.clone()]),
        api_versions: Some(vec![resource.version.clone()]),
        operations: Some(operations.collect()),
        resources: Some(vec![resource.plural.clone()]),
        scope: Some(if namespaced { "Namespaced" } else { "Cluster" }.to_owned()),
    }
}

fn registration(
    name: String,
    rules: impl IntoIterator<Item = RuleWithOperations>,
) -> MutatingWebhook {
    MutatingWebhook {
        name,
        admission_review_versions: vec!["v1".to_owned()],
        failure_policy: Some("Fail".to_owned()),
        // The server converts what is sent in another version to the one that the rules name.
        match_policy: Some("Equivalent".to_owned()),
        rules: Some(rules.into_iter().collect()),
        side_effects: "None".to_owned(),
        timeout_seconds: Some(10),
        ..MutatingWebhook::default()
    }
}
