//! RuntimeClasses: what runs a pod's containers, and what that costs.

use std::collections::HashSet;

use serde_json::Value;

use crate::kinds::core::pod::resources;
use crate::kinds::core::pod::scheduling::tolerations;
use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::remove;
use crate::rules::node_label;
use crate::table::{Column, age};

/// What is said of RuntimeClasses.
pub(super) const KIND: Kind = Kind {
    plural: "runtimeclasses",
    name: "RuntimeClass",
    traits: &[Trait::CreateOnUpdate, Trait::VersionedUpdate],
    rules: &RULES,
    columns: || vec![Column::field("Handler", "handler", ""), age()],
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    check,
    change: |class, old, errors| class.at("handler").unchanged(&old["handler"], errors),
    warn: |class, _| {
        let selector = class["scheduling"]["nodeSelector"].as_object().into_iter().flatten();
        let old = selector.filter_map(|(key, _)| node_label::deprecation(key));
        old.map(|why| format!("scheduling.nodeSelector: {why}")).collect()
    },
    ..Rules::NONE
};

fn check(class: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    class.at("handler").requires(names::dns1123_label, errors);
    let overhead = class.at("overhead");
    resources::overhead(&overhead.with(&overhead.value["podFixed"]), errors);
    let scheduling = class.at("scheduling");
    let selector = scheduling.at("nodeSelector");
    if selector.is_set() {
        errors.extend(names::validate_labels(selector.value, "scheduling.nodeSelector"));
    }
    let mut seen = HashSet::new();
    tolerations(&scheduling.at("tolerations"), errors);
    for toleration in scheduling.each("tolerations") {
        let mut key = toleration.value.clone();
        remove(&mut key, "tolerationSeconds");
        if !seen.insert(key.to_string()) {
            errors.push(toleration.duplicate_as("Toleration"));
        }
    }
}
