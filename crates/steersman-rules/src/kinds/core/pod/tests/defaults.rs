//! What a pod gets without asking, part by part.

use serde_json::{Value, json};

use super::{RULES, prepared};
use crate::kinds::for_kind;

/// What a volume becomes.
fn volume(source: Value) -> Value {
    let mut volume = source;
    volume["name"] = json!("v");
    let pod = prepared(json!({"containers": [], "volumes": [volume]}));
    let mut volume = pod["spec"]["volumes"][0].clone();
    volume.as_object_mut().unwrap().remove("name");
    volume
}

#[test]
fn volumes_are_filled_in() {
    for (given, filled) in [
        (json!({}), json!({"emptyDir": {}})),
        (json!({"hostPath": {"path": "/"}}), json!({"hostPath": {"path": "/", "type": ""}})),
        (json!({"secret": {}}), json!({"secret": {"defaultMode": 420}})),
        (json!({"iscsi": {"lun": 1}}), json!({"iscsi": {"lun": 1, "iscsiInterface": "default"}})),
        (
            json!({"rbd": {}}),
            json!({"rbd": {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}}),
        ),
        (
            json!({"azureDisk": {}}),
            json!({"azureDisk": {
                "cachingMode": "ReadWrite", "fsType": "ext4", "kind": "Shared", "readOnly": false,
            }}),
        ),
        (
            json!({"image": {"reference": "a:1"}}),
            json!({"image": {"reference": "a:1", "pullPolicy": "IfNotPresent"}}),
        ),
        (
            json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}),
            json!({"projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}},
            ]}}),
        ),
        (
            json!({"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "x"}}]}}),
            json!({"downwardAPI": {"defaultMode": 420, "items": [
                {"path": "p", "fieldRef": {"fieldPath": "x", "apiVersion": "v1"}},
            ]}}),
        ),
    ] {
        assert_eq!(volume(given.clone()), filled, "{given}");
    }
}

#[test]
fn a_grace_period_below_zero_becomes_one() {
    let pod = prepared(json!({"containers": [], "terminationGracePeriodSeconds": -5}));
    assert_eq!(pod["spec"]["terminationGracePeriodSeconds"], 1);
}

#[test]
fn a_pod_with_limits_as_a_whole_asks_for_what_its_containers_ask() {
    let pod = prepared(json!({
        "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
        "containers": [
            {"name": "a", "image": "a:1", "resources": {"requests": {"cpu": "500m"}}},
            {"name": "b", "image": "b:1", "resources": {"requests": {"cpu": "700m"}}},
        ],
        "initContainers": [
            {"name": "c", "image": "c:1", "resources": {"requests": {"cpu": "1"}}},
        ],
    }));
    assert_eq!(pod["spec"]["resources"]["requests"], json!({"cpu": "1200m", "memory": "1Gi"}));
    assert_eq!(pod["status"]["qosClass"], "Burstable");
}

#[test]
fn resources_of_a_pod_as_a_whole_are_filled_in_whenever_it_is_read() {
    let filled = |resources: Value, container: Value| {
        let mut pod = json!({"spec": {
            "resources": resources,
            "containers": [{"name": "a", "image": "a:1", "resources": container}],
        }});
        RULES.fill_in(&mut pod);
        pod["spec"]["resources"].take()
    };
    let pages = |number: &str| json!({"memory": "1Gi", "hugepages-2Mi": number});
    for (resources, container, expected) in [
        (json!({}), json!({"requests": {"cpu": "1"}}), json!({})),
        // Without limits nothing is asked for besides what is said.
        (
            json!({"requests": {"cpu": "2"}}),
            json!({"requests": {"cpu": "1", "memory": "1Gi"}}),
            json!({"requests": {"cpu": "2"}}),
        ),
        (
            json!({"limits": {"cpu": "2", "example.com/a": "1"}}),
            json!({}),
            json!({
                "limits": {"cpu": "2", "example.com/a": "1"}, "requests": {"cpu": "2"},
            }),
        ),
        (
            json!({"limits": {"memory": "1Gi"}}),
            json!({"limits": {"hugepages-2Mi": "4Mi"}}),
            json!({"limits": pages("4Mi"), "requests": pages("4Mi")}),
        ),
        (
            json!({"requests": pages("2Mi")}),
            json!({"limits": {"hugepages-2Mi": "4Mi"}}),
            json!({"requests": pages("2Mi")}),
        ),
    ] {
        assert_eq!(filled(resources.clone(), container), expected, "{resources}");
    }
}

#[test]
fn keys_of_labels_become_part_of_the_selectors() {
    let term = |expressions: Value| {
        json!({
            "topologyKey": "zone", "matchLabelKeys": ["hash", "none"], "mismatchLabelKeys": ["app"],
            "labelSelector": {"matchExpressions": expressions},
        })
    };
    let mut pod = json!({
        "metadata": {"name": "web", "labels": {"hash": "x", "app": "y"}},
        "spec": {"containers": [], "affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [term(json!([]))],
        }}},
    });
    crate::kinds::core::pod::label_keys::merge(&mut pod);
    let terms = "requiredDuringSchedulingIgnoredDuringExecution";
    assert_eq!(
        pod["spec"]["affinity"]["podAffinity"][terms][0],
        term(json!([
            {"key": "hash", "operator": "In", "values": ["x"]},
            {"key": "app", "operator": "NotIn", "values": ["y"]},
        ]))
    );
}

#[test]
fn init_containers_in_annotations_are_dropped() {
    let key = "pod.beta.kubernetes.io/init-containers";
    let said = json!({"metadata": {"annotations": {key: "[]", "a": "b"}}});
    let alone = json!({"metadata": {"annotations": {key: "[]"}}});
    let fill_in = |group: &str, kind: &str, mut object: Value| {
        for_kind(group, kind).fill_in(&mut object);
        object
    };
    let pod = fill_in("", "Pod", said.clone());
    assert_eq!(pod["metadata"], json!({"annotations": {"a": "b"}}));
    assert_eq!(fill_in("", "Pod", alone)["metadata"], json!({}));
    let deployment = fill_in("apps", "Deployment", json!({"spec": {"template": said}}));
    assert_eq!(deployment["spec"]["template"]["metadata"], json!({"annotations": {"a": "b"}}));
}
