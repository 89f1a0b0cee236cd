//! What deployments and sets have in common, as tables.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::kinds::for_kind;

const KINDS: &[(&str, &str)] = &[
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
];

pub(super) fn object(kind: (&str, &str)) -> Value {
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
    let rules = for_kind(kind.0, kind.1);
    rules.fill_in(&mut object);
    rules.prepare_create(&mut object);
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
    let rules = for_kind("apps", "StatefulSet");
    let old = object(("apps", "StatefulSet"));
    let mut scaled = old.clone();
    scaled["spec"]["replicas"] = json!(5);
    assert!(rules.validate_update(&old, &scaled).is_empty());
    let mut moved = old.clone();
    moved["spec"]["serviceName"] = json!("other");
    let errors = rules.validate_update(&old, &moved);
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
    let rules = for_kind("", "ReplicationController");
    let mut controller = json!({
        "metadata": {"name": "web"},
        "spec": {"template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx:1"}]},
        }},
    });
    rules.fill_in(&mut controller);
    assert_eq!(controller["spec"]["selector"], json!({"app": "web"}));
    assert_eq!(controller["metadata"]["labels"], json!({"app": "web"}));
    assert!(rules.validate_create(&controller).is_empty());
}

#[test]
fn a_stateful_set_may_mount_its_claims() {
    let errors = complaints(("apps", "StatefulSet"), |spec| {
        spec["volumeClaimTemplates"] = json!([{"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }}]);
        spec["template"]["spec"]["containers"][0]["volumeMounts"] =
            json!([{"name": "data", "mountPath": "/data"}]);
    });
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn strategies_of_updates_are_checked() {
    let rolling = |value: Value| json!({"type": "RollingUpdate", "rollingUpdate": value});
    let cases: Vec<(&str, &str, Value, Vec<&str>)> = vec![
        (
            "Deployment",
            "strategy",
            rolling(json!({"maxUnavailable": "101%", "maxSurge": "x"})),
            vec![
                "spec.strategy.rollingUpdate.maxSurge: Invalid value: \"x\": a valid percent \
                 string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                 regex used for validation is '[0-9]+%')",
                "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"101%\": must not be \
                 greater than 100%",
            ],
        ),
        (
            "DaemonSet",
            "updateStrategy",
            rolling(json!({"maxUnavailable": 1, "maxSurge": 1})),
            vec![
                "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set \
                 when maxUnavailable is non-zero",
            ],
        ),
        (
            "DaemonSet",
            "updateStrategy",
            rolling(json!({"maxUnavailable": 0, "maxSurge": 0})),
            vec![
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 \
                 when maxSurge is 0",
            ],
        ),
        (
            "StatefulSet",
            "updateStrategy",
            rolling(json!({"partition": -1, "maxUnavailable": 0})),
            vec![
                "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater \
                 than or equal to 0",
                "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0",
            ],
        ),
        (
            "StatefulSet",
            "podManagementPolicy",
            json!("Random"),
            vec![
                "spec.podManagementPolicy: Invalid value: \"Random\": must be 'OrderedReady' or \
                 'Parallel'",
            ],
        ),
        (
            "StatefulSet",
            "volumeClaimTemplates",
            json!([{"metadata": {"name": "d"}, "spec": {"accessModes": ["Often"]}}]),
            vec![
                "spec.volumeClaimTemplates[0].spec.accessModes: Unsupported value: \"Often\": \
                 supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \
                 \"ReadWriteOncePod\"",
                "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
            ],
        ),
        (
            "Deployment",
            "strategy",
            json!({"type": "Often", "rollingUpdate": {"maxSurge": "5%"}}),
            vec![
                "spec.strategy: Unsupported value: {\"Type\":\"Often\",\"RollingUpdate\":\
                 {\"MaxUnavailable\":0,\"MaxSurge\":\"5%\"}}: supported values: \"Recreate\", \
                 \"RollingUpdate\"",
            ],
        ),
        (
            "DaemonSet",
            "updateStrategy",
            json!({"type": "Often"}),
            vec![
                "spec.updateStrategy: Unsupported value: {\"Type\":\"Often\",\"RollingUpdate\":\
                 null}: supported values: \"RollingUpdate\", \"OnDelete\"",
            ],
        ),
        (
            "Deployment",
            "progressDeadlineSeconds",
            json!(0),
            vec![
                "spec.progressDeadlineSeconds: Invalid value: 0: must be greater than \
                 minReadySeconds",
            ],
        ),
    ];
    for (kind, key, value, expected) in cases {
        let errors = complaints(("apps", kind), |spec| spec[key] = value.clone());
        assert_eq!(errors, expected, "{kind} {key} = {value}");
    }
}

#[test]
fn mistakes_in_templates_have_long_paths() {
    for kind in KINDS {
        let errors = complaints(*kind, |spec| {
            spec["template"]["spec"]["containers"][0]["image"] = json!("");
            spec["template"]["spec"]["activeDeadlineSeconds"] = json!(5);
        });
        assert_eq!(errors[0], "spec.template.spec.containers[0].image: Required value");
        assert!(errors[1].starts_with("spec.template.spec.activeDeadlineSeconds: Forbidden: "));
        assert!(errors[1].ends_with(" is not Supported"), "{}", errors[1]);
    }
}

#[test]
fn counts_in_a_status_fit_together() {
    for (kind, status, expected) in [
        (
            "Deployment",
            json!({"replicas": 1, "readyReplicas": 1, "availableReplicas": 2}),
            vec![
                "status.availableReplicas: Invalid value: 2: cannot be greater than \
                 status.replicas",
                "status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas",
            ],
        ),
        (
            "ReplicaSet",
            json!({"observedGeneration": -1}),
            vec![
                "status.observedGeneration: Invalid value: -1: must be greater than or equal to 0",
            ],
        ),
        (
            "StatefulSet",
            json!({"replicas": 2, "currentReplicas": 3}),
            vec![
                "status.currentReplicas: Invalid value: 3: cannot be greater than status.replicas",
            ],
        ),
        (
            "DaemonSet",
            json!({"collisionCount": 1}),
            vec!["status.collisionCount: Invalid value: 1: cannot be decremented"],
        ),
    ] {
        let mut old = object(("apps", kind));
        if kind == "DaemonSet" {
            old["status"]["collisionCount"] = json!(2);
        }
        let mut new = old.clone();
        new["status"] = status;
        let errors = for_kind("apps", kind).validate_status_update(&old, &new);
        let messages: Vec<_> = errors.iter().map(FieldError::message).collect();
        assert_eq!(messages, expected, "{kind}");
    }
}

#[test]
fn a_count_of_collisions_may_not_be_taken_away() {
    for (kind, refused) in [("Deployment", 0), ("StatefulSet", 0), ("DaemonSet", 3)] {
        let mut old = object(("apps", kind));
        let new = old.clone();
        assert!(for_kind("apps", kind).validate_status_update(&old, &new).is_empty(), "{kind}");
        old["status"]["collisionCount"] = json!(refused);
        let errors = for_kind("apps", kind).validate_status_update(&old, &new);
        let messages: Vec<_> = errors.iter().map(FieldError::message).collect();
        let expected = "status.collisionCount: Invalid value: 0: cannot be decremented";
        assert_eq!(messages, [expected], "{kind}");
    }
}

#[test]
fn a_daemon_set_counts_the_versions_of_its_template() {
    let rules = for_kind("apps", "DaemonSet");
    let counted = |set: &Value| {
        set["metadata"]["annotations"]["deprecated.daemonset.template.generation"].clone()
    };
    let old = object(("apps", "DaemonSet"));
    assert_eq!(counted(&old), "1");
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    rules.prepare_update(&old, &mut labelled);
    assert_eq!(counted(&labelled), "1");
    let mut changed = old.clone();
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = json!("nginx:2");
    rules.prepare_update(&old, &mut changed);
    assert_eq!(counted(&changed), "2");
}

#[test]
fn annotations_that_are_fields_to_kubernetes_must_be_numbers() {
    let with = |kind: &str, key: &str, value: &str| {
        let mut object = object(("apps", kind));
        object["metadata"]["annotations"] = json!({key: value});
        object
    };
    let rollback = "deprecated.deployment.rollback.to";
    let generation = "deprecated.daemonset.template.generation";
    for (kind, key, value, expected) in [
        ("Deployment", rollback, "7", None),
        ("Deployment", rollback, "", None),
        (
            "Deployment",
            rollback,
            "x",
            Some(
                "failed to parse annotation[deprecated.deployment.rollback.to]=x as int64: \
                 strconv.ParseInt: parsing \"x\": invalid syntax",
            ),
        ),
        ("DaemonSet", generation, "7", None),
        ("DaemonSet", generation, "", Some("strconv.ParseInt: parsing \"\": invalid syntax")),
        ("ReplicaSet", rollback, "x", None),
    ] {
        let why = for_kind("apps", kind).unreadable(&with(kind, key, value));
        assert_eq!(why.as_deref(), expected, "{kind} {value}");
    }
    let rules = for_kind("apps", "Deployment");
    for (value, written) in [("+07", json!({rollback: "7"})), ("", json!({}))] {
        let mut deployment = with("Deployment", rollback, value);
        rules.fill_in(&mut deployment);
        assert_eq!(deployment["metadata"]["annotations"], written);
    }
    let errors = rules.validate_create(&with("Deployment", rollback, "-1"));
    let messages: Vec<_> = errors.iter().map(FieldError::message).collect();
    let why = "spec.rollback.version: Invalid value: -1: must be greater than or equal to 0";
    assert_eq!(messages, [why]);
}

#[test]
fn who_writes_a_status_leaves_annotations_that_are_fields_to_kubernetes() {
    for (kind, key) in [
        ("Deployment", "deprecated.deployment.rollback.to"),
        ("DaemonSet", "deprecated.daemonset.template.generation"),
    ] {
        let mut old = object(("apps", kind));
        old["metadata"]["annotations"] = json!({key: "3"});
        for sent in [json!({key: "4", "a": "b"}), json!({"a": "b"})] {
            let mut new = old.clone();
            new["metadata"]["annotations"] = sent;
            for_kind("apps", kind).prepare_status_update(&old, &mut new);
            assert_eq!(new["metadata"]["annotations"], json!({key: "3", "a": "b"}), "{kind}");
        }
    }
    let old = object(("apps", "Deployment"));
    let mut new = old.clone();
    new["metadata"]["annotations"] = json!({"deprecated.deployment.rollback.to": "4"});
    for_kind("apps", "Deployment").prepare_status_update(&old, &mut new);
    assert_eq!(new["metadata"]["annotations"], json!({}));
}

#[test]
fn mistakes_in_the_metadata_of_a_template_are_told_twice_of_a_stateful_set() {
    let label = "spec.template.labels: Invalid value: \"a b\": a valid label must be an empty string \
                 or consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
                 an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
                 for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let size = "spec.template.annotations: Too long: may not be more than 262144 bytes";
    for (kind, times) in [("Deployment", 1), ("StatefulSet", 2)] {
        let errors = complaints(("apps", kind), |spec| {
            let metadata = &mut spec["template"]["metadata"];
            metadata["labels"]["odd"] = json!("a b");
            metadata["annotations"] = json!({"long": "x".repeat(256 * 1024)});
        });
        assert_eq!(errors, [label, size].repeat(times), "{kind}");
    }
}

#[test]
fn a_stateful_set_keeps_the_service_that_it_has() {
    let mut old = object(("apps", "StatefulSet"));
    old["spec"]["serviceName"] = json!("Not.A.Label");
    let rules = for_kind("apps", "StatefulSet");
    assert_eq!(rules.validate_create(&old).len(), 1);
    assert!(rules.validate_update(&old, &old).is_empty());
}

#[test]
fn a_change_of_annotations_is_a_new_generation_of_a_deployment_only() {
    for (kind, counts) in [("Deployment", true), ("ReplicaSet", false)] {
        let old = object(("apps", kind));
        let mut new = old.clone();
        new["metadata"]["annotations"] = json!({"a": "b"});
        assert_eq!(for_kind("apps", kind).is_new_generation(&old, &new), counts, "{kind}");
    }
}

#[test]
fn the_data_of_a_revision_is_an_object_and_stays() {
    let rules = for_kind("apps", "ControllerRevision");
    let messages = |errors: Vec<FieldError>| -> Vec<String> {
        errors.iter().map(FieldError::message).collect()
    };
    let revision = json!({"revision": 1, "data": {"a": 1}});
    assert!(rules.validate_create(&revision).is_empty());
    assert_eq!(
        messages(rules.validate_create(&json!({"revision": -1}))),
        [
            "revision: Invalid value: -1: must be greater than or equal to 0",
            "data: Required value: data is mandatory"
        ]
    );
    let mut changed = revision.clone();
    changed["data"] = json!({"a": 2});
    assert_eq!(
        messages(rules.validate_update(&revision, &changed)),
        ["data: Invalid value: {\"a\":2}: field is immutable"]
    );
}

#[test]
fn what_an_unsound_selector_selects_nobody_can_tell() {
    let selector = json!({"matchExpressions": [{"key": "app", "operator": "Near"}]});
    let shown = selector.to_string();
    let operator = "spec.selector.matchExpressions[0].operator: Invalid value: \"Near\": not a valid \
                    selector operator";
    let whole = format!("spec.selector: Invalid value: {shown}");
    let policy = "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \
                  \"Always\"";
    for (kind, expected) in [
        ("Deployment", vec![operator.to_owned(), format!("{whole}: invalid label selector")]),
        ("ReplicaSet", vec![operator.to_owned(), format!("{whole}: invalid label selector")]),
        ("StatefulSet", vec![operator.to_owned(), whole, policy.to_owned()]),
        ("DaemonSet", vec![operator.to_owned(), policy.to_owned()]),
    ] {
        let errors = complaints(("apps", kind), |spec| {
            spec["selector"] = selector.clone();
            spec["template"]["spec"]["restartPolicy"] = json!("Never");
        });
        assert_eq!(errors, expected, "{kind}");
    }
}

#[test]
fn claims_of_a_set_may_share_a_name() {
    let claim = json!({"metadata": {"name": "data"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
    }});
    let errors = complaints(("apps", "StatefulSet"), |spec| {
        spec["volumeClaimTemplates"] = json!([claim, claim]);
    });
    assert_eq!(errors, Vec::<String>::new());
}
