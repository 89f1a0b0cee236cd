//! `DaemonSets`.

use serde_json::{Value, json};

use super::pod::defaults;
use super::template;
use crate::field::FieldError;
use crate::rules::Strategy;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, fill_text, same, set, text, within};
use crate::rules::label_selector::{label_selector, matches};
use crate::rules::rollout::{Counts, amount, at_most_all, int_or_percent};

const KIND: template::Kind = template::Kind { of_selector: "daemonset", of_deadline: "DaemonSet" };

/// Counts the versions of the template, for clients older than `ControllerRevisions`.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

const COUNTS: Counts = Counts {
    numbers: &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ],
    parts: &[],
    available: "",
};

/// The strategy of daemon sets.
#[derive(Debug)]
pub(in crate::kinds) struct DaemonSet;

impl Strategy for DaemonSet {
    fn default(&self, set: &mut Value) {
        if template_generation(set).is_none() {
            set_template_generation(set, 1);
        }
        within(set, "spec", |spec| {
            fill(spec, "revisionHistoryLimit", 10);
            within(spec, "updateStrategy", |strategy| {
                fill_text(strategy, "type", "RollingUpdate");
                if strategy["type"] == "RollingUpdate" {
                    within(strategy, "rollingUpdate", |rolling| {
                        fill(rolling, "maxUnavailable", 1);
                        fill(rolling, "maxSurge", 0);
                    });
                }
            });
            within(spec, "template", defaults::template);
        });
    }

    fn prepare_create(&self, object: &mut Value) {
        let zero = json!({
            "currentNumberScheduled": 0,
            "desiredNumberScheduled": 0,
            "numberMisscheduled": 0,
            "numberReady": 0,
        });
        set(object, "status", zero);
        let given = template_generation(object).filter(|generation| *generation >= 1);
        set_template_generation(object, given.unwrap_or(1));
    }

    fn prepare_update(&self, old: &Value, new: &mut Value) {
        // Only the whole template can be compared.
        self.default(new);
        let before = template_generation(old).unwrap_or(1);
        let changed = !same(&old["spec"]["template"], &new["spec"]["template"]);
        set_template_generation(new, before + i64::from(changed));
    }

    fn validate_create(&self, set: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = At::new(&set["spec"], "spec");
        let selector = spec.at("selector");
        label_selector(&selector, &mut errors);
        let labels = template::labels(spec.value);
        let matches = selector.is_set() && matches(selector.value, labels);
        template::matching(&spec, matches, &mut errors);
        template::not_everything(&selector, KIND, &mut errors);
        template::validate_template(&spec.at("template"), &mut errors);
        template::always_restarts(&spec.at("template"), KIND, &mut errors);
        spec.at("minReadySeconds").not_negative(&mut errors);
        update_strategy(&spec.at("updateStrategy"), &mut errors);
        spec.at("revisionHistoryLimit").not_negative(&mut errors);
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        At::root(new).at("spec.selector").unchanged(&old["spec"]["selector"], &mut errors);
        errors.extend(self.validate_create(new));
        errors
    }

    fn annotated_fields(&self) -> &'static [&'static str] {
        &[TEMPLATE_GENERATION]
    }

    fn validate_status_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        COUNTS.validate(old, new)
    }

    fn warnings(&self, set: &Value, old: Option<&Value>) -> Vec<String> {
        template::warnings_of(set, "spec.template", old)
    }
}

fn template_generation(set: &Value) -> Option<i64> {
    text(&set["metadata"]["annotations"][TEMPLATE_GENERATION]).parse().ok()
}

fn set_template_generation(object: &mut Value, generation: i64) {
    within(object, "metadata", |metadata| {
        within(metadata, "annotations", |annotations| {
            set(annotations, TEMPLATE_GENERATION, generation.to_string());
        });
    });
}

fn update_strategy(strategy: &At<'_, '_>, errors: &mut Errors) {
    match strategy.at("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.at("rollingUpdate");
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            int_or_percent(&unavailable, errors);
            int_or_percent(&surge, errors);
            at_most_all(&unavailable, errors);
            at_most_all(&surge, errors);
            match (amount(&unavailable), amount(&surge)) {
                (0, 0) => errors.push(unavailable.required("cannot be 0 when maxSurge is 0")),
                (1.., 1..) => {
                    let why = "may not be set when maxUnavailable is non-zero";
                    errors.push(surge.invalid(why));
                }
                _ => {}
            }
        }
        _ => errors.push(strategy.not_supported(&["RollingUpdate", "OnDelete"])),
    }
}
