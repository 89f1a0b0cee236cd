use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use super::finalizer::{Step, step, with, without};
use super::pods::uses;
use super::{CLAIMS, classes};

#[test]
fn what_lives_is_held_and_what_is_deleted_is_let_go() {
    let meta = |deleted: bool, finalizers: &[&str]| -> ObjectMeta {
        let at = deleted.then_some("2030-01-01T00:00:00Z");
        serde_json::from_value(json!({"deletionTimestamp": at, "finalizers": finalizers})).unwrap()
    };
    for (deleted, finalizers, expected) in [
        (false, &[][..], Step::Add),
        (false, &["other"], Step::Add),
        (false, &[CLAIMS], Step::Settled),
        (true, &["other", CLAIMS], Step::RemoveIfUnused),
        (true, &["other"], Step::Settled),
    ] {
        assert_eq!(step(&meta(deleted, finalizers), CLAIMS), expected, "{finalizers:?}");
    }
    let held = meta(false, &["other", CLAIMS]);
    assert_eq!(with(&meta(false, &["other"]), CLAIMS), held);
    assert_eq!(without(&held, CLAIMS), meta(false, &["other"]));
}

#[test]
fn a_pod_keeps_a_claim_while_it_is_on_a_node() {
    let owner =
        json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "p", "controller": true});
    let claim = |name: &str, owners: Value| -> PersistentVolumeClaim {
        let meta = json!({"namespace": "default", "name": name, "ownerReferences": owners});
        serde_json::from_value(json!({"metadata": meta})).unwrap()
    };
    let pod = |meta: Value, node: Option<&str>| -> Pod {
        let mut pod = json!({
            "metadata": {"namespace": "default", "name": "web", "uid": "p"},
            "spec": {"containers": [], "nodeName": node, "volumes": [
                {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
                {"name": "b", "ephemeral": {}},
            ]},
        });
        for (key, value) in meta.as_object().into_iter().flatten() {
            pod["metadata"][key] = value.clone();
        }
        serde_json::from_value(pod).unwrap()
    };
    let (data, own) = (claim("data", json!([])), claim("web-b", json!([owner])));
    let stranger = claim("web-b", json!([]));
    let runs = pod(json!({}), Some("n"));
    assert!(uses(&runs, &data) && uses(&runs, &own));
    assert!(!uses(&runs, &stranger) && !uses(&runs, &claim("other", json!([]))));
    assert!(!uses(&pod(json!({}), None), &data), "nobody will start it");
    let over =
        json!({"deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0});
    let over = pod(over, Some("n"));
    assert!(uses(&over, &data) && !uses(&over, &own));
    assert!(!uses(&pod(json!({"namespace": "else"}), Some("n")), &data));
}

#[test]
fn a_class_is_named_by_what_a_claim_has_and_wants() {
    let claim = serde_json::from_value(json!({
        "spec": {"volumeAttributesClassName": "gold"},
        "status": {"currentVolumeAttributesClassName": "silver",
                   "modifyVolumeStatus": {"targetVolumeAttributesClassName": "", "status": "Pending"}},
    }));
    assert_eq!(classes::of_claim(&claim.unwrap()), ["gold", "silver"]);
}
