//! What must not break: panics, races, slow clients.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::Request;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::api::{Answer, Api, CONFIG_MAPS, config_map, pod, seconds_pass};
use crate::crd::{DEFINITIONS, WIDGETS, condition, definition, until_gone, widget};
use crate::faulty::Faulty;

const PODS: &str = "/api/v1/namespaces/default/pods";

async fn faulty() -> (Arc<Api>, Faulty) {
    let store = Faulty::new();
    (Arc::new(Api::over(Arc::new(store.clone())).await), store)
}

/// Posts in the background.
fn post(api: &Arc<Api>, path: &str, body: Value) -> tokio::task::JoinHandle<Answer> {
    let (api, path) = (Arc::clone(api), path.to_owned());
    tokio::spawn(async move { api.post(&path, &body).await })
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_an_internal_error_and_the_server_lives_on() {
    let (api, store) = faulty().await;
    api.config_map("a", &json!({})).await;
    store.panics.store(true, Ordering::SeqCst);
    let status = api.get(&format!("{CONFIG_MAPS}/a")).await.refused(500);
    assert_eq!(status["reason"], "InternalError");
    store.panics.store(false, Ordering::SeqCst);
    api.get(&format!("{CONFIG_MAPS}/a")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_panic_ends_a_watch_without_an_error() {
    let (api, store) = faulty().await;
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1")).await;
    api.config_map("a", &json!({})).await;
    assert_eq!(events.brief().await.0, "ADDED");
    api.config_map("b", &json!({})).await;
    store.panics.store(true, Ordering::SeqCst);
    assert_eq!(events.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn absurd_numbers_of_seconds_are_as_long_as_possible() {
    let api = Api::start().await;
    for (name, grace) in [("a", i64::MAX), ("b", 300_000_000_000)] {
        let mut object = pod(name);
        object["spec"]["nodeName"] = "node-1".into();
        api.post(PODS, &object).await.ok();
        let path = format!("{PODS}/{name}");
        let marked = api.delete_with(&path, &json!({"gracePeriodSeconds": grace})).await.ok();
        assert_eq!(marked["metadata"]["deletionTimestamp"], "9999-12-30T22:00:00Z");
        let sooner = api.delete_with(&path, &json!({"gracePeriodSeconds": -5})).await.ok();
        assert_eq!(sooner["metadata"]["deletionGracePeriodSeconds"], 1);
        assert_eq!(sooner["metadata"]["deletionTimestamp"], "2025-01-01T00:00:01Z");
    }
    let mut events = api.watch(&format!("{CONFIG_MAPS}?watch=1&timeoutSeconds={}", i64::MAX)).await;
    api.config_map("a", &json!({})).await;
    assert_eq!(events.brief().await.0, "ADDED");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_end_is_given_up() {
    let api = Api::start().await;
    let parts = stream::iter([Ok::<_, std::io::Error>(Frame::data(Bytes::from_static(b"{")))]);
    let body = StreamBody::new(parts.chain(stream::pending()));
    let request = Request::post(CONFIG_MAPS).body(body).unwrap();
    let response = api.server.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 504);
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let status: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(status["reason"], "Timeout");
}

#[tokio::test(start_paused = true)]
async fn an_instance_written_while_its_definition_goes_is_taken_back() {
    let (api, store) = faulty().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    let key = "/registry/example.com/widgets/default/late";
    store.hold(key);
    let late = post(&api, WIDGETS, widget("late", 1));
    store.held().await;
    api.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    until_gone(&api, "widgets.example.com").await;
    store.release();
    late.await.unwrap().refused(404);
    assert!(api.store.get(key).await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_object_written_while_its_namespace_goes_is_taken_back() {
    let (api, store) = faulty().await;
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": "going"}})).await.ok();
    let key = "/registry/configmaps/going/late";
    store.hold(key);
    let path = "/api/v1/namespaces/going/configmaps";
    let late = post(&api, path, config_map("late", &json!({})));
    store.held().await;
    api.delete("/api/v1/namespaces/going").await.ok();
    store.release();
    late.await.unwrap().refused(403);
    assert!(api.store.get(key).await.unwrap().is_none());
}

fn gadgets() -> Value {
    let mut other = definition();
    other["metadata"]["name"] = "gadgets.example.com".into();
    other["spec"]["names"] = json!({"plural": "gadgets", "singular": "gadget", "kind": "Widget"});
    other
}

#[tokio::test(start_paused = true)]
async fn of_two_definitions_at_once_only_one_gets_the_name() {
    let (api, store) = faulty().await;
    let key = "/registry/apiextensions.k8s.io/customresourcedefinitions/widgets.example.com";
    store.hold(key);
    let first = post(&api, DEFINITIONS, definition());
    store.held().await;
    let second = post(&api, DEFINITIONS, gadgets());
    seconds_pass(1).await;
    store.release();
    assert_eq!(condition(&first.await.unwrap().ok(), "Established")["status"], "True");
    assert_eq!(condition(&second.await.unwrap().ok(), "Established")["status"], "False");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_becomes_free_is_accepted() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    api.post(DEFINITIONS, &gadgets()).await.ok();
    let mut events = api.watch(&format!("{DEFINITIONS}?watch=1")).await;
    events.brief().await;
    events.brief().await;
    api.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    loop {
        let event = events.next().await.unwrap();
        if event["object"]["metadata"]["name"] == "gadgets.example.com" {
            assert_eq!(condition(&event["object"], "Established")["status"], "True");
            break;
        }
    }
    api.get("/apis/example.com/v1/gadgets").await.ok();
}

#[tokio::test(start_paused = true)]
async fn the_servers_conditions_of_a_definition_are_its_own() {
    let api = Api::start().await;
    let mut created = api.post(DEFINITIONS, &definition()).await.ok();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let mine =
        json!({"type": "Mine", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"});
    created["status"] = json!({"conditions": [mine], "storedVersions": []});
    let changed = api.put(&format!("{path}/status"), &created).await.ok();
    assert_eq!(condition(&changed, "Established")["status"], "True");
    assert_eq!(condition(&changed, "Mine")["status"], "True");
    assert_eq!(changed["status"]["acceptedNames"]["kind"], "Widget");
    assert_eq!(changed["status"]["storedVersions"], json!(["v1"]));
    api.get(WIDGETS).await.ok();

    let mut held = widget("a", 1);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(WIDGETS, &held).await.ok();
    let going = api.delete(&path).await.ok();
    assert_eq!(condition(&going, "Terminating")["reason"], "InstanceDeletionPending");
}

/// Many keys: what tells who owns them is larger than they are.
fn wide(keys: usize) -> Value {
    let data = (0..keys).map(|key| (format!("{key:0>30}"), json!("")));
    config_map("wide", &Value::Object(data.collect()))
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_large_is_kept_without_the_owners_of_its_fields() {
    let api = Api::start().await;
    let created = api.post(CONFIG_MAPS, &wide(25_000)).await.ok();
    assert!(created["metadata"].get("managedFields").is_none());
    let path = format!("{CONFIG_MAPS}/wide");
    let patched = api.merge(&path, &json!({"data": {"more": ""}})).await.ok();
    assert_eq!(patched["data"].as_object().unwrap().len(), 25_001);
    assert!(patched["metadata"].get("managedFields").is_none());
    let apply = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "wide"},
        "data": wide(25_000)["data"],
    });
    let applied = format!("{path}?fieldManager=me&force=true");
    let status = api.patch(&applied, "application/apply-patch+yaml", &apply).await.refused(500);
    assert_eq!(status["message"], "etcdserver: request is too large");

    let status = api.put(&path, &wide(50_000)).await.refused(500);
    assert_eq!(status["message"], "etcdserver: request is too large");
    assert!(status.get("reason").is_none(), "{status}");
    api.put(&format!("{path}?dryRun=All"), &wide(50_000)).await.ok();
    assert_eq!(api.get(&path).await.ok(), patched);
}
