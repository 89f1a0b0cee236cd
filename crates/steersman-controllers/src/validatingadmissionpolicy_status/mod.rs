//! The controller of the status of ValidatingAdmissionPolicies: tells in it which expressions speak
//! of what the kinds that a policy is about do not have.
//!
//! A policy is checked when it was written and not when a kind changes, as in Kubernetes: which
//! generation the warnings are about stands beside them. What kinds are served and how they look
//! comes from discovery and from OpenAPI, for built-in and for custom ones; nothing is kept of it,
//! for policies change seldom.

mod plan;
mod reconcile;
mod schema;
#[cfg(test)]
mod tests;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use steersman::Controller;

/// The controller of the status of ValidatingAdmissionPolicies.
pub(crate) fn controller() -> Controller {
    Controller::of::<ValidatingAdmissionPolicy>()
        .named("validatingadmissionpolicy-status-controller")
        .only(plan::is_unchecked)
        .concurrency(5)
        .reconcile(reconcile::reconcile)
}
