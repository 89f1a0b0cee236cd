//! `CSIStorageCapacity`: how much room a CSI driver has left for a class, and for which nodes.

use serde_json::Value;

use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::quantity::Quantity;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::label_selector::label_selector;
use crate::rules::node_label;

/// What is said of `CSIStorageCapacity`.
pub(super) const KIND: Kind = Kind {
    plural: "csistoragecapacities",
    name: "CSIStorageCapacity",
    traits: &[Trait::VersionedUpdate],
    rules: &RULES,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    check,
    change: |capacity, old, errors| {
        let topology = capacity.at("nodeTopology");
        topology.unchanged_as("*raw", &old["nodeTopology"], errors);
        capacity.at("storageClassName").unchanged(&old["storageClassName"], errors);
    },
    warn: |capacity, _| warnings(&At::root(capacity)),
    ..Rules::NONE
};

/// The warnings about old labels of nodes.
fn warnings(capacity: &At<'_, '_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let selector = capacity.at("nodeTopology");
    node_label::warn_of_term(&selector, &mut warnings);
    let labels = selector.at("matchLabels");
    for (key, why) in labels.entries().filter_map(|(k, _)| Some((k, node_label::deprecation(k)?))) {
        warnings.push(format!("{}.{key}: {why}", labels.path()));
    }
    warnings
}

fn check(capacity: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    label_selector(&capacity.at("nodeTopology"), errors);
    capacity.at("storageClassName").follows(names::dns1123_subdomain, errors);
    let room = capacity.at("capacity");
    if Quantity::of(room.value).is_some_and(Quantity::is_negative) {
        errors.push(room.invalid("must be greater than or equal to 0"));
    }
}
