//! What nobody may change: the schemas and levels that are there whatever anybody does.

use serde_json::{Value, json};

use crate::rules::at::{At, Errors};
use crate::rules::document::same;

/// Must be as every cluster has it, if every cluster has one of that name.
pub(super) fn check_schema(name: &str, spec: &At<'_, '_>, errors: &mut Errors) {
    if schema(name).is_some_and(|fixed| !same(&fixed, spec.value)) {
        let why = format!("spec of '{name}' must equal the fixed value");
        errors.push(spec.invalid_as("FlowSchemaSpec", &why));
    }
}

/// Must be as every cluster has it, except what `exempt` says of itself.
pub(super) fn check_level(name: &str, spec: &At<'_, '_>, errors: &mut Errors) {
    let (fixed, except) = match name {
        "exempt" => (json!({"type": "Exempt"}), " except the 'spec.exempt' field"),
        "catch-all" => (catch_all(), ""),
        _ => return,
    };
    let mut given = spec.value.clone();
    if let Some(fields) = given.as_object_mut().filter(|_| name == "exempt") {
        fields.remove("exempt");
    }
    if !same(&fixed, &given) {
        let why = format!("spec of '{name}'{except} must equal the fixed value");
        errors.push(spec.invalid_as("PriorityLevelConfigurationSpec", &why));
    }
}

fn catch_all() -> Value {
    json!({"type": "Limited", "limited": {
        "nominalConcurrencyShares": 5, "lendablePercent": 0, "limitResponse": {"type": "Reject"},
    }})
}

fn schema(name: &str) -> Option<Value> {
    let group = |name: &str| json!({"kind": "Group", "group": {"name": name}});
    let (precedence, groups) = match name {
        "exempt" => (1, vec![group("system:masters")]),
        "catch-all" => {
            (10_000, vec![group("system:unauthenticated"), group("system:authenticated")])
        }
        _ => return None,
    };
    let mut spec = json!({
        "matchingPrecedence": precedence,
        "priorityLevelConfiguration": {"name": name},
        "rules": [{
            "subjects": groups,
            "resourceRules": [{
                "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true,
                "namespaces": ["*"],
            }],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        }],
    });
    if name == "catch-all" {
        spec["distinguisherMethod"] = json!({"type": "ByUser"});
    }
    Some(spec)
}
