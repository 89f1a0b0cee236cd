//! The configuration that a node once got from the cluster. It means nothing any more, but what
//! is written there must still be sound.

use serde_json::json;

use crate::names;
use crate::rules::at::{At, Errors};

/// The mistakes in what a node is told to use, and in what it says that it uses.
pub(super) fn validate(node: &At<'_, '_>, errors: &mut Errors) {
    let told = node.at("spec.configSource");
    if told.is_set() {
        source(&told, errors, |map, errors| {
            for key in ["uid", "resourceVersion"] {
                let field = map.at(key);
                if !field.is_empty() {
                    errors.push(field.forbidden(&format!("{key} must not be set in spec")));
                }
            }
        });
    }
    let used = node.at("status.config");
    for key in ["assigned", "active", "lastKnownGood"] {
        if used.at(key).is_set() {
            source(&used.at(key), errors, |map, errors| {
                map.require_all(&["uid", "resourceVersion"], errors);
            });
        }
    }
}

/// The mistakes in where configuration comes from; `version` checks which version is meant.
fn source(at: &At<'_, '_>, errors: &mut Errors, version: fn(&At<'_, '_>, &mut Errors)) {
    let map = at.at("configMap");
    if map.is_absent() {
        let why = "exactly one reference subfield must be non-nil";
        errors.push(at.invalid_value(json!({"ConfigMap": null}), why));
        return;
    }
    version(&map, errors);
    map.at("namespace").requires(names::dns1123_label, errors);
    map.at("name").requires(names::dns1123_subdomain, errors);
    map.at("kubeletConfigKey").requires(names::config_key, errors);
}
