//! PodDisruptionBudgets: how many pods may be missing at once.

use serde_json::{Value, json};

use crate::kinds::kind::{Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::condition::conditions;
use crate::rules::label_selector::label_selector;
use crate::rules::rollout::{at_most_all, int_or_percent};
use crate::table::{Column, age};

/// What is said of PodDisruptionBudgets.
pub(super) const KIND: Kind = Kind {
    plural: "poddisruptionbudgets",
    name: "PodDisruptionBudget",
    short_names: &["pdb"],
    traits: &[Trait::Generation, Trait::VersionedUpdate, Trait::Status],
    rules: &RULES,
    columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    status: Some(|| {
        json!({
            "currentHealthy": 0,
            "desiredHealthy": 0,
            "disruptionsAllowed": 0,
            "expectedPods": 0,
        })
    }),
    check,
    check_status: |budget, _, errors| {
        let status = budget.at("status");
        conditions(&status.at("conditions"), errors);
        for number in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
            status.at(number).not_negative(errors);
        }
    },
    ..Rules::NONE
};

fn columns() -> Vec<Column> {
    vec![
        Column::field("Min Available", "spec.minAvailable", "N/A"),
        Column::field("Max Unavailable", "spec.maxUnavailable", "N/A"),
        Column::number("Allowed Disruptions", "status.disruptionsAllowed"),
        age(),
    ]
}

fn check(budget: &At<'_, '_>, _old: &Value, errors: &mut Errors) {
    let spec = budget.at("spec");
    let bounds = [spec.at("minAvailable"), spec.at("maxUnavailable")];
    if bounds.iter().all(At::is_set) {
        let why = "minAvailable and maxUnavailable cannot be both set";
        errors.push(spec.invalid_as("PodDisruptionBudgetSpec", why));
    }
    for bound in &bounds {
        int_or_percent(bound, errors);
        at_most_all(bound, errors);
    }
    label_selector(&spec.at("selector"), errors);
    let policy = spec.at("unhealthyPodEvictionPolicy");
    policy.one_of(&["AlwaysAllow", "IfHealthyBudget"], errors);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::FieldError;

    #[test]
    fn a_budget_bounds_one_side_only() {
        let cases: Vec<(Value, Vec<&str>)> = vec![
            (json!({"minAvailable": "50%"}), vec![]),
            (
                json!({"minAvailable": 1, "maxUnavailable": 1}),
                vec![
                    "spec: Invalid value: {\"MinAvailable\":1,\"Selector\":null,\"MaxUnavailable\":1,\
                     \"UnhealthyPodEvictionPolicy\":null}: minAvailable and maxUnavailable cannot be \
                     both set",
                ],
            ),
            (
                json!({"minAvailable": -1}),
                vec!["spec.minAvailable: Invalid value: -1: must be greater than or equal to 0"],
            ),
            (
                json!({"maxUnavailable": "101%"}),
                vec!["spec.maxUnavailable: Invalid value: \"101%\": must not be greater than 100%"],
            ),
            (
                json!({"maxUnavailable": "x"}),
                vec![
                    "spec.maxUnavailable: Invalid value: \"x\": a valid percent string must be a numeric \
                 string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is \
                 '[0-9]+%')",
                ],
            ),
            (
                json!({"unhealthyPodEvictionPolicy": "Never"}),
                vec![
                    "spec.unhealthyPodEvictionPolicy: Unsupported value: \"Never\": supported values: \
                 \"AlwaysAllow\", \"IfHealthyBudget\"",
                ],
            ),
        ];
        for (spec, expected) in cases {
            let errors = RULES.validate_create(&json!({"spec": spec}));
            assert_eq!(
                errors.iter().map(FieldError::message).collect::<Vec<_>>(),
                expected,
                "{spec}"
            );
        }
        let status = json!({"status": {"currentHealthy": -1, "conditions": [
            {"type": "A", "status": "True", "lastTransitionTime": "2030-01-01T00:00:00Z",
             "reason": "no good"},
        ]}});
        let fields: Vec<_> = RULES
            .validate_status_update(&json!({}), &status)
            .into_iter()
            .map(|error| error.field)
            .collect();
        assert_eq!(fields, ["status.conditions[0].reason", "status.currentHealthy"]);
    }
}
