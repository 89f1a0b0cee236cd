//! `ReplicaSets` and their elder, `ReplicationControllers`.

use serde_json::{Value, json};

use super::document::{fill, immutable, is_empty, not_negative, set, within};
use super::pod::defaults;
use super::{Strategy, template};
use crate::field::FieldError;

/// The strategy of replica sets.
#[derive(Debug)]
pub(super) struct ReplicaSet;

impl Strategy for ReplicaSet {
    fn default(&self, set: &mut Value) {
        within(set, "spec", |spec| {
            fill(spec, "replicas", 1);
            within(spec, "template", defaults::template);
        });
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"replicas": 0}));
    }

    fn validate_create(&self, set: &Value) -> Vec<FieldError> {
        let mut errors = numbers(&set["spec"]);
        // Kubernetes says "deployment" here as well.
        errors.extend(template::validate(&set["spec"], "deployment"));
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        errors.extend(immutable(&old["spec"], &new["spec"], "spec", "selector"));
        errors
    }
}

/// The strategy of replication controllers; their selector is a plain map, and may change.
#[derive(Debug)]
pub(super) struct ReplicationController;

impl Strategy for ReplicationController {
    fn default(&self, controller: &mut Value) {
        let labels = controller["spec"]["template"]["metadata"]["labels"].clone();
        let copy = |object: &mut Value, key: &str| {
            if is_empty(&object[key]) && !is_empty(&labels) {
                set(object, key, labels.clone());
            }
        };
        within(controller, "metadata", |metadata| copy(metadata, "labels"));
        within(controller, "spec", |spec| {
            copy(spec, "selector");
            fill(spec, "replicas", 1);
            within(spec, "template", defaults::template);
        });
    }

    fn prepare_create(&self, object: &mut Value) {
        set(object, "status", json!({"replicas": 0}));
    }

    fn validate_create(&self, controller: &Value) -> Vec<FieldError> {
        let spec = &controller["spec"];
        let mut errors = numbers(spec);
        if is_empty(&spec["selector"]) {
            errors.push(FieldError::required("spec.selector", ""));
        }
        let labels = &spec["template"]["metadata"]["labels"];
        if !template::matches(&json!({"matchLabels": spec["selector"]}), labels) {
            errors.push(template::mismatch(labels));
        }
        errors.extend(template::validate_template(&spec["template"], "spec.template"));
        errors.extend(template::always_restarts(&spec["template"], "replicationcontroller"));
        errors
    }
}

fn numbers(spec: &Value) -> Vec<FieldError> {
    let keys = ["replicas", "minReadySeconds"];
    keys.iter().filter_map(|key| not_negative(spec, "spec", key)).collect()
}
