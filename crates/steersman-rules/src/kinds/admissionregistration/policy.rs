//! What the two kinds of admission policies share: what they are about, their parameters and
//! variables.

use jiff::Timestamp;
use serde_json::Value;
use steersman_cel::is_identifier;

use super::matching::{
    FAILURE_POLICIES, match_conditions, match_resources, match_resources_defaults,
    mutating_operations,
};
use crate::admission_policy::{Compiler, VARIABLES_MAX};
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, text, within, within_existing};

/// Fills in when a policy applies, and how it ends when it cannot be evaluated.
pub(super) fn defaults(policy: &mut Value) {
    within(policy, "spec", |spec| {
        fill(spec, "failurePolicy", "Fail");
        within_existing(spec, "matchConstraints", match_resources_defaults);
    });
}

/// What a policy does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Mutating,
    Validating,
}

/// The mistakes in what both kinds of policies say; gives what compiles the other expressions.
pub(super) fn check(policy: &At<'_, '_>, old: &Value, role: Role, errors: &mut Errors) -> Compiler {
    let spec = policy.at("spec");
    spec.at("failurePolicy").requires_known(FAILURE_POLICIES, errors);
    check_param_kind(&spec.at("paramKind"), errors);
    let constraints = spec.at("matchConstraints");
    if constraints.is_absent() {
        errors.push(constraints.required(""));
    } else {
        match_resources(&constraints, errors);
        constraints.at("resourceRules").require(errors);
    }
    let mut compiler = Compiler::new(spec.at("paramKind").is_set());
    if role == Role::Mutating {
        mutating_operations(&constraints, errors);
        compiler = compiler.composed();
    }
    let same = |field: &str| spec.value[field] == old["spec"][field];
    // What was sound when it was stored stays so.
    if !(old.is_object() && same("paramKind") && same("matchConditions")) {
        match_conditions(&spec, &compiler, errors);
    }
    let variables = spec.at("variables");
    if variables.len() > VARIABLES_MAX {
        errors.push(variables.too_many(VARIABLES_MAX));
        return compiler;
    }
    for variable in spec.each("variables") {
        check_variable(&variable, &mut compiler, errors);
    }
    compiler
}

fn check_variable(variable: &At<'_, '_>, compiler: &mut Compiler, errors: &mut Errors) {
    let name = variable.at("name");
    let expression = variable.at("expression");
    if name.text().trim().is_empty() {
        errors.push(name.required("name is not specified"));
    } else if !is_identifier(name.text()) {
        errors.push(name.invalid("must be a valid CEL identifier"));
    }
    if expression.text().trim().is_empty() {
        errors.push(expression.required("expression is not specified"));
    } else if let Err(why) = compiler.variable(name.text(), expression.text()) {
        errors.push(expression.invalid(&why));
    }
}

fn check_param_kind(param: &At<'_, '_>, errors: &mut Errors) {
    if param.is_absent() {
        return;
    }
    let version = param.at("apiVersion");
    let kind = param.at("kind");
    if version.require(errors) {
        check_group_version(&version, errors);
    }
    if kind.require(errors) {
        let complaints = names::dns1035_label(&kind.text().to_lowercase());
        if !complaints.is_empty() {
            let rule = "may have mixed case, but should otherwise match: ";
            errors.push(kind.invalid(&format!("{rule}{}", complaints.join(","))));
        }
    }
}

fn check_group_version(version: &At<'_, '_>, errors: &mut Errors) {
    let given = version.text();
    let (group, number) = given.split_once('/').unwrap_or(("", given));
    if number.contains('/') {
        errors.push(version.invalid(&format!("unexpected GroupVersion string: {given}")));
        return;
    }
    if !group.is_empty() {
        version.with(&group.into()).follows_at_once(names::dns1123_subdomain, errors);
    }
    if number.is_empty() {
        errors.push(version.invalid("version must be specified"));
    } else {
        version.with(&number.into()).follows_at_once(names::dns1035_label, errors);
    }
}

/// The kind of a policy's parameters, as a cell.
pub(super) fn param_kind(policy: &Value, _: Timestamp) -> Value {
    match &policy["spec"]["paramKind"] {
        Value::Null => "<unset>".into(),
        kind => format!("{}/{}", text(&kind["apiVersion"]), text(&kind["kind"])).into(),
    }
}
