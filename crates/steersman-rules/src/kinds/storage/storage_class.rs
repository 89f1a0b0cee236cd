//! `StorageClass`: who makes volumes of the class, how, and where they may be used. Of what
//! volumes were made from, nothing changes.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::Timestamp;
use serde_json::Value;

use super::parameters::{parameters, provisioner};
use crate::kinds::kind::Kind;
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, items, text};
use crate::rules::node_label;
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
    warn: |class, _| warnings(&At::root(class)),
    ..Rules::NONE
};

fn check(class: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    provisioner(&class.at("provisioner"), errors);
    parameters(class, errors);
    let policy = class.at("reclaimPolicy");
    if !policy.is_empty() {
        policy.requires_one_of(&["Delete", "Retain"], errors);
    }
    class.at("volumeBindingMode").requires_known(&["Immediate", "WaitForFirstConsumer"], errors);
    // Kubernetes compares each term with those before it, and with as many empty ones as there
    // are terms.
    let mut seen = HashMap::from([(Topology::new(), class.at("allowedTopologies").len())]);
    for term in class.each("allowedTopologies") {
        check_topology_term(&term, errors);
        let expressions = term.at("matchLabelExpressions");
        let times = seen.entry(topology(&term)).or_default();
        for _ in 0..*times {
            if errors.is_full() {
                return;
            }
            errors.push(expressions.duplicate_value(""));
        }
        *times += 1;
    }
}

/// The values that each label may have.
type Topology<'v> = BTreeMap<&'v str, BTreeSet<&'v str>>;

fn topology<'v>(term: &At<'v, '_>) -> Topology<'v> {
    let expressions = items(&term.value["matchLabelExpressions"]).iter();
    let values = |expression: &'v Value| items(&expression["values"]).iter().map(text).collect();
    expressions.map(|expression| (text(&expression["key"]), values(expression))).collect()
}

fn warnings(class: &At<'_, '_>) -> Vec<String> {
    let mut warnings = Vec::new();
    for term in class.each("allowedTopologies") {
        for expression in term.each("matchLabelExpressions") {
            let key = expression.at("key");
            if let Some(why) = node_label::deprecation(key.text()) {
                warnings.push(format!("{}: {why}", key.path()));
            }
        }
    }
    warnings
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
