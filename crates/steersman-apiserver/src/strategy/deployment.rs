//! Deployments.

use serde_json::{Value, json};

use super::document::{fill, fill_text, immutable, not_negative, set, within};
use super::pod::defaults;
use super::{Strategy, template};
use crate::field::FieldError;

/// The strategy of deployments.
#[derive(Debug)]
pub(super) struct Deployment;

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
        let spec = &deployment["spec"];
        let mut errors: Vec<_> = not_negative(spec, "spec", "replicas").into_iter().collect();
        errors.extend(template::validate(spec, "deployment"));
        errors.extend(strategy(&spec["strategy"]));
        for key in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
            errors.extend(not_negative(spec, "spec", key));
        }
        let ready = spec["minReadySeconds"].as_i64().unwrap_or(0);
        if spec["progressDeadlineSeconds"].as_i64().is_some_and(|deadline| deadline <= ready) {
            let detail = "must be greater than minReadySeconds";
            let value = &spec["progressDeadlineSeconds"];
            errors.push(FieldError::invalid("spec.progressDeadlineSeconds", value, detail));
        }
        errors
    }

    fn validate_update(&self, old: &Value, new: &Value) -> Vec<FieldError> {
        let mut errors = self.validate_create(new);
        errors.extend(immutable(&old["spec"], &new["spec"], "spec", "selector"));
        errors
    }
}

fn strategy(strategy: &Value) -> Vec<FieldError> {
    let rolling = &strategy["rollingUpdate"];
    match strategy["type"].as_str().unwrap_or_default() {
        "Recreate" if !rolling.is_null() => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            vec![FieldError::forbidden("spec.strategy.rollingUpdate", detail)]
        }
        "Recreate" => Vec::new(),
        "RollingUpdate" => rolling_update(rolling),
        _ => {
            let allowed = ["Recreate", "RollingUpdate"];
            vec![FieldError::not_supported("spec.strategy", strategy, &allowed)]
        }
    }
}

fn rolling_update(rolling: &Value) -> Vec<FieldError> {
    const PATH: &str = "spec.strategy.rollingUpdate";
    let mut errors: Vec<_> = ["maxUnavailable", "maxSurge"]
        .iter()
        .filter_map(|key| int_or_percent(rolling, PATH, key))
        .collect();
    errors.extend(at_most_all(rolling, PATH, "maxUnavailable"));
    let zero = |key: &str| rolling[key] == 0 || rolling[key] == "0%";
    if zero("maxUnavailable") && zero("maxSurge") {
        let field = format!("{PATH}.maxUnavailable");
        let detail = "may not be 0 when `maxSurge` is 0";
        errors.push(FieldError::invalid(field, &rolling["maxUnavailable"], detail));
    }
    errors
}

/// Complains if the field is a percentage of more than everything.
pub(super) fn at_most_all(object: &Value, path: &str, key: &str) -> Option<FieldError> {
    let number = object[key].as_str()?.strip_suffix('%')?;
    let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    // What is too large for the type is also too large.
    let over = digits && !number.parse::<u64>().is_ok_and(|n| n <= 100);
    let detail = "must not be greater than 100%";
    over.then(|| FieldError::invalid(format!("{path}.{key}"), &object[key], detail))
}

/// Complains if the field is neither a number from zero nor a percentage.
pub(super) fn int_or_percent(object: &Value, path: &str, key: &str) -> Option<FieldError> {
    let value = &object[key];
    let percent = |text: &str| {
        text.strip_suffix('%')
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    match value {
        Value::String(text) if !percent(text) => {
            let detail = "a valid percent string must be a numeric string followed by an ending \
                          '%' (e.g. '1%', or '93%', regex used for validation is '[0-9]+%')";
            Some(FieldError::invalid(format!("{path}.{key}"), value, detail))
        }
        _ => not_negative(object, path, key),
    }
}
