//! What is dropped because its feature is off.

use serde_json::{Value, json};

use super::{RULES, prepared};
use crate::kinds::rules_of;

fn spec() -> Value {
    json!({
        "schedulingGroup": {"podGroupName": "g"},
        "containers": [
            {"name": "a", "image": "i:1", "lifecycle": {"stopSignal": "SIGTERM"}},
            {
                "name": "b", "image": "i:1",
                "lifecycle": {"stopSignal": "SIGTERM", "preStop": {"sleep": {"seconds": 1}}},
            },
        ],
        "volumes": [{"name": "v", "projected": {"sources": [
            {"clusterTrustBundle": {"path": "p"}}, {"podCertificate": {}},
            {"secret": {"name": "s"}},
        ]}}],
    })
}

fn assert_dropped(spec: &Value) {
    assert_eq!(spec["schedulingGroup"], Value::Null);
    assert_eq!(spec["containers"][0]["lifecycle"], Value::Null);
    assert_eq!(spec["containers"][1]["lifecycle"], json!({"preStop": {"sleep": {"seconds": 1}}}));
    let sources = &spec["volumes"][0]["projected"]["sources"];
    assert_eq!(*sources, json!([{}, {}, {"secret": {"name": "s"}}]));
}

#[test]
fn a_new_pod_does_not_have_it() {
    let pod = prepared(spec());
    assert_dropped(&pod["spec"]);
    assert!(RULES.validate_create(&pod).is_empty());
}

#[test]
fn a_pod_that_has_it_keeps_it() {
    let old = json!({"spec": spec()});
    let mut new = old.clone();
    RULES.prepare_update(&old, &mut new);
    assert_eq!(new, old);
    RULES.prepare_update(&json!({"spec": {}}), &mut new);
    assert_dropped(&new["spec"]);
}

#[test]
fn nor_do_templates() {
    for (group, kind, pointer) in [
        ("", "PodTemplate", "/template"),
        ("", "ReplicationController", "/spec/template"),
        ("apps", "DaemonSet", "/spec/template"),
        ("apps", "Deployment", "/spec/template"),
        ("apps", "ReplicaSet", "/spec/template"),
        ("apps", "StatefulSet", "/spec/template"),
        ("batch", "Job", "/spec/template"),
        ("batch", "CronJob", "/spec/jobTemplate/spec/template"),
    ] {
        let rules = rules_of(group, kind).expect("the rules of a kind");
        let around = |object: Value, field: &str| match field {
            "" => object,
            field => json!({field: object}),
        };
        let template = json!({"spec": spec()});
        let object = pointer.rsplit('/').fold(template, around);
        let mut new = object.clone();
        rules.prepare_create(&mut new);
        assert_dropped(&new.pointer(pointer).expect("a template")["spec"]);
        let mut new = object.clone();
        rules.prepare_update(&json!({}), &mut new);
        assert_dropped(&new.pointer(pointer).expect("a template")["spec"]);
        let mut kept = object.clone();
        rules.prepare_update(&object, &mut kept);
        let group = &kept.pointer(pointer).expect("a template")["spec"]["schedulingGroup"];
        assert!(group.is_object(), "{kind}");
    }
}

#[test]
fn a_status_tells_nothing_of_it() {
    let mount = json!({"name": "v", "mountPath": "/v", "volumeStatus": {"image": {}}});
    let status = json!({
        "containerStatuses": [{"name": "a", "volumeMounts": [mount]}],
        "nodeAllocatableResourceClaimStatuses": [{}],
    });
    let written = |old: Value| {
        let mut new = json!({"status": status});
        RULES.prepare_status_update(&json!({"status": old}), &mut new);
        new["status"].take()
    };
    assert_eq!(written(status.clone()), status);
    let plain = json!({"name": "v", "mountPath": "/v"});
    assert_eq!(
        written(json!({})),
        json!({"containerStatuses": [{"name": "a", "volumeMounts": [plain]}]})
    );
}
