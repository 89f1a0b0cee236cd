//! `StorageClass`: who makes volumes of the class, how, and where they may be used. Of what
//! volumes were made from, nothing changes.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::Value;

use super::parameters::{parameters, provisioner};
use crate::kinds::kind::Kind;
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, text};
use crate::table::{Column, age};

/// What is said of `StorageClass`.
pub(super) const KIND: Kind = Kind {
    plural: "storageclasses",
    name: "StorageClass",
    short_names: &["sc"],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |class| {
        fill(class, "reclaimPolicy", "Delete");
        fill(class, "volumeBindingMode", "Immediate");
    },
    check,
    change: |class, old, errors| {
        class.at("parameters").unchanged(&old["parameters"], errors);
        let driver = class.at("provisioner");
        if driver.text() != text(&old["provisioner"]) {
            let given = Value::from(driver.text());
            errors.push(driver.invalid_value(given, "field is immutable"));
        }
        for field in ["reclaimPolicy", "volumeBindingMode"] {
            class.at(field).unchanged(&old[field], errors);
        }
    },
    ..Rules::NONE
};

fn check(class: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    provisioner(&class.at("provisioner"), errors);
    parameters(class, errors);
    let policy = class.at("reclaimPolicy");
    if !policy.is_empty() {
        policy.requires_one_of(&["Delete", "Retain"], errors);
    }
    class.at("volumeBindingMode").requires_one_of(&["Immediate", "WaitForFirstConsumer"], errors);
    let mut seen = HashSet::new();
    for term in class.each("allowedTopologies") {
        check_topology_term(&term, errors);
        let expressions = term.at("matchLabelExpressions");
        if !seen.insert(expressions.value.to_string()) {
            errors.push(expressions.duplicate_value(""));
        }
    }
}

fn check_topology_term(term: &At<'_, '_>, errors: &mut Errors) {
    let mut keys = HashSet::new();
    for requirement in term.each("matchLabelExpressions") {
        let mut seen = HashSet::new();
        requirement.at("values").require(errors);
        for value in requirement.each("values") {
            if !seen.insert(value.text()) {
                errors.push(value.duplicate());
            }
        }
        let key = requirement.at("key");
        key.follows(names::qualified_name, errors);
        if !keys.insert(key.text()) {
            errors.push(key.duplicate());
        }
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::text("Name", class_name).called_name(),
        Column::field("Provisioner", "provisioner", ""),
        Column::field("ReclaimPolicy", "reclaimPolicy", "Delete"),
        Column::field("VolumeBindingMode", "volumeBindingMode", "Immediate"),
        Column::switch("AllowVolumeExpansion", "allowVolumeExpansion").called_text(),
        age(),
    ]
}

fn class_name(class: &Value, _: Timestamp) -> Value {
    let annotations = &class["metadata"]["annotations"];
    let default = annotations["storageclass.kubernetes.io/is-default-class"] == "true"
        || annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true";
    let name = text(&class["metadata"]["name"]);
    if default { format!("{name} (default)").into() } else { name.into() }
}
