//! `ValidatingAdmissionPolicy`: expressions that judge requests, and what of them is audited.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::policy::{self, Role};
use super::reserved;
use crate::admission_policy::{Compiler, Returns};
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::condition::conditions;
use crate::rules::document::text;
use crate::table::cells::len;
use crate::table::{Column, age};

const ANNOTATIONS_MAX: usize = 20;
const ANNOTATION_EXPRESSION_MAX: usize = 5 * 1024;
const REASONS: &[&str] = &["Forbidden", "Invalid", "RequestEntityTooLarge"];

/// What is said of `ValidatingAdmissionPolicy`.
pub(super) const KIND: Kind = Kind {
    plural: "validatingadmissionpolicies",
    name: "ValidatingAdmissionPolicy",
    traits: &[
        Trait::ApiExtensions,
        Trait::Generation,
        Trait::VersionedUpdate,
        Trait::StatusAlone,
        Trait::Status,
    ],
    rules: &RULES,
    columns,
    effect: Some(Effect::AdmissionPolicy),
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: policy::defaults,
    status: Some(|| json!({})),
    check: |policy, old, errors| {
        let compiler = policy::check(policy, old, Role::Validating, errors);
        check_validations(policy, &compiler, errors);
    },
    check_status,
    warn: reserved::warnings,
    ..Rules::NONE
};

fn check_validations(policy: &At<'_, '_>, compiler: &Compiler, errors: &mut Errors) {
    const ONE: &str = "validations or auditAnnotations must contain at least one item";
    let spec = policy.at("spec");
    let rules = spec.at("validations");
    let annotations = spec.at("auditAnnotations");
    if rules.is_empty() && annotations.is_empty() {
        errors.push(rules.required(ONE));
        errors.push(annotations.required(ONE));
        return;
    }
    spec.each("validations").for_each(|rule| check_validation(&rule, compiler, errors));
    if annotations.len() > ANNOTATIONS_MAX {
        let detail = format!("must not have more than {ANNOTATIONS_MAX} auditAnnotations");
        errors.push(annotations.invalid(&detail));
    }
    let mut seen = HashSet::new();
    for annotation in spec.each("auditAnnotations") {
        let key = annotation.at("key");
        let value = annotation.at("valueExpression");
        let full = format!("{}/{}", text(&policy.value["metadata"]["name"]), key.text());
        errors.extend(names::invalid(&key.path(), &full, names::qualified_name));
        let given = value.text().trim();
        if given.is_empty() {
            errors.push(value.required("valueExpression is not specified"));
        } else if given.len() > ANNOTATION_EXPRESSION_MAX {
            let detail = format!("must not exceed {ANNOTATION_EXPRESSION_MAX} bytes in length");
            errors.push(value.required(&detail));
        } else if let Err(why) = compiler.expression(given, Returns::TextOrNull) {
            errors.push(value.invalid(&why));
        }
        if !seen.insert(key.text().to_owned()) {
            errors.push(key.duplicate());
        }
    }
}

fn check_validation(rule: &At<'_, '_>, compiler: &Compiler, errors: &mut Errors) {
    let expression = rule.at("expression");
    if expression.text().trim().is_empty() {
        errors.push(expression.required("expression is not specified"));
    } else if let Err(why) = compiler.expression(expression.text(), Returns::Bool) {
        errors.push(expression.invalid(&why));
    }
    for key in ["messageExpression", "message"] {
        let part = rule.at(key);
        let given = part.text().trim();
        if !part.text().is_empty() && given.is_empty() {
            errors.push(part.invalid("must be non-empty if specified"));
        } else if key == "messageExpression" && !given.is_empty() {
            if let Err(why) = compiler.message(part.text()) {
                errors.push(part.invalid(&why));
            }
        } else if key == "message" && given.contains(['\n', '\r']) {
            errors.push(part.invalid("must not contain line breaks"));
        }
    }
    rule.at("reason").one_of(REASONS, errors);
}

fn check_status(policy: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let status = policy.at("status");
    let checking = status.at("typeChecking");
    for warning in checking.each("expressionWarnings") {
        warning.require_all(&["warning", "fieldRef"], errors);
    }
    conditions(&status.at("conditions"), errors);
}

fn columns() -> Vec<Column> {
    vec![
        Column::count("Validations", |policy, _| len(&policy["spec"]["validations"]).into()),
        Column::text("ParamKind", policy::param_kind),
        age(),
    ]
}
