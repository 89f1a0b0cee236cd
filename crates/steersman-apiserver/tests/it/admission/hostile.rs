//! Webhooks that mean no good, or call back while they are asked.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::Response;
use serde_json::{Value, json};
use steersman_apiserver::{ApiServer, WebhookHandler};

use super::set;
use crate::api::{Api, CONFIG_MAPS, config_map, version};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};
use crate::webhooks::{
    MUTATING, VALIDATING, allowed, configure, denied, message, patched, serve_here, webhook,
    webhook_with,
};

/// A webhook that does something with the API server before it allows.
fn calling_back(
    api: &Api,
    call: impl Fn(Api, Value) -> BoxFuture<'static, ()> + Send + Sync + 'static,
) -> WebhookHandler {
    let (server, store): (ApiServer, _) = (api.server.clone(), Arc::clone(&api.store));
    Arc::new(move |request: http::Request<Bytes>| {
        let review: Value = serde_json::from_slice(request.body()).unwrap();
        let api = Api { server: server.clone(), store: Arc::clone(&store) };
        let called = call(api, review["request"].clone());
        async move {
            called.await;
            let mut response = allowed();
            response["uid"] = review["request"]["uid"].clone();
            let answer = json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": response,
            });
            Response::new(Bytes::from(answer.to_string()))
        }
        .boxed()
    })
}

fn rules_for(group: &str, resource: &str) -> Value {
    json!({"rules": [{
        "apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "operations": ["*"],
    }]})
}

#[tokio::test(start_paused = true)]
async fn what_is_left_of_an_object_must_still_be_one_of_its_kind() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    api.config_map("old", &json!({"k": "v"})).await;
    api.post(WIDGETS, &widget("old", 1)).await.ok();
    let hooks = [webhook("maps"), webhook_with("widgets", &rules_for("example.com", "*"))];
    configure(&api, MUTATING, "a", &hooks).await;
    for patch in [
        json!([{"op": "replace", "path": "", "value": []}]),
        json!([{"op": "replace", "path": "", "value": {}}]),
        json!([{"op": "remove", "path": "/metadata"}]),
        json!([{"op": "replace", "path": "/metadata", "value": "x"}]),
        json!([{"op": "replace", "path": "/metadata", "value": []}]),
        json!([{"op": "remove", "path": "/metadata/name"}]),
        json!([{"op": "replace", "path": "/metadata/name", "value": {"a": 1}}]),
        json!([{"op": "replace", "path": "/kind", "value": "Other"}]),
        json!([{"op": "remove", "path": "/kind"}]),
        json!([{"op": "replace", "path": "/kind", "value": 5}]),
        json!([{"op": "replace", "path": "/apiVersion", "value": "other/v9"}]),
        json!([{"op": "remove", "path": "/apiVersion"}]),
        json!([{"op": "add", "path": "/metadata/managedFields", "value": [{"manager": 1}]}]),
        json!([{"op": "add", "path": "/metadata/managedFields", "value": "x"}]),
        json!([{"op": "add", "path": "/metadata/finalizers", "value": {"x": 1}}]),
        json!([{"op": "add", "path": "/metadata/ownerReferences", "value": [7]}]),
        json!([{"op": "add", "path": "/metadata/labels", "value": ["x"]}]),
        json!([{"op": "add", "path": "/metadata/uid", "value": "other"}]),
        json!([{"op": "add", "path": "/metadata/deletionTimestamp", "value": "2025-01-01T00:00:00Z"}]),
        json!([{"op": "add", "path": "/metadata/resourceVersion", "value": "1"}]),
        json!([{"op": "add", "path": "/metadata/namespace", "value": "other"}]),
    ] {
        let answer = patched(&patch);
        serve_here(&api, move |_| answer.clone());
        for (path, new) in
            [(CONFIG_MAPS, config_map("new", &json!({"k": "v"}))), (WIDGETS, widget("new", 1))]
        {
            let kind = new["kind"].clone();
            let mut changed = new.clone();
            changed["metadata"]["name"] = "old".into();
            changed["metadata"]["labels"] = json!({"changed": "yes"});
            let old = format!("{path}/old");
            let before = api.get(&old).await.ok();
            let answers = [
                api.post(path, &new).await,
                api.put(&old, &changed).await,
                api.merge(&old, &json!({"metadata": {"labels": {"merged": "yes"}}})).await,
            ];
            for answer in &answers {
                let code = answer.code;
                let said = answer.json();
                let panicked = message_of(&said).contains("panic");
                assert!(code < 600 && !panicked, "{patch} on {kind}: {said}");
            }
            let list = api.get(path).await.ok();
            for item in list["items"].as_array().unwrap() {
                let name = item["metadata"]["name"].as_str().unwrap();
                assert!(name == "old" || name == "new", "{patch} made {item}");
                let found = api.get(&format!("{path}/{name}")).await.ok();
                assert_eq!(found["kind"], kind, "{patch} made {found}");
                assert_eq!(found["apiVersion"], new["apiVersion"], "{patch} made {found}");
                assert!(found["metadata"].get("deletionTimestamp").is_none(), "{patch}: {found}");
                let managers = found["metadata"].get("managedFields");
                let manager = managers.map(|managers| &managers[0]["manager"]);
                assert!(manager.is_none_or(Value::is_string), "{patch}: {found}");
            }
            let after = api.get(&old).await.ok();
            for field in ["uid", "namespace", "creationTimestamp"] {
                assert_eq!(before["metadata"][field], after["metadata"][field], "{patch}");
            }
            api.delete(&format!("{path}/new")).await;
        }
    }
}

fn message_of(document: &Value) -> &str {
    document["message"].as_str().unwrap_or("")
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_keeps_changing_what_it_is_asked_about_is_not_asked_for_ever() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let path = format!("{WIDGETS}/a");
    let status = format!("{path}/status");
    let counted: Arc<std::sync::atomic::AtomicI64> = Arc::default();
    let handler = calling_back(&api, move |api, _| {
        let (status, counted) = (status.clone(), Arc::clone(&counted));
        async move {
            let size = counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            assert!(size < 1000, "asked for ever");
            api.merge(&status, &json!({"status": {"size": size}})).await.ok();
        }
        .boxed()
    });
    api.server.serve_webhooks("https://webhooks.test", handler);
    let hook = webhook_with("nosy", &rules_for("example.com", "widgets"));
    configure(&api, VALIDATING, "a", &[hook]).await;
    let refused = api.merge(&path, &json!({"spec": {"size": 2}})).await.refused(409);
    assert!(message(&refused).contains("object has been modified"), "{refused}");
    let refused = api.delete(&path).await.refused(409);
    assert!(message(&refused).contains("object has been modified"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_for_definitions_may_write_definitions() {
    let api = Api::start().await;
    let handler = calling_back(&api, |api, request| {
        async move {
            if request["name"] != "widgets.example.com" {
                return;
            }
            let mut other = definition();
            other["metadata"]["name"] = "gadgets.example.com".into();
            other["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
            api.post(DEFINITIONS, &other).await;
        }
        .boxed()
    });
    api.server.serve_webhooks("https://webhooks.test", handler);
    let hook = webhook_with("crds", &rules_for("apiextensions.k8s.io", "*"));
    configure(&api, MUTATING, "a", std::slice::from_ref(&hook)).await;
    configure(&api, VALIDATING, "a", &[hook]).await;
    api.post(DEFINITIONS, &definition()).await.ok();
    let made = api.get(&format!("{DEFINITIONS}/gadgets.example.com")).await.ok();
    assert_eq!(made["spec"]["names"]["kind"], "Gadget");
    api.post(WIDGETS, &widget("a", 1)).await.ok();
}

#[tokio::test(start_paused = true)]
async fn two_definitions_that_wait_for_webhooks_do_not_get_the_same_names() {
    let api = Api::start().await;
    let handler = calling_back(&api, |_, _| {
        async {
            let never = std::future::pending::<()>();
            let _ = tokio::time::timeout(std::time::Duration::from_secs(1), never).await;
        }
        .boxed()
    });
    api.server.serve_webhooks("https://webhooks.test", handler);
    let hook = webhook_with("crds", &rules_for("apiextensions.k8s.io", "*"));
    configure(&api, VALIDATING, "a", &[hook]).await;
    let first = definition();
    let mut second = definition();
    second["metadata"]["name"] = "gadgets.example.com".into();
    second["spec"]["names"] = json!({"plural": "gadgets", "kind": "Widget"});
    let (first, second) =
        tokio::join!(api.post(DEFINITIONS, &first), api.post(DEFINITIONS, &second));
    let (first, second) = (first.ok(), second.ok());
    let accepted = |definition: &Value| {
        let condition = |kind: &str| crate::crd::condition(definition, kind)["status"].clone();
        assert_eq!(condition("NamesAccepted"), condition("Established"));
        condition("Established")
    };
    let mut both = [accepted(&first), accepted(&second)];
    both.sort_by_key(ToString::to_string);
    assert_eq!(both, [json!("False"), json!("True")]);
}

#[tokio::test(start_paused = true)]
async fn an_update_that_a_webhook_undoes_writes_nothing() {
    let api = Api::start().await;
    serve_here(&api, |_| set("/data/seen", &json!("yes")));
    configure(&api, MUTATING, "a", &[webhook("seen")]).await;
    let made = api.config_map("a", &json!({"k": "v"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    crate::api::seconds_pass(5).await;
    let again = api.put(&path, &config_map("a", &json!({"k": "v"}))).await.ok();
    crate::api::seconds_pass(5).await;
    let last = api.put(&path, &config_map("a", &json!({"k": "v"}))).await.ok();
    assert_eq!(version(&again), version(&last), "{again} {last}");
    assert_eq!(last["data"], made["data"]);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_that_sounds_like_the_servers_own_is_still_a_refusal() {
    let api = Api::start().await;
    for reason in ["AlreadyExists", "NotFound", "Conflict"] {
        serve_here(&api, move |_| denied(&json!({"code": 409, "reason": reason})));
        if reason == "AlreadyExists" {
            configure(&api, VALIDATING, "a", &[webhook("liar")]).await;
        }
        let path = format!("{CONFIG_MAPS}/a?fieldManager=me");
        let wanted = config_map("a", &json!({"k": "v"}));
        let apply = api.patch(&path, "application/apply-patch+yaml", &wanted);
        let apply = tokio::time::timeout(std::time::Duration::from_secs(40), apply).await;
        let refused = apply.expect("the server asks for ever").refused(409);
        assert!(message(&refused).contains("denied the request"), "{refused}");
    }
}
