//! What deployments and sets have in common, as tables.

use serde_json::{Value, json};

use super::for_kind;
use crate::field::FieldError;

const KINDS: &[(&str, &str)] = &[
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
];

fn object(kind: (&str, &str)) -> Value {
    let mut object = json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
            },
        },
    });
    let strategy = for_kind(kind.0, kind.1);
    strategy.default(&mut object);
    strategy.prepare_create(&mut object);
    object
}

fn complaints(kind: (&str, &str), change: impl Fn(&mut Value)) -> Vec<String> {
    let mut object = object(kind);
    change(&mut object["spec"]);
    let errors = for_kind(kind.0, kind.1).validate_create(&object);
    errors.iter().map(FieldError::message).collect()
}

#[test]
fn a_plain_workload_is_valid_and_its_pods_are_filled_in() {
    for kind in KINDS {
        assert_eq!(complaints(*kind, |_| {}), Vec::<String>::new(), "{kind:?}");
        let spec = &object(*kind)["spec"]["template"]["spec"];
        assert_eq!(spec["restartPolicy"], "Always");
        assert!(spec["enableServiceLinks"].is_null(), "left to the pods themselves");
    }
}

#[test]
fn defaults_are_those_of_kubernetes() {
    let deployment = object(("apps", "Deployment"));
    assert_eq!(deployment["spec"]["replicas"], 1);
    assert_eq!(deployment["spec"]["revisionHistoryLimit"], 10);
    assert_eq!(deployment["spec"]["progressDeadlineSeconds"], 600);
    assert_eq!(
        deployment["spec"]["strategy"],
        json!({
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
        })
    );
    let set = object(("apps", "StatefulSet"));
    assert_eq!(set["spec"]["podManagementPolicy"], "OrderedReady");
    assert_eq!(
        set["spec"]["updateStrategy"],
        json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    );
    let daemons = object(("apps", "DaemonSet"));
    assert_eq!(
        daemons["spec"]["updateStrategy"]["rollingUpdate"],
        json!({"maxUnavailable": 1, "maxSurge": 0})
    );
}

#[test]
fn a_selector_must_be_there_and_match_the_template() {
    let mismatch = "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` \
                    does not match template `labels`";
    for kind in KINDS {
        let other = json!({"matchLabels": {"app": "other"}});
        let errors = complaints(*kind, |spec| spec["selector"] = other.clone());
        assert_eq!(errors, [mismatch], "{kind:?}");
    }
    let errors = complaints(("apps", "Deployment"), |spec| spec["selector"] = Value::Null);
    assert_eq!(errors, ["spec.selector: Required value", mismatch]);
    let errors = complaints(("apps", "Deployment"), |spec| spec["selector"] = json!({}));
    assert_eq!(
        errors,
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]
    );
}

#[test]
fn a_selector_may_not_change() {
    for kind in KINDS.iter().filter(|kind| kind.1 != "StatefulSet") {
        let old = object(*kind);
        let mut new = old.clone();
        new["spec"]["selector"]["matchLabels"]["tier"] = json!("a");
        new["spec"]["template"]["metadata"]["labels"]["tier"] = json!("a");
        let errors = for_kind(kind.0, kind.1).validate_update(&old, &new);
        assert_eq!(errors.len(), 1, "{kind:?}");
        assert_eq!(errors[0].field, "spec.selector");
        assert!(errors[0].text.ends_with(": field is immutable"));
    }
}

#[test]
fn a_stateful_set_may_change_little() {
    let strategy = for_kind("apps", "StatefulSet");
    let old = object(("apps", "StatefulSet"));
    let mut scaled = old.clone();
    scaled["spec"]["replicas"] = json!(5);
    assert!(strategy.validate_update(&old, &scaled).is_empty());
    let mut moved = old.clone();
    moved["spec"]["serviceName"] = json!("other");
    let errors = strategy.validate_update(&old, &moved);
    assert!(errors[0].message().starts_with("spec: Forbidden: updates to statefulset spec"));
}

#[test]
fn pods_that_are_replaced_must_restart() {
    for kind in KINDS {
        let errors =
            complaints(*kind, |spec| spec["template"]["spec"]["restartPolicy"] = json!("Never"));
        assert_eq!(
            errors,
            ["spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \
              \"Always\""],
            "{kind:?}"
        );
    }
}

#[test]
fn numbers_and_strategies_are_checked() {
    let deployment = ("apps", "Deployment");
    let errors = complaints(deployment, |spec| spec["replicas"] = json!(-1));
    assert_eq!(errors, ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]);
    let errors = complaints(deployment, |spec| {
        spec["strategy"]["rollingUpdate"] = json!({"maxUnavailable": 0, "maxSurge": "0%"});
    });
    assert_eq!(
        errors,
        ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when \
          `maxSurge` is 0"]
    );
    let errors = complaints(deployment, |spec| spec["strategy"]["type"] = json!("Recreate"));
    assert_eq!(
        errors,
        ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is \
          'Recreate'"]
    );
}

#[test]
fn a_replication_controller_takes_its_selector_from_the_template() {
    let strategy = for_kind("", "ReplicationController");
    let mut controller = json!({
        "metadata": {"name": "web"},
        "spec": {"template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
        }},
    });
    strategy.default(&mut controller);
    assert_eq!(controller["spec"]["selector"], json!({"app": "web"}));
    assert_eq!(controller["metadata"]["labels"], json!({"app": "web"}));
    assert!(strategy.validate_create(&controller).is_empty());
}

#[test]
fn a_stateful_set_may_mount_its_claims() {
    let errors = complaints(("apps", "StatefulSet"), |spec| {
        spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {}}]);
        spec["template"]["spec"]["containers"][0]["volumeMounts"] =
            json!([{"name": "data", "mountPath": "/data"}]);
    });
    assert_eq!(errors, Vec::<String>::new());
}
