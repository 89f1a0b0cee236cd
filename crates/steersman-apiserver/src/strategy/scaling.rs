//! What changes how many pods there are: autoscalers and disruption budgets.

use serde_json::{Value, json};

use super::document::{fill, is_empty, not_negative, required, set, within, within_existing};
use super::simple::Simple;
use super::{deployment, template};
use crate::field::FieldError;

/// The strategies of this family.
pub(super) fn strategy(kind: &str) -> Simple {
    match kind {
        "HorizontalPodAutoscaler" => Simple {
            default: autoscaler_defaults,
            status: Some(|| json!({"currentReplicas": 0, "desiredReplicas": 0})),
            validate: autoscaler,
            ..Simple::NOTHING
        },
        _ => Simple {
            status: Some(|| {
                json!({
                    "currentHealthy": 0,
                    "desiredHealthy": 0,
                    "disruptionsAllowed": 0,
                    "expectedPods": 0,
                })
            }),
            validate: budget,
            ..Simple::NOTHING
        },
    }
}

fn autoscaler_defaults(autoscaler: &mut Value) {
    let v1 = autoscaler["apiVersion"] == "autoscaling/v1";
    within(autoscaler, "spec", |spec| {
        fill(spec, "minReplicas", 1);
        if v1 {
            return;
        }
        if is_empty(&spec["metrics"]) {
            let target = json!({"type": "Utilization", "averageUtilization": 80});
            let cpu = json!({"name": "cpu", "target": target});
            set(spec, "metrics", json!([{"type": "Resource", "resource": cpu}]));
        }
        within_existing(spec, "behavior", |behavior| {
            let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
            let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
            within(behavior, "scaleUp", |rules| {
                fill(rules, "stabilizationWindowSeconds", 0);
                fill(rules, "selectPolicy", "Max");
                fill(rules, "policies", vec![pods, percent.clone()]);
            });
            within(behavior, "scaleDown", |rules| {
                fill(rules, "selectPolicy", "Max");
                fill(rules, "policies", vec![percent]);
            });
        });
    });
}

fn autoscaler(autoscaler: &Value) -> Vec<FieldError> {
    let spec = &autoscaler["spec"];
    let mut errors = Vec::new();
    let minimum = spec["minReplicas"].as_i64().unwrap_or(1);
    let maximum = spec["maxReplicas"].as_i64().unwrap_or(0);
    if minimum < 1 {
        let detail = "must be greater than or equal to 1";
        errors.push(FieldError::invalid("spec.minReplicas", &spec["minReplicas"], detail));
    }
    if maximum < 1 {
        let detail = "must be greater than 0";
        errors.push(FieldError::invalid("spec.maxReplicas", &maximum.into(), detail));
    } else if maximum < minimum {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.push(FieldError::invalid("spec.maxReplicas", &maximum.into(), detail));
    }
    let target = &spec["scaleTargetRef"];
    let keys = ["kind", "name"];
    errors.extend(keys.iter().filter_map(|key| required(target, "spec.scaleTargetRef", key)));
    errors
}

fn budget(budget: &Value) -> Vec<FieldError> {
    let spec = &budget["spec"];
    let mut errors = Vec::new();
    if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
        let detail = "minAvailable and maxUnavailable cannot be both set";
        errors.push(FieldError::invalid("spec", spec, detail));
    }
    for key in ["minAvailable", "maxUnavailable"] {
        errors.extend(deployment::int_or_percent(spec, "spec", key));
        errors.extend(deployment::at_most_all(spec, "spec", key));
    }
    errors.extend(not_negative(spec, "spec", "minReadySeconds"));
    errors.extend(template::validate_selector(&spec["selector"], "spec.selector"));
    errors
}
