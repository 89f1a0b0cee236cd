//! Leases, priority classes and runtime classes.

use serde_json::Value;

use super::pod::scheduling::tolerations;
use crate::field::FieldError;
use crate::names;
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{fill, text};
use crate::rules::resource_name::check_of_container;

const USER_PRIORITY_MAX: i64 = 1_000_000_000;

/// The priority classes that every cluster has, and their values.
const SYSTEM_CLASSES: &[(&str, i64)] =
    &[("system-node-critical", 2_000_001_000), ("system-cluster-critical", 2_000_000_000)];

/// The strategy of leases.
pub(in crate::kinds) const LEASE: Rules =
    Rules { check: |lease, _, errors| check_lease(&lease.at("spec"), errors), ..Rules::NONE };

/// The strategy of priority classes.
pub(in crate::kinds) const PRIORITY_CLASS: Rules = Rules {
    default: |class| fill(class, "preemptionPolicy", "PreemptLowerPriority"),
    check: priority_class,
    change: |class, old, errors| {
        let value = class.at("value");
        if *value.value != old["value"] {
            errors.push(value.forbidden("may not be changed in an update."));
        }
        class.at("preemptionPolicy").unchanged(&old["preemptionPolicy"], errors);
    },
    ..Rules::NONE
};

/// The strategy of runtime classes.
pub(in crate::kinds) const RUNTIME_CLASS: Rules = Rules {
    check: runtime_class,
    change: |class, old, errors| class.at("handler").unchanged(&old["handler"], errors),
    ..Rules::NONE
};

fn check_lease(spec: &At<'_, '_>, errors: &mut Errors) {
    let seconds = spec.at("leaseDurationSeconds");
    if seconds.is_set() {
        seconds.positive(errors);
    }
    spec.at("leaseTransitions").not_negative(errors);
    let strategy = spec.at("strategy");
    if strategy.is_set() {
        // The path is doubled, as it is in Kubernetes.
        let path = format!("{}.strategy", strategy.path());
        let strategy = At::new(strategy.value, &path);
        if strategy.text().contains('/') {
            strategy.follows(names::qualified_name, errors);
        } else if strategy.text() != "OldestEmulationVersion" {
            errors.push(strategy.not_supported(&["OldestEmulationVersion"]));
        }
    }
    let preferred = spec.at("preferredHolder");
    if !preferred.is_empty() && strategy.is_empty() {
        errors.push(preferred.forbidden("may only be specified if `strategy` is defined"));
    }
}

fn priority_class(class: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    if !old.is_null() {
        return;
    }
    let name = text(&class.value["metadata"]["name"]);
    let value = class.at("value");
    if name.starts_with("system-") {
        if let Some(why) = not_of_the_system(name, class.value) {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. \
                 error: {why}"
            );
            errors.push(FieldError::forbidden("metadata.name", &detail));
        }
    } else if value.number_or_zero() > USER_PRIORITY_MAX {
        let most = "maximum allowed value of a user defined priority is";
        errors.push(value.forbidden(&format!("{most} {USER_PRIORITY_MAX}")));
    }
    let policy = class.at("preemptionPolicy");
    if policy.is_set() {
        policy.requires_one_of(&["PreemptLowerPriority", "Never"], errors);
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

fn runtime_class(class: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    class.at("handler").requires(names::dns1123_label, errors);
    let overhead = class.at("overhead");
    for (name, _) in overhead.at("podFixed").entries() {
        let shown = overhead.named("limits");
        check_of_container(name, &shown.entry(name), errors);
    }
    let scheduling = class.at("scheduling");
    let selector = scheduling.at("nodeSelector");
    if selector.is_set() {
        errors.extend(names::validate_labels(selector.value, "scheduling.nodeSelector"));
    }
    let mut seen: Vec<Value> = Vec::new();
    tolerations(&scheduling.at("tolerations"), errors);
    for toleration in scheduling.each("tolerations") {
        let mut key = toleration.value.clone();
        crate::rules::document::remove(&mut key, "tolerationSeconds");
        if seen.contains(&key) {
            errors.push(toleration.duplicate());
        }
        seen.push(key);
    }
}
