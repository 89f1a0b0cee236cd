//! `CustomResourceDefinitions`: what of them may not change. What they define, and their own
//! names, versions and status, are the business of [`crate::crd`].

use serde_json::Value;

use super::at::{At, Errors};
use super::document::{fill, items, within_existing};
use super::rules::Rules;
use crate::crd;

/// The strategy of custom resource definitions.
pub(super) const DEFINITION: Rules = Rules {
    default: |definition| {
        crd::complete(definition);
        if let Some(client) = definition.pointer_mut("/spec/conversion/webhook/clientConfig") {
            within_existing(client, "service", |service| fill(service, "port", 443));
        }
    },
    change,
    ..Rules::NONE
};

/// The group and the name in paths stay; so do kind and scope once the resource is served.
fn change(definition: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    let spec = definition.at("spec");
    let names = spec.at("names");
    let (old_spec, old_names) = (&old["spec"], &old["spec"]["names"]);
    let conditions = items(&old["status"]["conditions"]);
    if conditions.iter().any(|c| c["type"] == "Established" && c["status"] == "True") {
        spec.at("scope").unchanged(&old_spec["scope"], errors);
        names.at("kind").unchanged(&old_names["kind"], errors);
    }
    spec.at("group").unchanged(&old_spec["group"], errors);
    names.at("plural").unchanged(&old_names["plural"], errors);
}
