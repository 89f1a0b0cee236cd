//! Which objects are in the scopes of a quota.

use serde_json::{Value, json};

use crate::quota::{Evaluator, Quota};

fn quota(spec: &Value) -> Quota {
    Quota::of(&json!({"metadata": {"name": "q"}, "spec": spec}))
}

fn select(scope: &str, operator: &str, values: &[&str]) -> Value {
    let expression = json!({"scopeName": scope, "operator": operator, "values": values});
    json!({"scopeSelector": {"matchExpressions": [expression]}})
}

fn assert_scope(evaluator: &Evaluator, object: &Value, spec: &Value, expected: bool) {
    let is_in = quota(spec).has_in_scope(&evaluator.measure(object));
    assert_eq!(is_in, expected, "{object} in {spec}");
}

#[test]
fn pods_are_in_scopes_by_their_spec() {
    let plain = json!({"spec": {"containers": [{"name": "c"}]}});
    let with = |field: &str, value: Value| {
        let mut pod = plain.clone();
        pod["spec"][field] = value;
        pod
    };
    let asking = json!({"spec": {"containers": [
        {"name": "c", "resources": {"requests": {"memory": "1Gi"}}}]}});
    let zero = json!({"spec": {"containers": [
        {"name": "c", "resources": {"requests": {"memory": "0"}}}]}});
    let whole = with("resources", json!({"limits": {"cpu": "1"}}));
    let mut classed = plain.clone();
    classed["status"] = json!({"qosClass": "Burstable"});
    let timed = with("activeDeadlineSeconds", json!(0));
    for (pod, is_terminating, is_best_effort) in [
        (&plain, false, true),
        (&timed, true, true),
        (&asking, false, false),
        (&zero, false, true),
        (&whole, false, false),
        (&classed, false, false),
    ] {
        for (scope, expected) in [
            ("Terminating", is_terminating),
            ("NotTerminating", !is_terminating),
            ("BestEffort", is_best_effort),
            ("NotBestEffort", !is_best_effort),
            ("VolumeAttributesClass", false),
        ] {
            assert_scope(&Evaluator::Pods, pod, &json!({"scopes": [scope]}), expected);
            assert_scope(&Evaluator::Pods, pod, &select(scope, "Exists", &[]), expected);
        }
    }
    let both = json!({"scopes": ["Terminating", "BestEffort"]});
    assert_scope(&Evaluator::Pods, &timed, &both, true);
    assert_scope(&Evaluator::Pods, &plain, &both, false);
}

#[test]
fn priority_classes_are_selected_by_name() {
    let pod = |class: &str| json!({"spec": {"priorityClassName": class}});
    for (operator, values, of_high, of_low, of_none) in [
        ("Exists", &[][..], true, true, false),
        ("DoesNotExist", &[], false, false, true),
        ("In", &["high", "higher"], true, false, false),
        ("NotIn", &["high", "higher"], false, true, true),
    ] {
        let spec = select("PriorityClass", operator, values);
        for (class, expected) in [("high", of_high), ("low", of_low), ("", of_none)] {
            assert_scope(&Evaluator::Pods, &pod(class), &spec, expected);
        }
    }
}

#[test]
fn affinity_that_names_namespaces_crosses_them() {
    let pod = |kind: &str, term: Value| {
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
        json!({"spec": {"affinity": {kind: required}}})
    };
    let weighted = json!({"spec": {"affinity": {"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "podAffinityTerm": {"namespaceSelector": {}}}]}}}});
    let table = [
        (json!({"spec": {}}), false),
        (pod("podAffinity", json!({"topologyKey": "zone"})), false),
        (pod("podAffinity", json!({"namespaces": []})), false),
        (pod("podAffinity", json!({"namespaces": ["other"]})), true),
        (pod("podAntiAffinity", json!({"namespaceSelector": {}})), true),
        (pod("nodeAffinity", json!({"namespaces": ["other"]})), false),
        (weighted, true),
    ];
    for (pod, expected) in table {
        let spec = json!({"scopes": ["CrossNamespacePodAffinity"]});
        assert_scope(&Evaluator::Pods, &pod, &spec, expected);
    }
}

#[test]
fn attributes_classes_of_claims_are_selected_by_name() {
    let claims = [
        json!({"spec": {}}),
        json!({"spec": {"volumeAttributesClassName": "gold"}}),
        json!({"spec": {}, "status": {"currentVolumeAttributesClassName": "gold"}}),
        json!({
            "spec": {"volumeAttributesClassName": "silver"},
            "status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "gold"}},
        }),
    ];
    let table = [
        ("Exists", &[][..], [false, true, true, true]),
        ("DoesNotExist", &[], [true, false, false, false]),
        ("In", &["gold"], [false, true, true, true]),
        // The last one has a class that is not listed as well.
        ("NotIn", &["gold"], [true, false, false, true]),
    ];
    for (operator, values, expected) in table {
        let spec = select("VolumeAttributesClass", operator, values);
        for (claim, expected) in claims.iter().zip(expected) {
            assert_scope(&Evaluator::VolumeClaims, claim, &spec, expected);
        }
    }
    assert_scope(&Evaluator::VolumeClaims, &claims[0], &json!({"scopes": ["BestEffort"]}), false);
}

#[test]
fn what_no_scope_is_about_is_in_none() {
    let config_maps = Evaluator::of("", "configmaps").unwrap();
    assert_scope(&config_maps, &json!({}), &json!({}), true);
    for scope in ["NotTerminating", "NotBestEffort", "PriorityClass"] {
        assert_scope(&config_maps, &json!({}), &json!({"scopes": [scope]}), false);
        assert_scope(&Evaluator::Services, &json!({}), &json!({"scopes": [scope]}), false);
    }
}
