//! Where a pod may run and when: tolerations, spreading, gates.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::affinity::label_keys;
use crate::names;
use crate::rules::at::{At, Errors};
use crate::rules::document::text;
use crate::rules::label_selector::label_selector;

/// The mistakes in readiness and scheduling gates.
pub(super) fn gates(spec: &At<'_, '_>, errors: &mut Errors) {
    for gate in spec.each("readinessGates") {
        gate.at("conditionType").follows(names::qualified_name, errors);
    }
    let mut seen = HashSet::new();
    for gate in spec.each("schedulingGates") {
        let name = gate.with(&gate.value["name"]);
        name.follows(names::qualified_name, errors);
        if !seen.insert(name.text()) {
            errors.push(name.duplicate());
        }
    }
}

/// The mistakes in tolerations.
pub(in crate::kinds) fn tolerations(list: &At<'_, '_>, errors: &mut Errors) {
    for toleration in list.items() {
        let key = toleration.at("key");
        let operator = toleration.at("operator");
        let value = toleration.at("value");
        let effect = toleration.at("effect");
        key.may_follow(names::qualified_name, errors);
        if key.text().is_empty() && operator.text() != "Exists" {
            let why = "operator must be Exists when `key` is empty, which means \"match all \
                       values and all keys\"";
            errors.push(operator.invalid_value(operator.text(), why));
        }
        if toleration.at("tolerationSeconds").is_set() && effect.text() != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(effect.invalid_value(effect.text(), why));
        }
        match operator.text() {
            "Equal" | "" => {
                let complaints = names::label_value(value.text());
                if !complaints.is_empty() {
                    errors.push(operator.invalid_value(value.text(), &complaints.join(";")));
                }
            }
            "Exists" if !value.text().is_empty() => {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(operator.invalid_value(value.text(), why));
            }
            "Exists" => {}
            "Lt" | "Gt" => errors.push(operator.not_supported(&["Equal", "Exists", "Lt", "Gt"])),
            _ => errors.push(operator.not_supported(&["Equal", "Exists"])),
        }
        if !effect.text().is_empty() {
            effect.one_of(&["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
        }
    }
}

/// The mistakes in how pods spread over the cluster.
pub(super) fn spread(list: &At<'_, '_>, errors: &mut Errors) {
    let mut left: HashMap<(&str, &str), usize> = HashMap::new();
    for constraint in list.list() {
        *left.entry(spread_identity(constraint)).or_default() += 1;
    }
    for constraint in list.items() {
        positive(&constraint.at("maxSkew"), errors);
        let key = constraint.at("topologyKey");
        let action = constraint.at("whenUnsatisfiable");
        if key.text().is_empty() {
            errors.push(key.required("can not be empty"));
        }
        if !["DoNotSchedule", "ScheduleAnyway"].contains(&action.text()) {
            errors.push(action.not_supported(&["DoNotSchedule", "ScheduleAnyway"]));
        }
        // Of several that are alike, all but the last are complained about.
        let alike = left.entry(spread_identity(constraint.value)).or_default();
        *alike = alike.saturating_sub(1);
        if *alike > 0 {
            let shown = format!("{{{}, {}}}", key.text(), action.text());
            let place = constraint.named("{topologyKey, whenUnsatisfiable}");
            errors.push(place.duplicate_value(shown));
        }
        let domains = constraint.at("minDomains");
        if domains.is_set() {
            positive(&domains, errors);
            if action.text() != "DoNotSchedule" {
                let why = format!(
                    "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {}",
                    action.text()
                );
                errors.push(domains.invalid(&why));
            }
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            constraint.at(policy).one_of(&["Honor", "Ignore"], errors);
        }
        label_keys(&constraint, errors);
        label_selector(&constraint.at("labelSelector"), errors);
    }
}

/// What no two constraints may have in common.
fn spread_identity(constraint: &Value) -> (&str, &str) {
    (text(&constraint["topologyKey"]), text(&constraint["whenUnsatisfiable"]))
}

fn positive(at: &At<'_, '_>, errors: &mut Errors) {
    let number = at.number_or_zero();
    if number <= 0 {
        errors.push(at.invalid_value(number, "must be greater than zero"));
    }
}
