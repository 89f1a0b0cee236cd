//! What an object has though nobody set it, and who owns what was set by nobody.

use serde_json::{Value, json};

use crate::api::{Api, CONFIG_MAPS, config_map, deployment};
use crate::crd::{DEFINITIONS, definition};

const APPLY: &str = "application/apply-patch+yaml";

/// What the first manager of an object owns, of those who wrote the object itself.
fn owned(object: &Value) -> &Value {
    let managers = object["metadata"]["managedFields"].as_array().unwrap();
    &managers.iter().find(|entry| entry["subresource"].is_null()).unwrap()["fieldsV1"]
}

#[tokio::test(start_paused = true)]
async fn who_creates_an_object_owns_what_it_set_and_no_zeros() {
    let api = Api::start().await;
    let event = json!({
        "metadata": {"name": "a"}, "involvedObject": {"namespace": "default"}, "reason": "Why",
    });
    let event = api.post("/api/v1/namespaces/default/events", &event).await.ok();
    assert_eq!(event["source"], json!({}));
    assert_eq!(event["reportingComponent"], "");
    assert_eq!(*owned(&event), json!({"f:involvedObject": {}, "f:reason": {}}));
    let node = json!({
        "metadata": {"name": "n"}, "spec": {"drivers": [{"name": "a.b", "nodeID": "n"}]},
    });
    let node = api.post("/apis/storage.k8s.io/v1/csinodes", &node).await.ok();
    let driver = &owned(&node)["f:spec"]["f:drivers"]["k:{\"name\":\"a.b\"}"];
    let all = json!({".": {}, "f:name": {}, "f:nodeID": {}, "f:topologyKeys": {}});
    assert_eq!(*driver, all);
}

#[tokio::test(start_paused = true)]
async fn what_a_kind_resets_nobody_owns() {
    let api = Api::start().await;
    let namespace = json!({"metadata": {"name": "a", "labels": {"a": "b"}}});
    let namespace = api.post("/api/v1/namespaces", &namespace).await.ok();
    assert_eq!(namespace["status"]["phase"], "Active");
    assert!(owned(&namespace).get("f:status").is_none(), "{namespace}");
    let service = json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}});
    let service = api.post("/api/v1/namespaces/default/services", &service).await.ok();
    assert_eq!(service["spec"]["ipFamilies"], json!(["IPv4"]));
    assert!(owned(&service)["f:spec"].get("f:ipFamilies").is_none(), "{service}");
}

#[tokio::test(start_paused = true)]
async fn a_volume_says_when_its_phase_changed() {
    let api = Api::start().await;
    let volume = json!({"metadata": {"name": "v"}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/tmp"},
    }});
    let path = "/api/v1/persistentvolumes";
    let created = api.post(path, &volume).await.ok();
    let since = created["metadata"]["creationTimestamp"].clone();
    assert_eq!(created["status"]["lastPhaseTransitionTime"], since);
    let mut available = created;
    available["status"]["phase"] = "Available".into();
    tokio::time::advance(std::time::Duration::from_secs(5)).await;
    let changed = api.put(&format!("{path}/v/status"), &available).await.ok();
    assert_ne!(changed["status"]["lastPhaseTransitionTime"], since);
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_held_from_when_it_is_deleted() {
    let api = Api::start().await;
    let created = api.post(DEFINITIONS, &definition()).await.ok();
    assert!(created["metadata"].get("finalizers").is_none());
    assert_eq!(owned(&created)["f:spec"]["f:conversion"], json!({".": {}, "f:strategy": {}}));
    let marked = api.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    let cleanup = "customresourcecleanup.apiextensions.k8s.io";
    assert_eq!(marked["metadata"]["finalizers"], json!([cleanup]));
    assert_eq!(marked["metadata"]["generation"], created["metadata"]["generation"]);
}

#[tokio::test(start_paused = true)]
async fn an_annotation_makes_a_generation_of_a_deployment_but_not_through_its_status() {
    let api = Api::start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let mut web = api.post(path, &deployment("web", 1)).await.ok();
    web["metadata"]["annotations"] = json!({"a": "b"});
    let web = api.put(&format!("{path}/web/status"), &web).await.ok();
    assert_eq!(web["metadata"]["generation"], 1);
    let mut web = web;
    web["metadata"]["annotations"] = json!({"a": "c"});
    let web = api.put(&format!("{path}/web"), &web).await.ok();
    assert_eq!(web["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn who_applies_what_is_there_already_owns_it_without_a_time() {
    let api = Api::start().await;
    api.post(CONFIG_MAPS, &config_map("a", &json!({"k": "v"}))).await.ok();
    let path = format!("{CONFIG_MAPS}/a?fieldManager=");
    let applied = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"},
    });
    let time = |object: &Value, manager: &str| {
        let entries = object["metadata"]["managedFields"].as_array().unwrap().iter();
        let mut entries = entries.filter(|entry| entry["manager"] == manager);
        entries.next().unwrap().get("time").is_some()
    };
    let answer = api.patch(&format!("{path}one"), APPLY, &applied).await.ok();
    assert!(!time(&answer, "one"), "{answer}");
    let mut changed = applied;
    changed["data"]["other"] = "w".into();
    let answer = api.patch(&format!("{path}two"), APPLY, &changed).await.ok();
    assert!(time(&answer, "two"), "{answer}");
}
