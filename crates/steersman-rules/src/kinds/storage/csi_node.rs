//! `CSINode`: what CSI drivers say of a node: the name they know it by, its topology, and how many
//! volumes it takes. Only the last changes.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::kinds::core::persistent_volume::driver_name;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, remove, text};
use crate::table::cells::len;
use crate::table::{Column, age};

const NODE_ID_MAX: usize = 256;

/// What is said of `CSINode`.
pub(super) const KIND: Kind = Kind {
    plural: "csinodes",
    name: "CSINode",
    traits: &[Trait::VersionedUpdate],
    rules: &RULES,
    columns,
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules { check, change, ..Rules::NONE };

fn check(node: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = node.at("spec");
    let mut seen = HashSet::new();
    for driver in spec.each("drivers") {
        let name = driver.at("name");
        let id = driver.at("nodeID");
        driver_name(&name, errors);
        id.require(errors);
        if id.text().len() > NODE_ID_MAX {
            errors.push(id.invalid(&format!("must be {NODE_ID_MAX} characters or less")));
        }
        let allocatable = driver.at("allocatable");
        allocatable.at("count").not_negative(errors);
        if !seen.insert(name.text().to_owned()) {
            errors.push(name.duplicate());
        }
        check_topology_keys(&driver, errors);
    }
}

/// Kubernetes complains of the driver, not of the key.
fn check_topology_keys(driver: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for key in driver.at("topologyKeys").list().iter().map(text) {
        if key.is_empty() {
            errors.push(driver.required(""));
        }
        if !seen.insert(key) {
            errors.push(driver.duplicate_value(key));
        }
        errors.extend(names::invalid(&driver.path(), key, names::qualified_name));
    }
}

fn change(node: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let mut known: HashMap<&str, &Value> = HashMap::new();
    for driver in items(&old["spec"]["drivers"]) {
        known.entry(text(&driver["name"])).or_insert(driver);
    }
    for driver in items(&node.value["spec"]["drivers"]) {
        if let Some(before) = known.get(text(&driver["name"]))
            && fixed(before) != fixed(driver)
        {
            let fixed = fixed(driver);
            let shown = At::new(&fixed, "spec.drivers");
            errors.push(shown.invalid_as("CSINodeDriver", "field is immutable"));
        }
    }
}

/// What of a driver on a node does not change.
fn fixed(driver: &Value) -> Value {
    let mut driver = driver.clone();
    remove(&mut driver, "allocatable");
    driver
}

fn columns() -> Vec<Column> {
    vec![Column::count("Drivers", |node, _| len(&node["spec"]["drivers"]).into()), age()]
}
