//! `MutatingAdmissionPolicy`: expressions that change objects on their way in.

use serde_json::Value;

use super::matching::{REINVOCATION_POLICIES, mutating_operations};
use super::policy;
use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::table::cells::len;
use crate::table::{Column, age};

/// What is said of `MutatingAdmissionPolicy`.
pub(super) const KIND: Kind = Kind {
    plural: "mutatingadmissionpolicies",
    name: "MutatingAdmissionPolicy",
    traits: &[Trait::ApiExtensions, Trait::Generation, Trait::VersionedUpdate],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules { default: policy::defaults, check, ..Rules::NONE };

fn check(policy: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = policy.at("spec");
    policy::check(&spec, errors);
    mutating_operations(&spec.at("matchConstraints"), errors);
    spec.at("mutations").require_because("mutations must contain at least one item", errors);
    for mutation in spec.each("mutations") {
        check_mutation(&mutation, errors);
    }
    spec.at("reinvocationPolicy").requires_one_of(REINVOCATION_POLICIES, errors);
}

fn check_mutation(mutation: &At<'_, '_>, errors: &mut Errors) {
    let kind = mutation.at("patchType");
    let (needed, other) = match kind.text() {
        "JSONPatch" => ("jsonPatch", "applyConfiguration"),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch"),
        _ => return kind.requires_one_of(&["ApplyConfiguration", "JSONPatch"], errors),
    };
    let part = mutation.at(needed);
    if part.is_absent() {
        let detail = format!("must be specified when patchType is {}", kind.text());
        errors.push(part.required(&detail));
    } else {
        let expression = part.at("expression");
        if expression.text().trim().is_empty() {
            errors.push(expression.required("expression is not specified"));
        }
    }
    let unwanted = mutation.at(other);
    if unwanted.is_set() {
        let detail = format!("must not be specified when patchType is {}", kind.text());
        errors.push(unwanted.invalid_value(format!("{{{other}}}"), &detail));
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::count("Mutations", |policy, _| len(&policy["spec"]["mutations"]).into()),
        Column::text("ParamKind", policy::param_kind),
        age(),
    ]
}
