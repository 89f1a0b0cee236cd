//! HorizontalPodAutoscalers: how many pods there are, by what they are measured at.

mod columns;
mod metrics;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::kinds::kind::{Kind, Trait};
use crate::names;
use crate::quantity::Quantity;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, is_empty, set, within, within_existing};
use crate::versions::{self, autoscaler};

/// What is said of HorizontalPodAutoscalers.
pub(super) const KIND: Kind = Kind {
    plural: "horizontalpodautoscalers",
    name: "HorizontalPodAutoscaler",
    short_names: &["hpa"],
    traits: &[Trait::All, Trait::Status],
    rules: &RULES,
    columns: columns::columns,
    ..Kind::namespaced(super::GROUP, "v2")
};

/// The older version of the same.
pub(super) const V1: Kind = Kind { version: "v1", ..KIND };

const RULES: Rules = Rules {
    default,
    status: Some(|| json!({"currentReplicas": 0, "desiredReplicas": 0})),
    check,
    create: |autoscaler| autoscaler::keep_status(&Value::Null, autoscaler),
    keep: autoscaler::keep_status,
    prepare_status: autoscaler::keep_spec,
    check_status: |autoscaler, _, errors| {
        let status = autoscaler.at("status");
        status.at("currentReplicas").not_negative(errors);
        status.at("desiredReplicas").not_negative(errors);
    },
    ..Rules::NONE
};

const OLDER: &str = "autoscaling/v1";

/// Where `v1` keeps metrics that it does not know.
const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";

/// How much of its CPU a pod should use, in percent, unless the autoscaler says otherwise.
const UTILIZATION: i64 = 80;

fn default(autoscaler: &mut Value) {
    autoscaler::tidy(autoscaler);
    let v1 = autoscaler["apiVersion"] == OLDER;
    let others = !autoscaler["metadata"]["annotations"][METRICS].is_null();
    within(autoscaler, "spec", |spec| {
        fill(spec, "minReplicas", 1);
        if v1 && !others {
            fill(spec, "targetCPUUtilizationPercentage", UTILIZATION);
        }
        if v1 {
            return;
        }
        if is_empty(&spec["metrics"]) {
            let target = json!({"type": "Utilization", "averageUtilization": UTILIZATION});
            let cpu = json!({"name": "cpu", "target": target});
            set(spec, "metrics", json!([{"type": "Resource", "resource": cpu}]));
        }
        within_existing(spec, "behavior", default_behavior);
    });
}

fn default_behavior(behavior: &mut Value) {
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
}

/// The rules are those of `v2`, in either version; `old` is null for a new one.
fn check(autoscaler: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    if autoscaler.value["apiVersion"] == OLDER {
        let mut converted = autoscaler.value.clone();
        versions::to_api_version(&mut converted, "autoscaling/v2");
        return check(&At::root(&converted), old, errors);
    }
    let spec = autoscaler.at("spec");
    let least = spec.at("minReplicas");
    let most = spec.at("maxReplicas");
    // One that already scaled to zero may go on.
    let bound = i64::from(old.is_null() || old["spec"]["minReplicas"] != 0);
    if least.number().is_some_and(|number| number < bound) {
        errors.push(least.invalid(&format!("must be greater than or equal to {bound}")));
    }
    match most.number_or_zero() {
        0 => errors.push(most.required("must be set and greater than 0")),
        ..0 => errors.push(most.invalid("must be greater than or equal to 1")),
        _ => {}
    }
    if least.number().is_some_and(|least| most.number_or_zero() < least) {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(most.invalid_value(most.number_or_zero(), why));
    }
    let target = spec.at("scaleTargetRef");
    let before = &old["spec"]["scaleTargetRef"];
    let unchanged = |key: &str| !old.is_null() && before[key] == target.value[key];
    let group = match target.at("kind").text() {
        _ if unchanged("apiVersion") && unchanged("kind") => Group::Unchecked,
        "ReplicationController" => Group::Optional,
        _ => Group::Required,
    };
    reference(&target, group, errors);
    metrics::validate(&spec, errors);
    for direction in ["behavior.scaleUp", "behavior.scaleDown"] {
        let rules = spec.at(direction);
        if rules.is_set() {
            scaling_rules(&rules, errors);
        }
    }
}

/// Whether a reference must say the group of what it refers to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Group {
    Required,
    Optional,
    Unchecked,
}

fn reference(at: &At<'_, '_>, group: Group, errors: &mut Errors) {
    at.at("kind").requires(names::path_segment, errors);
    at.at("name").requires(names::path_segment, errors);
    let version = at.at("apiVersion");
    match version.text().split('/').count() {
        _ if group == Group::Unchecked => {}
        3.. => {
            let why = format!("unexpected GroupVersion string: {}", version.text());
            errors.push(version.invalid(&why));
        }
        1 if group == Group::Required => {
            let why = "apiVersion must specify API group";
            errors.push(version.invalid_value(version.text(), why));
        }
        _ => {}
    }
}

fn scaling_rules(rules: &At<'_, '_>, errors: &mut Errors) {
    const WINDOW_MAX: i64 = 3600;
    const PERIOD_MAX: i64 = 1800;
    let window = rules.at("stabilizationWindowSeconds");
    match window.number() {
        Some(..0) => errors.push(window.invalid("must be greater than or equal to zero")),
        Some(seconds) if seconds > WINDOW_MAX => {
            errors.push(window.invalid(&format!("must be less than or equal to {WINDOW_MAX}")));
        }
        _ => {}
    }
    rules.at("selectPolicy").one_of(&["Disabled", "Max", "Min"], errors);
    let policies = rules.at("policies");
    if policies.list().is_empty() {
        errors.push(policies.required("must specify at least one Policy"));
    }
    for policy in policies.items() {
        let kind = policy.at("type");
        if !["Percent", "Pods"].contains(&kind.text()) {
            errors.push(kind.not_supported(&["Percent", "Pods"]));
        }
        for key in ["value", "periodSeconds"] {
            let number = policy.at(key).number_or_zero();
            if number <= 0 {
                let why = "must be greater than zero";
                errors.push(policy.at(key).invalid_value(number, why));
            }
        }
        let period = policy.at("periodSeconds");
        if period.number().is_some_and(|seconds| seconds > PERIOD_MAX) {
            errors.push(period.invalid(&format!("must be less than or equal to {PERIOD_MAX}")));
        }
    }
    let tolerance = rules.at("tolerance");
    if Quantity::of(tolerance.value).is_some_and(Quantity::is_negative) {
        errors.push(tolerance.invalid("must be greater than or equal to 0"));
    }
}
