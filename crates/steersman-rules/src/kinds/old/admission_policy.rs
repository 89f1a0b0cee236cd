//! Admission policies and their bindings: their shape. What their expressions compute is not
//! looked at here.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::webhook::{
    FAILURE_POLICIES, MATCH_POLICIES, REINVOCATION_POLICIES, match_conditions, match_defaults,
    rule_with_operations,
};
use crate::field::FieldError;
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::condition::conditions;
use crate::rules::document::{each, fill, fill_text, items, text, within, within_existing};
use crate::rules::label_selector::label_selector;

const ANNOTATIONS_MAX: usize = 20;
const ANNOTATION_EXPRESSION_MAX: usize = 5 * 1024;
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];
const MUTATING_OPERATIONS: &[&str] = &["*", "CONNECT", "CREATE", "UPDATE"];

/// The strategy of policies that judge.
pub(in crate::kinds) const VALIDATING: Rules = Rules {
    default: policy_defaults,
    status: Some(|| json!({})),
    check: |policy, _, errors| {
        let spec = policy.at("spec");
        common(&spec, errors);
        validations(&spec, text(&policy.value["metadata"]["name"]), errors);
    },
    check_status: |policy, _, errors| {
        let status = policy.at("status");
        let checking = status.at("typeChecking");
        for warning in checking.each("expressionWarnings") {
            warning.require_all(&["warning", "fieldRef"], errors);
        }
        conditions(&status.at("conditions"), errors);
    },
    ..Rules::NONE
};

/// The strategy of policies that change objects.
pub(in crate::kinds) const MUTATING: Rules = Rules {
    default: policy_defaults,
    check: |policy, _, errors| mutating(&policy.at("spec"), errors),
    ..Rules::NONE
};

/// The strategy of bindings of policies that judge.
pub(in crate::kinds) const VALIDATING_BINDING: Rules = Rules {
    default: binding_defaults,
    check: |binding, _, errors| {
        let spec = binding.at("spec");
        check_binding(&spec, errors);
        actions(&spec, errors);
    },
    ..Rules::NONE
};

/// The strategy of bindings of policies that change objects.
pub(in crate::kinds) const MUTATING_BINDING: Rules = Rules {
    default: binding_defaults,
    check: |binding, _, errors| {
        let spec = binding.at("spec");
        check_binding(&spec, errors);
        mutating_operations(&spec.at("matchResources"), errors);
    },
    ..Rules::NONE
};

fn policy_defaults(policy: &mut Value) {
    within(policy, "spec", |spec| {
        fill(spec, "failurePolicy", "Fail");
        within_existing(spec, "matchConstraints", matched);
    });
}

fn binding_defaults(binding: &mut Value) {
    within(binding, "spec", |spec| within_existing(spec, "matchResources", matched));
}

fn matched(constraints: &mut Value) {
    match_defaults(constraints);
    for rules in ["resourceRules", "excludeResourceRules"] {
        each(constraints, rules, |rule| fill_text(rule, "scope", "*"));
    }
}

fn common(spec: &At<'_, '_>, errors: &mut Errors) {
    spec.at("failurePolicy").requires_one_of(FAILURE_POLICIES, errors);
    param_kind(&spec.at("paramKind"), errors);
    let constraints = spec.at("matchConstraints");
    if constraints.is_absent() {
        errors.push(constraints.required(""));
    } else {
        match_resources(&constraints, errors);
        constraints.at("resourceRules").require(errors);
    }
    match_conditions(spec, errors);
    for variable in spec.each("variables") {
        let (name, expression) = (variable.at("name"), variable.at("expression"));
        if name.text().trim().is_empty() {
            errors.push(name.required("name is not specified"));
        } else if !is_identifier(name.text()) {
            errors.push(name.invalid("must be a valid CEL identifier"));
        }
        if expression.text().trim().is_empty() {
            errors.push(expression.required("expression is not specified"));
        }
    }
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn param_kind(param: &At<'_, '_>, errors: &mut Errors) {
    if param.is_absent() {
        return;
    }
    let (version, kind) = (param.at("apiVersion"), param.at("kind"));
    if version.require(errors) {
        let given = version.text();
        let (group, number) = given.split_once('/').unwrap_or(("", given));
        let path = version.path();
        if !group.is_empty() {
            errors.extend(names::invalid(&path, group, names::dns1123_subdomain));
        }
        if number.is_empty() {
            errors.push(version.invalid("version must be specified"));
        } else {
            errors.extend(names::invalid(&path, number, names::dns1035_label));
        }
    }
    if kind.require(errors) {
        let complaints = names::dns1035_label(&kind.text().to_lowercase());
        if !complaints.is_empty() {
            let rule = "may have mixed case, but should otherwise match: ";
            errors.push(kind.invalid(&format!("{rule}{}", complaints.join(","))));
        }
    }
}

fn match_resources(part: &At<'_, '_>, errors: &mut Errors) {
    if part.is_absent() {
        return;
    }
    part.at("matchPolicy").requires_one_of(MATCH_POLICIES, errors);
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

fn validations(spec: &At<'_, '_>, name: &str, errors: &mut Errors) {
    const ONE: &str = "validations or auditAnnotations must contain at least one item";
    let (rules, annotations) = (spec.at("validations"), spec.at("auditAnnotations"));
    if rules.is_empty() && annotations.is_empty() {
        errors.push(rules.required(ONE));
        errors.push(annotations.required(ONE));
        return;
    }
    spec.each("validations").for_each(|rule| validation(&rule, errors));
    if annotations.len() > ANNOTATIONS_MAX {
        let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        errors.push(annotations.invalid(&detail));
    }
    let mut seen = HashSet::new();
    for annotation in spec.each("auditAnnotations") {
        let (key, value) = (annotation.at("key"), annotation.at("valueExpression"));
        let full = format!("{name}/{}", key.text());
        errors.extend(names::invalid(&key.path(), &full, names::qualified_name));
        let given = value.text().trim();
        if given.is_empty() {
            errors.push(value.required("valueExpression is not specified"));
        } else if given.len() > ANNOTATION_EXPRESSION_MAX {
            let detail = format!("must not exceed {ANNOTATION_EXPRESSION_MAX} bytes in length");
            errors.push(value.required(&detail));
        }
        if !seen.insert(key.text().to_owned()) {
            errors.push(key.duplicate());
        }
    }
}

fn validation(rule: &At<'_, '_>, errors: &mut Errors) {
    let expression = rule.at("expression");
    if expression.text().trim().is_empty() {
        errors.push(expression.required("expression is not specified"));
    }
    for key in ["messageExpression", "message"] {
        let part = rule.at(key);
        let given = part.text().trim();
        if !part.text().is_empty() && given.is_empty() {
            errors.push(part.invalid("must be non-empty if specified"));
        } else if key == "message" && given.contains(['\n', '\r']) {
            errors.push(part.invalid("must not contain line breaks"));
        }
    }
    rule.at("reason").one_of(REASONS, errors);
}

fn mutating(spec: &At<'_, '_>, errors: &mut Errors) {
    common(spec, errors);
    mutating_operations(&spec.at("matchConstraints"), errors);
    spec.at("mutations").require_because("mutations must contain at least one item", errors);
    for mutation in spec.each("mutations") {
        let kind = mutation.at("patchType");
        let (needed, other) = match kind.text() {
            "JSONPatch" => ("jsonPatch", "applyConfiguration"),
            "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
            _ => {
                kind.requires_one_of(&["ApplyConfiguration", "JSONPatch"], errors);
                continue;
            }
        };
        let (part, unwanted) = (mutation.at(needed), mutation.at(other));
        if part.is_absent() {
            errors.push(
                part.required(&format!("must be specified when patchType is {}", kind.text())),
            );
        } else {
            let expression = part.at("expression");
            if expression.text().trim().is_empty() {
                errors.push(expression.required("expression is not specified"));
            }
        }
        if unwanted.is_set() {
            let shown = Value::from(format!("{{{other}}}"));
            let detail = format!("must not be specified when patchType is {}", kind.text());
            errors.push(FieldError::invalid(unwanted.path(), &shown, &detail));
        }
    }
    spec.at("reinvocationPolicy").requires_one_of(REINVOCATION_POLICIES, errors);
}

fn mutating_operations(part: &At<'_, '_>, errors: &mut Errors) {
    for rule in items(&part.value["resourceRules"]) {
        for operation in items(&rule["operations"]) {
            if !MUTATING_OPERATIONS.contains(&text(operation)) {
                let field = format!("{}.resourceRules.operations", part.path());
                errors.push(FieldError::not_supported(field, operation, MUTATING_OPERATIONS));
            }
        }
    }
}

fn check_binding(spec: &At<'_, '_>, errors: &mut Errors) {
    spec.at("policyName").requires(names::dns1123_subdomain, errors);
    param_ref(&spec.at("paramRef"), errors);
    match_resources(&spec.at("matchResources"), errors);
}

fn param_ref(reference: &At<'_, '_>, errors: &mut Errors) {
    if reference.is_absent() {
        return;
    }
    let (name, selector) = (reference.at("name"), reference.at("selector"));
    let both = !name.is_empty() && selector.is_set();
    if !name.is_empty() {
        name.follows(names::path_segment, errors);
    }
    if both {
        errors.push(name.forbidden("name and selector are mutually exclusive"));
    }
    label_selector(&selector, errors);
    if both {
        errors.push(selector.forbidden("name and selector are mutually exclusive"));
    }
    if name.is_empty() && selector.is_absent() {
        errors.push(reference.required("one of name or selector must be specified"));
    }
    reference.at("parameterNotFoundAction").requires_one_of(&["Deny", "Allow"], errors);
}

fn actions(spec: &At<'_, '_>, errors: &mut Errors) {
    let known = ["Audit", "Deny", "Warn"];
    let list = spec.at("validationActions");
    let all: Vec<&str> = items(list.value).iter().map(text).collect();
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
