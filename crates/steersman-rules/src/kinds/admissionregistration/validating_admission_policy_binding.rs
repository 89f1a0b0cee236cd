//! `ValidatingAdmissionPolicyBinding`: where a policy that judges applies, and what its
//! refusals lead to.

use super::policy_binding;
use super::reserved;
use crate::kinds::kind::Kind;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::text;

/// What is said of `ValidatingAdmissionPolicyBinding`.
pub(super) const KIND: Kind = Kind {
    plural: "validatingadmissionpolicybindings",
    name: "ValidatingAdmissionPolicyBinding",
    rules: &RULES,
    ..policy_binding::BINDING
};

const RULES: Rules = Rules {
    default: policy_binding::defaults,
    check: |binding, _, errors| {
        let spec = binding.at("spec");
        policy_binding::check(&spec, errors);
        check_actions(&spec, errors);
    },
    warn: reserved::warnings,
    ..Rules::NONE
};

fn check_actions(spec: &At<'_, '_>, errors: &mut Errors) {
    let known = ["Audit", "Deny", "Warn"];
    let list = spec.at("validationActions");
    let all: Vec<&str> = list.list().iter().map(text).collect();
    for (i, action) in spec.each("validationActions").enumerate() {
        if !known.contains(&action.text()) {
            errors.push(action.not_supported(&known));
        }
        if all[..i].contains(&action.text()) {
            errors.push(action.duplicate());
        }
    }
    if all.contains(&"Deny") && all.contains(&"Warn") {
        errors.push(list.invalid(
            "must not contain both Deny and Warn (repeating the same validation failure \
             information in the API response and headers serves no purpose)",
        ));
    }
    list.require_because("at least one validation action is required", errors);
}
