//! Deployments.

use serde_json::{Value, json};

use super::pod::{defaults, warnings};
use super::template;
use crate::field::FieldError;
use crate::rules::Strategy;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_text, same, set, within};
use crate::rules::rollout::{Counts, amount, at_most_all, int_or_percent};

/// How deployments and replica sets are named in complaints about their templates.
pub(in crate::kinds) const KIND: template::Kind =
    template::Kind { of_selector: "deployment", of_deadline: "ReplicaSet" };

const COUNTS: Counts = Counts {
    numbers: &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ],
    parts: &["updatedReplicas", "readyReplicas", "availableReplicas"],
    available: "cannot be greater than readyReplicas",
};

/// The strategy of deployments.
#[derive(Debug)]
pub(in crate::kinds) struct Deployment;

impl Strategy for Deployment {
    fn default(&self, deployment: &mut Value) {
        within(deployment, "spec", |spec| {
            fill(spec, "replicas", 1);
            fill(spec, "revisionHistoryLimit", 10);
            fill(spec, "progressDeadlineSeconds", 600);
            within(spec, "strategy", |strategy| {
                fill_text(strategy, "type", "RollingUpdate");
                if strategy["type"] == "RollingUpdate" {
                    within(strategy, "rollingUpdate", |rolling| {
                        fill(rolling, "maxUnavailable", "25%");
                        fill(rolling, "maxSurge", "25%");
                    });
                }
            });
            within(spec, "template", defaults::template);
        });
    }

    fn prepare_create(&self, deployment: &mut Value) {
        set(deployment, "status", json!({}));
    }

    fn validate_create(&self, deployment: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = At::new(&deployment["spec"], "spec");
        spec.at("replicas").not_negative(&mut errors);
        template::validate(&spec, KIND, &mut errors);
        strategy(&spec.at("strategy"), &mut errors);
        let (ready, deadline) = (spec.at("minReadySeconds"), spec.at("progressDeadlineSeconds"));
        ready.not_negative(&mut errors);
        spec.at("revisionHistoryLimit").not_negative(&mut errors);
        deadline.not_negative(&mut errors);
        if deadline.number().is_some_and(|seconds| seconds <= ready.number_or_zero()) {
            errors.push(deadline.invalid("must be greater than minReadySeconds"));
        }
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        At::root(new).at("spec.selector").unchanged(&old["spec"]["selector"], &mut errors);
        errors
    }

    /// Annotations of a deployment are copied to its replica sets, so they count.
    fn is_new_generation(&self, old: &Value, new: &Value) -> bool {
        !same(&old["metadata"]["annotations"], &new["metadata"]["annotations"])
    }

    fn validate_status_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        COUNTS.validate(old, new)
    }

    fn warnings(&self, deployment: &Value, old: Option<&Value>) -> Vec<String> {
        let mut found = template::warnings_of(deployment, "spec.template", old);
        if old.is_none() {
            found.extend(warnings::of_name(deployment, "Pod names and hostnames"));
        }
        found
    }
}

fn strategy(strategy: &At<'_, '_>, errors: &mut Errors) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").text() {
        "Recreate" if rolling.is_set() => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(rolling.forbidden(why));
        }
        "Recreate" => {}
        "RollingUpdate" => rolling_update(&rolling, errors),
        _ => errors.push(strategy.not_supported(&["Recreate", "RollingUpdate"])),
    }
}

fn rolling_update(rolling: &At<'_, '_>, errors: &mut Errors) {
    let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
    int_or_percent(&unavailable, errors);
    int_or_percent(&surge, errors);
    if amount(&unavailable) == 0 && amount(&surge) == 0 {
        errors.push(unavailable.invalid("may not be 0 when `maxSurge` is 0"));
    }
    at_most_all(&unavailable, errors);
}
