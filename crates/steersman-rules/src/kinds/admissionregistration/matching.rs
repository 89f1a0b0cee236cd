//! What webhooks and policies share: which requests they are about, and what is done when they
//! cannot be asked.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::admission_policy::Compiler;
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::{each, fill, text};
use crate::rules::label_selector::label_selector;

/// How admission ends when nobody answers.
pub(super) const FAILURE_POLICIES: &[&str] = &["Fail", "Ignore"];
/// How rules take other versions of a resource.
pub(super) const MATCH_POLICIES: &[&str] = &["Equivalent", "Exact"];
/// Whether to call again after others have changed the object.
pub(super) const REINVOCATION_POLICIES: &[&str] = &["IfNeeded", "Never"];

const OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const MUTATING_OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];
const CONDITIONS_MAX: usize = 64;

/// What admission matches when it is not told.
pub(super) fn match_defaults(object: &mut Value) {
    fill(object, "matchPolicy", "Equivalent");
    fill(object, "namespaceSelector", json!({}));
    fill(object, "objectSelector", json!({}));
}

/// What a policy or its binding matches when it is not told.
pub(super) fn match_resources_defaults(constraints: &mut Value) {
    match_defaults(constraints);
    for rules in ["resourceRules", "excludeResourceRules"] {
        each(constraints, rules, |rule| fill(rule, "scope", "*"));
    }
}

/// The conditions of a webhook or policy.
pub(super) fn match_conditions(part: &At<'_, '_>, compiler: &Compiler, errors: &mut Errors) {
    let all = part.at("matchConditions");
    if all.len() > CONDITIONS_MAX {
        errors.push(all.too_many(CONDITIONS_MAX));
    }
    let mut seen = HashSet::new();
    for condition in part.each("matchConditions") {
        let name = condition.at("name");
        let expression = condition.at("expression");
        let text = expression.text().trim();
        if text.is_empty() {
            errors.push(expression.required(""));
        } else if let Err(why) = compiler.condition(text) {
            errors.push(expression.invalid_value(text, &why));
        }
        name.requires(names::qualified_name, errors);
        if !name.is_empty() && !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
    }
}

/// The mistakes in the resources that a policy or its binding is about.
pub(super) fn match_resources(part: &At<'_, '_>, errors: &mut Errors) {
    if part.is_absent() {
        return;
    }
    part.at("matchPolicy").requires_known(MATCH_POLICIES, errors);
    label_selector(&part.at("namespaceSelector"), errors);
    label_selector(&part.at("objectSelector"), errors);
    for list in ["resourceRules", "excludeResourceRules"] {
        for rule in part.each(list) {
            let mut seen = HashSet::new();
            for name in rule.each("resourceNames") {
                name.follows(names::path_segment, errors);
                if !seen.insert(name.text().to_owned()) {
                    errors.push(name.duplicate());
                }
            }
            rule_with_operations(&rule, errors);
        }
    }
}

/// What is deleted cannot be changed: complains of operations that only validation knows.
pub(super) fn mutating_operations(part: &At<'_, '_>, errors: &mut Errors) {
    // Kubernetes does not say in which rule.
    let field = part.at("resourceRules.operations");
    for rule in part.each("resourceRules") {
        for operation in rule.at("operations").list() {
            if !MUTATING_OPERATIONS.contains(&text(operation)) {
                errors.push(field.with(operation).not_supported(MUTATING_OPERATIONS));
            }
        }
    }
}

/// The mistakes in a rule that says which requests to look at.
pub(super) fn rule_with_operations(rule: &At<'_, '_>, errors: &mut Errors) {
    let operations = rule.at("operations");
    operations.require(errors);
    no_company(&operations, "operations", errors);
    for operation in rule.each("operations") {
        if !OPERATIONS.contains(&operation.text()) {
            errors.push(operation.not_supported(OPERATIONS));
        }
    }
    for (key, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let list = rule.at(key);
        list.require(errors);
        no_company(&list, what, errors);
    }
    for version in rule.each("apiVersions") {
        version.require(errors);
    }
    check_resources(rule, errors);
    rule.at("scope").one_of(&["*", "Cluster", "Namespaced"], errors);
}

/// A wildcard stands alone.
fn no_company(list: &At<'_, '_>, what: &str, errors: &mut Errors) {
    if list.len() > 1 && list.list().iter().any(|item| item == "*") {
        errors.push(list.invalid(&format!("if '*' is present, must not specify other {what}")));
    }
}

fn check_resources(rule: &At<'_, '_>, errors: &mut Errors) {
    let list = rule.at("resources");
    list.require(errors);
    let mut any_sub: Vec<&str> = Vec::new();
    let mut any_resource: Vec<&str> = Vec::new();
    let mut plain = false;
    for part in rule.each("resources") {
        if !part.require(errors) {
            continue;
        }
        let given = part.text();
        let Some((resource, sub)) = given.split_once('/') else {
            plain = given != "*";
            continue;
        };
        if any_sub.contains(&resource) {
            let detail = format!("if '{resource}/*' is present, must not specify {given}");
            errors.push(part.invalid(&detail));
        }
        if any_resource.contains(&sub) {
            let detail = format!("if '*/{sub}' is present, must not specify {given}");
            errors.push(part.invalid(&detail));
        }
        any_sub.extend((sub == "*").then_some(resource));
        any_resource.extend((resource == "*").then_some(sub));
    }
    let has = |name: &str| list.list().iter().any(|item| item == name);
    if list.len() > 1 && has("*/*") {
        errors.push(list.invalid("if '*/*' is present, must not specify other resources"));
    }
    if has("*") && plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(list.invalid(detail));
    }
}
