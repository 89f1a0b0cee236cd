//! `CustomResourceDefinitions`: what of them may not change. What they define, and their own
//! status, are the server's business.

mod approval;
mod bundle;
mod resources;
mod validate;
mod warnings;

use serde_json::{Value, json};

pub use approval::{Approval, approval};
pub use bundle::bundle_mistake;
pub use resources::{Defined, resources, storage_version};

use crate::kinds::kind::{Kind, Trait};
use crate::resource::Effect;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, items, within_existing};

/// What is said of CustomResourceDefinitions.
pub(super) const KIND: Kind = Kind {
    plural: "customresourcedefinitions",
    name: "CustomResourceDefinition",
    short_names: &["crd", "crds"],
    traits: &[
        Trait::ApiExtensions,
        Trait::Generation,
        Trait::VersionedUpdate,
        Trait::Status,
        Trait::NoStatusTable,
    ],
    storage_prefix: Some("apiextensions.k8s.io/customresourcedefinitions"),
    rules: &RULES,
    effect: Some(Effect::Definition),
    ..Kind::of_cluster(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default: |definition| {
        complete(definition);
        if let Some(client) = definition.pointer_mut("/spec/conversion/webhook/clientConfig") {
            within_existing(client, "service", |service| fill(service, "port", 443));
        }
    },
    check: |definition, old, errors| {
        let old = Some(old).filter(|old| !old.is_null());
        errors.extend(validate::validate(definition.value, old));
    },
    change,
    warn: warnings::of_definition,
    ..Rules::NONE
};

/// What holds of all instances, besides what their schema says.
static INSTANCE: Rules = Rules { warn: warnings::of_instance, ..Rules::NONE };

/// Fills in the names that follow from others.
pub fn complete(definition: &mut Value) {
    let names = &definition["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or("").to_owned();
    let missing = |field: &str| names[field].as_str().unwrap_or("").is_empty();
    let singular = missing("singular");
    let list_kind = missing("listKind");
    if kind.is_empty() || !definition["spec"]["names"].is_object() {
        return;
    }
    if singular {
        definition["spec"]["names"]["singular"] = kind.to_lowercase().into();
    }
    if list_kind {
        definition["spec"]["names"]["listKind"] = format!("{kind}List").into();
    }
    if definition["spec"]["conversion"].is_null() {
        definition["spec"]["conversion"] = json!({"strategy": "None"});
    }
}

/// Whether what a definition says is served.
pub fn is_established(definition: &Value) -> bool {
    let conditions = items(&definition["status"]["conditions"]);
    conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// The group and the name in paths stay; so do kind and scope once the resource is served.
fn change(definition: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = definition.at("spec");
    let names = spec.at("names");
    let old_spec = &old["spec"];
    let old_names = &old["spec"]["names"];
    if is_established(old) {
        spec.at("scope").unchanged(&old_spec["scope"], errors);
        names.at("kind").unchanged(&old_names["kind"], errors);
    }
    spec.at("group").unchanged(&old_spec["group"], errors);
    names.at("plural").unchanged(&old_names["plural"], errors);
}
