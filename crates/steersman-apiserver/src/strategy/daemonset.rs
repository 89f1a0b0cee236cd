//! `DaemonSets`.

use serde_json::{Value, json};

use super::document::{fill, fill_text, immutable, not_negative, set, text, within};
use super::pod::defaults;
use super::{Strategy, deployment, template};
use crate::field::FieldError;

/// The strategy of daemon sets.
#[derive(Debug)]
pub(super) struct DaemonSet;

impl Strategy for DaemonSet {
    fn default(&self, set: &mut Value) {
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
    }

    fn validate_create(&self, set: &Value) -> Vec<FieldError> {
        let spec = &set["spec"];
        let mut errors = template::validate(spec, "daemonset");
        for key in ["minReadySeconds", "revisionHistoryLimit"] {
            errors.extend(not_negative(spec, "spec", key));
        }
        errors.extend(update_strategy(&spec["updateStrategy"]));
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        errors.extend(immutable(&old["spec"], &new["spec"], "spec", "selector"));
        errors
    }
}

fn update_strategy(strategy: &Value) -> Vec<FieldError> {
    const PATH: &str = "spec.updateStrategy.rollingUpdate";
    match text(&strategy["type"]) {
        "OnDelete" => Vec::new(),
        "RollingUpdate" => {
            let rolling = &strategy["rollingUpdate"];
            let of_key = |key: &&str| {
                let wrong = deployment::int_or_percent(rolling, PATH, key);
                wrong.or_else(|| deployment::at_most_all(rolling, PATH, key))
            };
            ["maxUnavailable", "maxSurge"].iter().filter_map(of_key).collect()
        }
        _ => {
            let allowed = ["RollingUpdate", "OnDelete"];
            let field = "spec.updateStrategy.type";
            vec![FieldError::not_supported(field, &strategy["type"], &allowed)]
        }
    }
}
