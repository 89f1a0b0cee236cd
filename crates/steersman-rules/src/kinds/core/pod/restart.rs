//! When a container starts again: by its own policy, by its exit code, by new resources.

use std::collections::HashSet;

use super::context::Pod;
use crate::field::FieldError;
use crate::rules::at::{At, Errors};

const POLICIES: &[&str] = &["Always", "Never", "OnFailure"];
const RULES_MAX: usize = 20;
const EXIT_CODES_MAX: usize = 255;

/// The mistakes in a container's own restart policy and its rules.
pub(super) fn policy(container: &At<'_, '_>, errors: &mut Errors) {
    let policy = container.at("restartPolicy");
    let rules = container.at("restartPolicyRules");
    if policy.is_set() {
        policy.one_of(POLICIES, errors);
    } else if rules.list().is_empty() {
        return;
    } else {
        errors.push(without_policy(container));
    }
    if rules.len() > RULES_MAX {
        errors.push(rules.too_many(RULES_MAX));
    }
    for rule in rules.items() {
        let action = rule.at("action");
        if !["Restart", "RestartAllContainers"].contains(&action.text()) {
            errors.push(action.not_supported(&["Restart", "RestartAllContainers"]));
        }
        let codes = rule.at("exitCodes");
        if codes.is_absent() {
            errors.push(codes.required("must be specified"));
            continue;
        }
        let operator = codes.at("operator");
        if !["In", "NotIn"].contains(&operator.text()) {
            errors.push(operator.not_supported(&["In", "NotIn"]));
        }
        if codes.at("values").len() > EXIT_CODES_MAX {
            errors.push(codes.at("values").too_many(EXIT_CODES_MAX));
        }
    }
}

/// The same of an init container, whose rules nobody looks at before it has a policy.
pub(super) fn init_policy(container: &At<'_, '_>, errors: &mut Errors) {
    if container.at("restartPolicy").is_set() {
        policy(container, errors);
    } else if !container.at("restartPolicyRules").is_empty() {
        errors.push(without_policy(container));
    }
}

fn without_policy(container: &At<'_, '_>) -> FieldError {
    let why = "must specify restartPolicy when restart rules are used";
    container.at("restartPolicy").required(why)
}

/// The mistakes in what a change of resources does to a container.
pub(super) fn resize_policies(list: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for policy in list.items() {
        let resource = policy.at("resourceName");
        let restart = policy.at("restartPolicy");
        if !seen.insert(resource.text()) {
            errors.push(policy.duplicate_value(resource.text()));
        }
        // Complaints name the list, not its item.
        for (field, allowed) in
            [(resource, ["cpu", "memory"]), (restart, ["NotRequired", "RestartContainer"])]
        {
            if field.text().is_empty() {
                errors.push(list.required(""));
            } else if !allowed.contains(&field.text()) {
                errors.push(FieldError::not_supported(list.path(), field.value, &allowed));
            }
        }
        if pod.restart_policy == "Never" && restart.text() != "NotRequired" {
            let why = "must be 'NotRequired' when pod `restartPolicy` is 'Never'";
            errors.push(list.invalid_value(restart.text(), why));
        }
    }
}
