//! What the two kinds of bindings of policies share: which policy, with which parameters, and about
//! what.

use jiff::Timestamp;
use serde_json::Value;

use super::matching::{match_resources, match_resources_defaults};
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::resource::Effect;
use crate::rules::at::{At, Errors};
use crate::rules::document::{text, within, within_existing};
use crate::rules::label_selector::label_selector;
use crate::table::cells;
use crate::table::{Column, age};

/// What is said of both kinds of bindings.
pub(super) const BINDING: Kind = Kind {
    traits: &[Trait::ApiExtensions, Trait::Generation, Trait::VersionedUpdate],
    columns,
    effect: Some(Effect::AdmissionPolicy),
    ..Kind::of_cluster(super::GROUP, "v1")
};

/// Fills in what a binding matches.
pub(super) fn defaults(binding: &mut Value) {
    within(binding, "spec", |spec| {
        within_existing(spec, "matchResources", match_resources_defaults);
    });
}

/// The mistakes in what both kinds of bindings say.
pub(super) fn check(spec: &At<'_, '_>, errors: &mut Errors) {
    spec.at("policyName").requires(names::dns1123_subdomain, errors);
    check_param_ref(&spec.at("paramRef"), errors);
    match_resources(&spec.at("matchResources"), errors);
}

fn check_param_ref(reference: &At<'_, '_>, errors: &mut Errors) {
    if reference.is_absent() {
        return;
    }
    let name = reference.at("name");
    let selector = reference.at("selector");
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

/// The policy and its parameters.
fn columns() -> Vec<Column> {
    vec![
        Column::field("PolicyName", "spec.policyName", ""),
        Column::text("ParamRef", param_ref),
        age(),
    ]
}

fn param_ref(binding: &Value, _: Timestamp) -> Value {
    let reference = &binding["spec"]["paramRef"];
    match (text(&reference["namespace"]), text(&reference["name"])) {
        (_, "") if reference["selector"].is_null() => "<unset>".into(),
        (_, "") => cells::selector_as_go_prints(&reference["selector"]).into(),
        ("", name) => format!("*/{name}").into(),
        (namespace, name) => format!("{namespace}/{name}").into(),
    }
}
