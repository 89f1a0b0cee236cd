//! `MutatingAdmissionPolicyBinding`: where a policy that changes objects applies.

use super::matching::mutating_operations;
use super::policy_binding;
use super::reserved;
use crate::kinds::kind::Kind;
use crate::rules::Rules;

/// What is said of `MutatingAdmissionPolicyBinding`.
pub(super) const KIND: Kind = Kind {
    plural: "mutatingadmissionpolicybindings",
    name: "MutatingAdmissionPolicyBinding",
    rules: &RULES,
    ..policy_binding::BINDING
};

const RULES: Rules = Rules {
    default: policy_binding::defaults,
    check: |binding, _, errors| {
        let spec = binding.at("spec");
        policy_binding::check(&spec, errors);
        mutating_operations(&spec.at("matchResources"), errors);
    },
    warn: reserved::warnings,
    ..Rules::NONE
};
