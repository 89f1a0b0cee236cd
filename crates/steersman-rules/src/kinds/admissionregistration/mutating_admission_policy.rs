//! `MutatingAdmissionPolicy`: expressions that change objects on their way in.

use serde_json::Value;

use super::matching::REINVOCATION_POLICIES;
use super::policy::{self, Role};
use super::reserved;
use crate::admission_policy::{Compiler, Returns};
use crate::kinds::kind::{Kind, Trait};
use crate::resource::Effect;
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
    effect: Some(Effect::AdmissionPolicy),
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules =
    Rules { default: policy::defaults, check, warn: reserved::warnings, ..Rules::NONE };

fn check(policy: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let compiler = policy::check(policy, old, Role::Mutating, errors);
    let spec = policy.at("spec");
    spec.at("mutations").require_because("mutations must contain at least one item", errors);
    for mutation in spec.each("mutations") {
        check_mutation(&mutation, &compiler, errors);
    }
    spec.at("reinvocationPolicy").requires_one_of(REINVOCATION_POLICIES, errors);
}

fn check_mutation(mutation: &At<'_, '_>, compiler: &Compiler, errors: &mut Errors) {
    let kind = mutation.at("patchType");
    let (needed, other, returns) = match kind.text() {
        "JSONPatch" => ("jsonPatch", "applyConfiguration", Returns::Patches),
        "ApplyConfiguration" => ("applyConfiguration", "jsonPatch", Returns::Object),
        _ => return kind.requires_one_of(&["ApplyConfiguration", "JSONPatch"], errors),
    };
    let part = mutation.at(needed);
    if part.is_absent() {
        let detail = format!("must be specified when patchType is {}", kind.text());
        errors.push(part.required(&detail));
    } else {
        let expression = part.at("expression");
        let text = expression.text().trim();
        if text.is_empty() {
            errors.push(expression.required(""));
        } else if let Err(why) = compiler.mutation(text, returns) {
            errors.push(expression.invalid_value(text, &why));
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
