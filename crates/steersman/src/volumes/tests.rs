use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use serde_json::{Value, json};

use super::*;

fn merged(mut base: Value, changes: &Value) -> Value {
    json_patch::merge(&mut base, changes);
    base
}

fn volume(name: &str, storage: &str, changes: &Value) -> Arc<PersistentVolume> {
    let base = json!({
        "metadata": {"name": name},
        "spec": {"capacity": {"storage": storage}, "accessModes": ["ReadWriteOnce"]},
        "status": {"phase": "Available"},
    });
    Arc::new(serde_json::from_value(merged(base, changes)).unwrap())
}

fn claim(storage: &str, changes: &Value) -> PersistentVolumeClaim {
    let base = json!({
        "metadata": {"namespace": "default", "name": "data", "uid": "u"},
        "spec": {"resources": {"requests": {"storage": storage}}, "accessModes": ["ReadWriteOnce"]},
    });
    serde_json::from_value(merged(base, changes)).unwrap()
}

fn found(
    claim: &PersistentVolumeClaim,
    volumes: &[Arc<PersistentVolume>],
    search: Search<'_>,
) -> Option<String> {
    find_volume(claim, volumes, search).and_then(|volume| volume.metadata.name.clone())
}

const NOW: Search<'_> = Search::Binder { delayed: false };
const LATER: Search<'_> = Search::Binder { delayed: true };

#[test]
fn the_smallest_volume_with_the_fewest_modes_that_fits_is_taken() {
    let many = json!({"spec": {"accessModes": ["ReadWriteOnce", "ReadOnlyMany"]}});
    let volumes = [
        volume("large", "10Gi", &json!({})),
        volume("b", "5Gi", &json!({})),
        volume("a", "5Gi", &json!({})),
        volume("many", "2Gi", &many),
        volume("small", "1Gi", &json!({})),
    ];
    for (storage, best) in
        [("1Gi", Some("small")), ("2Gi", Some("a")), ("6Gi", Some("large")), ("11Gi", None)]
    {
        let best = best.map(str::to_owned);
        assert_eq!(found(&claim(storage, &json!({})), &volumes, NOW), best, "{storage}");
    }
    let wants_many = claim("1Gi", &json!({"spec": {"accessModes": ["ReadOnlyMany"]}}));
    assert_eq!(found(&wants_many, &volumes, NOW).as_deref(), Some("many"));
}

#[test]
fn what_a_volume_must_have() {
    for (of_volume, of_claim, fits) in [
        (json!({}), json!({}), true),
        (json!({"spec": {"storageClassName": "gold"}}), json!({}), false),
        (
            json!({"spec": {"storageClassName": "gold"}}),
            json!({"spec": {"storageClassName": "gold"}}),
            true,
        ),
        (
            json!({"spec": {"storageClassName": "gold"}}),
            json!({"metadata": {"annotations": {CLASS: "gold"}}}),
            true,
        ),
        (json!({"spec": {"volumeMode": "Block"}}), json!({}), false),
        (json!({"spec": {"volumeMode": "Filesystem"}}), json!({}), true),
        (json!({"spec": {"volumeAttributesClassName": "fast"}}), json!({}), false),
        (json!({"status": {"phase": "Released"}}), json!({}), false),
        (json!({"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}}), json!({}), false),
        (json!({}), json!({"spec": {"selector": {"matchLabels": {"disk": "ssd"}}}}), false),
        (
            json!({"metadata": {"labels": {"disk": "ssd"}}}),
            json!({"spec": {"selector": {"matchLabels": {"disk": "ssd"}}}}),
            true,
        ),
        (
            json!({"spec": {"claimRef": {"namespace": "default", "name": "other"}}}),
            json!({}),
            false,
        ),
        (json!({"spec": {"claimRef": {"namespace": "default", "name": "data"}}}), json!({}), true),
        (
            json!({"spec": {"claimRef": {"namespace": "default", "name": "data", "uid": "old"}}}),
            json!({}),
            false,
        ),
    ] {
        let volumes = [volume("v", "1Gi", &of_volume)];
        let claim = claim("1Gi", &of_claim);
        assert_eq!(found(&claim, &volumes, NOW).is_some(), fits, "{of_volume} {of_claim}");
    }
}

#[test]
fn a_claim_that_waits_takes_only_what_is_reserved_for_it() {
    let reserved = json!({"spec": {"claimRef": {"namespace": "default", "name": "data"}}});
    let volumes = [volume("a", "1Gi", &json!({})), volume("b", "5Gi", &reserved)];
    assert_eq!(found(&claim("1Gi", &json!({})), &volumes, LATER).as_deref(), Some("b"));
    assert_eq!(found(&claim("1Gi", &json!({})), &volumes[..1], LATER), None);
}

#[test]
fn on_a_node_only_what_can_be_used_there_counts() {
    let on = |host: &str| {
        let term = json!({"key": "host", "operator": "In", "values": [host]});
        json!({"spec": {"nodeAffinity": {"required": {
            "nodeSelectorTerms": [{"matchExpressions": [term]}]}}}})
    };
    let node: Node =
        serde_json::from_value(json!({"metadata": {"name": "n", "labels": {"host": "n"}}}))
            .unwrap();
    let volumes = [volume("a", "1Gi", &on("m")), volume("b", "2Gi", &on("n"))];
    let search = |chosen| Search::Node { node: &node, chosen };
    let claim = claim("1Gi", &json!({}));
    assert_eq!(found(&claim, &volumes, search(&[])).as_deref(), Some("b"));
    let taken = ["b".to_owned()];
    assert_eq!(found(&claim, &volumes, search(&taken)), None);
    assert_eq!(found(&claim, &volumes[..1], search(&[])), None);
}

#[test]
fn a_volume_that_a_claim_names_is_refused_in_kubernetes_words() {
    for (of_volume, word) in [
        (json!({}), None),
        (json!({"spec": {"capacity": {"storage": "1Mi"}}}), Some("requested PV is too small")),
        (json!({"spec": {"storageClassName": "x"}}), Some("storageClassName does not match")),
        (json!({"spec": {"volumeMode": "Block"}}), Some("incompatible volumeMode")),
        (json!({"spec": {"accessModes": ["ReadOnlyMany"]}}), Some("incompatible accessMode")),
    ] {
        let volume = volume("v", "1Gi", &of_volume);
        assert_eq!(unsuitable(&volume, &claim("1Gi", &json!({}))).as_deref(), word, "{of_volume}");
    }
}

#[test]
fn a_volume_is_bound_once_and_what_a_user_reserved_stays_the_users() {
    let claim = claim("1Gi", &json!({}));
    let bound = bound_to_claim(&volume("v", "1Gi", &json!({})), &claim).unwrap();
    assert_eq!(annotation(&bound.metadata, BOUND_BY_CONTROLLER), Some("yes"));
    assert!(is_bound_to_claim(&bound, &claim));
    assert_eq!(bound_to_claim(&bound, &claim), None);
    let reserved = json!({"spec": {"claimRef": {"namespace": "default", "name": "data"}}});
    let bound = bound_to_claim(&volume("v", "1Gi", &reserved), &claim).unwrap();
    assert_eq!(annotation(&bound.metadata, BOUND_BY_CONTROLLER), None);
    assert_eq!(bound.spec.unwrap().claim_ref.unwrap().uid.as_deref(), Some("u"));
}

#[test]
fn a_pod_names_its_claims_and_those_made_for_it() {
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "p"},
        "spec": {"containers": [], "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "b", "emptyDir": {}},
            {"name": "c", "ephemeral": {}},
        ]},
    }))
    .unwrap();
    let claims: Vec<_> = claims_of(&pod).map(|it| (it.name, it.is_ephemeral)).collect();
    assert_eq!(claims, [("data".to_owned(), false), ("web-c".to_owned(), true)]);
    let owner =
        json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "p", "controller": true});
    let made = claim("1Gi", &json!({"metadata": {"ownerReferences": [owner]}}));
    assert_eq!(created_for(&made, &pod), Ok(()));
    let error = created_for(&claim("1Gi", &json!({})), &pod).unwrap_err();
    let words = "PVC default/data was not created for pod default/web (pod is not owner)";
    assert_eq!(error.to_string(), words);
}
