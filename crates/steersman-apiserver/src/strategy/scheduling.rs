//! Leases, priority classes and runtime classes.

use serde_json::Value;

use super::document::{fill, text};
use super::part::{Errors, Part};
use super::quota::container_resource;
use super::rules::Rules;
use crate::field::FieldError;
use crate::names;

const USER_PRIORITY_MAX: i64 = 1_000_000_000;
const EFFECTS: &[&str] = &["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// The priority classes that every cluster has, and their values.
const SYSTEM_CLASSES: &[(&str, i64)] =
    &[("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// The strategy of leases.
pub(super) const LEASE: Rules =
    Rules { check: |lease, _, errors| check_lease(&lease.field("spec"), errors), ..Rules::NONE };

/// The strategy of priority classes.
pub(super) const PRIORITY_CLASS: Rules = Rules {
    default: |class| fill(class, "preemptionPolicy", "PreemptLowerPriority"),
    check: priority_class,
    change: |class, old, errors| {
        let value = class.field("value");
        if *value.value != old["value"] {
            errors.push(value.forbidden("may not be changed in an update."));
        }
        class.field("preemptionPolicy").unchanged(&old["preemptionPolicy"], errors);
    },
    ..Rules::NONE
};

/// The strategy of runtime classes.
pub(super) const RUNTIME_CLASS: Rules = Rules {
    check: runtime_class,
    change: |class, old, errors| class.field("handler").unchanged(&old["handler"], errors),
    ..Rules::NONE
};

fn check_lease(spec: &Part<'_>, errors: &mut Errors) {
    let seconds = spec.field("leaseDurationSeconds");
    if !seconds.is_absent() {
        seconds.positive(errors);
    }
    spec.field("leaseTransitions").not_negative(errors);
    let strategy = spec.field("strategy");
    if !strategy.is_absent() {
        // The path is doubled, as it is in Kubernetes.
        let path = format!("{}.strategy", strategy.path());
        let strategy = Part::at(strategy.value, &path);
        if strategy.text().contains('/') {
            strategy.follows(names::qualified_name, errors);
        } else if strategy.text() != "OldestEmulationVersion" {
            errors.push(strategy.unsupported(&["OldestEmulationVersion"]));
        }
    }
    let preferred = spec.field("preferredHolder");
    if !preferred.is_empty() && strategy.is_empty() {
        errors.push(preferred.forbidden("may only be specified if `strategy` is defined"));
    }
}

fn priority_class(class: &Part<'_>, old: &Value, errors: &mut Errors) {
    if !old.is_null() {
        return;
    }
    let name = text(&class.value["metadata"]["name"]);
    let value = class.field("value");
    if name.starts_with("system-") {
        if let Some(why) = not_of_the_system(name, class.value) {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. \
                 error: {why}"
            );
            errors.push(FieldError::forbidden("metadata.name", &detail));
        }
    } else if value.number() > USER_PRIORITY_MAX {
        let most = "maximum allowed value of a user defined priority is";
        errors.push(value.forbidden(&format!("{most} {USER_PRIORITY_MAX}")));
    }
    let policy = class.field("preemptionPolicy");
    if !policy.is_absent() {
        policy.one_of(&["PreemptLowerPriority", "Never"], errors);
    }
}

fn not_of_the_system(name: &str, class: &Value) -> Option<String> {
    match SYSTEM_CLASSES.iter().find(|(known, _)| *known == name) {
        None => Some(format!("{name} is not a known system priority class")),
        Some((_, value)) if class["value"] != *value => {
            Some(format!("value of {name} PriorityClass must be {value}"))
        }
        Some(_) if class["globalDefault"] == true => {
            Some(format!("globalDefault of {name} PriorityClass must be false"))
        }
        Some(_) => None,
    }
}

fn runtime_class(class: &Part<'_>, old: &Value, errors: &mut Errors) {
    if !old.is_null() {
        return;
    }
    class.field("handler").need_name(names::dns1123_label, errors);
    let overhead = class.field("overhead");
    for (name, _) in overhead.entries("podFixed") {
        let path = format!("overhead.limits[{name}]");
        container_resource(name, &path, errors);
    }
    let scheduling = class.field("scheduling");
    let selector = scheduling.field("nodeSelector");
    if !selector.is_absent() {
        errors.extend(names::validate_labels(selector.value, "scheduling.nodeSelector"));
    }
    let mut seen: Vec<Value> = Vec::new();
    for toleration in scheduling.each("tolerations") {
        check_toleration(&toleration, errors);
        let mut key = toleration.value.clone();
        super::document::remove(&mut key, "tolerationSeconds");
        if seen.contains(&key) {
            errors.push(toleration.duplicate());
        }
        seen.push(key);
    }
}

fn check_toleration(toleration: &Part<'_>, errors: &mut Errors) {
    let [key, operator, value, effect] =
        ["key", "operator", "value", "effect"].map(|name| toleration.field(name));
    if !key.is_empty() {
        key.follows(names::qualified_name, errors);
    } else if operator.text() != "Exists" {
        let detail = "operator must be Exists when `key` is empty, which means \"match all \
                      values and all keys\"";
        let given = Value::from(operator.text());
        errors.push(FieldError::invalid(operator.path(), &given, detail));
    }
    let seconds = toleration.field("tolerationSeconds");
    if !seconds.is_absent() && effect.text() != "NoExecute" {
        let given = Value::from(effect.text());
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(effect.path(), &given, detail));
    }
    match operator.text() {
        "" | "Equal" => {
            let complaints = names::label_value(value.text());
            if !complaints.is_empty() {
                let detail = complaints.join(";");
                errors.push(FieldError::invalid(operator.path(), value.value, &detail));
            }
        }
        "Exists" if !value.is_empty() => {
            let detail = "value must be empty when `operator` is 'Exists'";
            errors.push(FieldError::invalid(operator.path(), value.value, detail));
        }
        "Exists" => {}
        _ => errors.push(operator.unsupported(&["Equal", "Exists"])),
    }
    if !effect.is_empty() && !EFFECTS.contains(&effect.text()) {
        errors.push(effect.unsupported(EFFECTS));
    }
}
