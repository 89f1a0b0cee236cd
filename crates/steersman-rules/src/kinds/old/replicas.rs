//! `ReplicaSets` and their elder, `ReplicationControllers`.

use serde_json::{Value, json};

use super::pod::{defaults, warnings};
use super::{deployment, template};
use crate::field::FieldError;
use crate::rules::Strategy;
use crate::rules::at::At;
use crate::rules::document::{fill, is_empty, set, within};
use crate::rules::label_selector::matches;
use crate::rules::rollout::Counts;

const COUNTS: Counts = Counts {
    numbers: &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ],
    parts: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    available: "cannot be greater than readyReplicas",
};

/// The strategy of replica sets.
#[derive(Debug)]
pub(in crate::kinds) struct ReplicaSet;

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
        let mut errors = Vec::new();
        let spec = At::new(&set["spec"], "spec");
        spec.at("replicas").not_negative(&mut errors);
        spec.at("minReadySeconds").not_negative(&mut errors);
        // Kubernetes says "deployment" here as well.
        template::validate(&spec, deployment::KIND, &mut errors);
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        At::root(new).at("spec.selector").unchanged(&old["spec"]["selector"], &mut errors);
        errors
    }

    fn validate_status_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        COUNTS.validate(old, new)
    }

    fn warnings(&self, set: &Value, old: Option<&Value>) -> Vec<String> {
        of_pods(set, old)
    }
}

/// The strategy of replication controllers; their selector is a plain map, and may change.
#[derive(Debug)]
pub(in crate::kinds) struct ReplicationController;

const CONTROLLER: template::Kind =
    template::Kind { of_selector: "", of_deadline: "ReplicationController" };

impl Strategy for ReplicationController {
    fn default(&self, controller: &mut Value) {
        let labels = template::labels(&controller["spec"]).clone();
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
        let mut errors = Vec::new();
        let spec = At::new(&controller["spec"], "spec");
        spec.at("minReadySeconds").not_negative(&mut errors);
        let selector = spec.at("selector");
        if selector.is_empty() {
            errors.push(selector.required(""));
        }
        spec.at("replicas").not_negative(&mut errors);
        let wanted = json!({"matchLabels": selector.value});
        let matches = matches(&wanted, template::labels(spec.value));
        template::matching(&spec, matches, &mut errors);
        template::validate_template(&spec.at("template"), &mut errors);
        template::always_restarts(&spec.at("template"), CONTROLLER, &mut errors);
        errors
    }

    fn validate_status_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        COUNTS.validate(old, new)
    }

    fn warnings(&self, controller: &Value, old: Option<&Value>) -> Vec<String> {
        of_pods(controller, old)
    }
}

fn of_pods(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found = template::warnings_of(object, "spec.template", old);
    if old.is_none() {
        found.extend(warnings::of_name(object, "Pod names and hostnames"));
    }
    found
}
