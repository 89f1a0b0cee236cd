//! `IngressClass`: which controller serves ingresses of the class, and where its parameters lie.
//! The controller stays.

use jiff::Timestamp;
use serde_json::Value;

use super::object_reference::object_reference;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, text, within_existing};
use crate::table::{Column, age};

const CONTROLLER_MAX: usize = 250;

/// What is said of `IngressClass`.
pub(super) const KIND: Kind = Kind {
    plural: "ingressclasses",
    name: "IngressClass",
    traits: &[Trait::Generation],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |class| {
        within_existing(class, "spec", |spec| {
            within_existing(spec, "parameters", |p| fill(p, "scope", "Cluster"));
        });
    },
    check,
    ..Rules::NONE
};

/// Of an update, what may not change is told first.
fn check(class: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = class.at("spec");
    let controller = spec.at("controller");
    if !old.is_null() {
        controller.unchanged(&old["spec"]["controller"], errors);
    }
    if controller.text().len() > CONTROLLER_MAX {
        errors.push(controller.too_long(CONTROLLER_MAX));
    }
    names::domain_prefixed_path(controller.text(), &controller.path(), errors);
    let parameters = spec.at("parameters");
    if parameters.is_absent() {
        return;
    }
    object_reference(&parameters, errors);
    let scope = parameters.at("scope");
    let namespace = parameters.at("namespace");
    match (scope.text(), namespace.is_absent()) {
        ("Namespace", true) => {
            errors.push(namespace.required("`parameters.scope` is set to 'Namespace'"));
        }
        ("Namespace", false) => namespace.follows(names::dns1123_label, errors),
        ("Cluster", false) => {
            errors.push(namespace.forbidden("`parameters.scope` is set to 'Cluster'"));
        }
        ("Cluster", true) => {}
        _ => scope.requires_known(&["Cluster", "Namespace"], errors),
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("Name", class_name).called_name(),
        Column::field("Controller", "spec.controller", ""),
        Column::text("Parameters", parameters),
        age(),
    ]
}

fn class_name(class: &Value, _: Timestamp) -> Value {
    let annotations = &class["metadata"]["annotations"];
    let default = annotations["ingressclass.kubernetes.io/is-default-class"] == "true";
    let name = text(&class["metadata"]["name"]);
    if default { format!("{name} (default)").into() } else { name.into() }
}

fn parameters(class: &Value, _: Timestamp) -> Value {
    let parameters = &class["spec"]["parameters"];
    let kind = text(&parameters["kind"]);
    let name = text(&parameters["name"]);
    match text(&parameters["apiGroup"]) {
        _ if parameters.is_null() => "<none>".into(),
        "" => format!("{kind}/{name}").into(),
        group => format!("{kind}.{group}/{name}").into(),
    }
}
