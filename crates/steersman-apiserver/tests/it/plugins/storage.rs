//! Claims, volumes and their classes: `StorageObjectInUseProtection`, `DefaultStorageClass`,
//! `PersistentVolumeClaimResize`.

use serde_json::{Value, json};

use super::{why, without};
use crate::api::{Api, seconds_pass};

const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
const VOLUMES: &str = "/api/v1/persistentvolumes";
const ATTRIBUTES: &str = "/apis/storage.k8s.io/v1/volumeattributesclasses";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        },
    })
}

fn held() -> [(&'static str, Value, &'static str); 3] {
    let volume = json!({
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "hostPath": {"path": "/tmp"},
        },
    });
    let attributes = json!({
        "metadata": {"name": "gold"}, "driverName": "csi.example.com",
        "parameters": {"iops": "9"},
    });
    [
        (CLAIMS, claim("c"), "kubernetes.io/pvc-protection"),
        (VOLUMES, volume, "kubernetes.io/pv-protection"),
        (ATTRIBUTES, attributes, "kubernetes.io/vac-protection"),
    ]
}

#[tokio::test(start_paused = true)]
async fn what_may_be_in_use_is_held_by_a_finalizer() {
    let api = Api::start().await;
    for (path, mut object, finalizer) in held() {
        let created = api.post(path, &object).await.ok();
        assert_eq!(created["metadata"]["finalizers"], json!([finalizer]), "{path}");
        let owned = &created["metadata"]["managedFields"][0]["fieldsV1"]["f:metadata"];
        assert!(owned.get("f:finalizers").is_none(), "{owned}");
        let name = created["metadata"]["name"].as_str().unwrap();
        api.delete(&format!("{path}/{name}")).await.ok();
        let going = api.get(&format!("{path}/{name}")).await.ok();
        assert!(going["metadata"]["deletionTimestamp"].is_string(), "{going}");
        // Whoever took it away is not given it again.
        let free = json!({"metadata": {"finalizers": null}});
        api.merge(&format!("{path}/{name}"), &free).await.ok();
        api.get(&format!("{path}/{name}")).await.refused(404);

        object["metadata"]["finalizers"] = json!(["example.com/mine", finalizer]);
        let created = api.post(path, &object).await.ok();
        assert_eq!(created["metadata"]["finalizers"].as_array().unwrap().len(), 2);
    }
    let api = without(&["StorageObjectInUseProtection"]).await;
    for (path, object, _) in held() {
        let created = api.post(path, &object).await.ok();
        assert!(created["metadata"].get("finalizers").is_none(), "{created}");
    }
}

async fn class(api: &Api, name: &str, annotation: &str) {
    let annotations = json!({annotation: "true"});
    let class = json!({
        "metadata": {"name": name, "annotations": annotations},
        "provisioner": "example.com/p",
    });
    api.post(CLASSES, &class).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_a_class_gets_the_newest_default() {
    let api = Api::start().await;
    let created = api.post(CLAIMS, &claim("none")).await.ok();
    assert!(created["spec"].get("storageClassName").is_none(), "{created}");
    class(&api, "b", "storageclass.kubernetes.io/is-default-class").await;
    class(&api, "a", "storageclass.beta.kubernetes.io/is-default-class").await;
    class(&api, "other", "example.com/is-default-class").await;
    let named = async |name: &str| {
        let created = api.post(CLAIMS, &claim(name)).await.ok();
        created["spec"]["storageClassName"].clone()
    };
    assert_eq!(named("first").await, "a", "of the same age, the first by name");
    seconds_pass(2).await;
    class(&api, "c", "storageclass.kubernetes.io/is-default-class").await;
    assert_eq!(named("second").await, "c", "the newest");
    let mut empty = claim("empty");
    empty["spec"]["storageClassName"] = "".into();
    assert_eq!(api.post(CLAIMS, &empty).await.ok()["spec"]["storageClassName"], "");
    let mut old = claim("old");
    old["metadata"]["annotations"] = json!({"volume.beta.kubernetes.io/storage-class": "x"});
    let created = api.post(CLAIMS, &old).await.ok();
    assert!(created["spec"].get("storageClassName").is_none(), "{created}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_grows_when_it_is_bound_and_its_class_lets_it() {
    let api = Api::start().await;
    for (name, grows) in
        [("grows", json!(true)), ("stays", json!(false)), ("says-nothing", Value::Null)]
    {
        let mut class = json!({"metadata": {"name": name}, "provisioner": "example.com/p"});
        if !grows.is_null() {
            class["allowVolumeExpansion"] = grows;
        }
        api.post(CLASSES, &class).await.ok();
    }
    let bound = json!({"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}});
    let larger = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
    let grow = async |name: &str, class: &str| {
        let mut wanted = claim(name);
        wanted["spec"]["storageClassName"] = class.into();
        api.post(CLAIMS, &wanted).await.ok();
        api.merge(&format!("{CLAIMS}/{name}/status"), &bound).await.ok();
        api.merge(&format!("{CLAIMS}/{name}"), &larger).await
    };
    grow("a", "grows").await.ok();
    for (name, class) in [("b", "stays"), ("c", "says-nothing"), ("d", "gone"), ("e", "")] {
        let refused = grow(name, class).await.refused(403);
        assert_eq!(
            why(&refused),
            format!(
                "persistentvolumeclaims {name:?} is forbidden: only dynamically provisioned pvc \
                 can be resized and the storageclass that provisions the pvc must support resize"
            )
        );
    }
    let api = without(&["PersistentVolumeClaimResize"]).await;
    api.post(CLAIMS, &claim("a")).await.ok();
    api.merge(&format!("{CLAIMS}/a/status"), &bound).await.ok();
    api.merge(&format!("{CLAIMS}/a"), &larger).await.ok();
}
