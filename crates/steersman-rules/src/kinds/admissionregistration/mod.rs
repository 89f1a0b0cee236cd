//! The kinds of `admissionregistration.k8s.io`: who is asked before an object is stored, webhooks
//! and policies, about which requests.

mod matching;
mod mutating_admission_policy;
mod mutating_admission_policy_binding;
mod mutating_webhook_configuration;
mod policy;
mod policy_binding;
mod reserved;
mod validating_admission_policy;
mod validating_admission_policy_binding;
mod validating_webhook_configuration;
mod webhook;

use super::kind::Kind;

/// The name of the group.
const GROUP: &str = "admissionregistration.k8s.io";

/// Its kinds, in the order of discovery.
pub(super) const KINDS: &[Kind] = &[
    mutating_admission_policy::KIND,
    mutating_admission_policy_binding::KIND,
    mutating_webhook_configuration::KIND,
    validating_admission_policy::KIND,
    validating_admission_policy_binding::KIND,
    validating_webhook_configuration::KIND,
];
