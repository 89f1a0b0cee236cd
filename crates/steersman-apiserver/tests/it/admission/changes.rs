//! What mutating webhooks do to an object, and when.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::join_all;
use http::Response;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::set;
use crate::api::{Api, CONFIG_MAPS, config_map, deployment};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};
use crate::webhooks::{
    MUTATING, VALIDATING, allowed, configure, message, patched, serve, serve_here, webhook,
    webhook_with,
};

#[tokio::test(start_paused = true)]
async fn a_mutating_webhook_changes_what_is_created() {
    let api = Api::start().await;
    let asked = serve_here(&api, |_| set("/data/seen", &json!("yes")));
    configure(&api, MUTATING, "a", &[webhook("seen")]).await;
    let created = api.config_map("a", &json!({"k": "v"})).await;
    assert_eq!(created["data"], json!({"k": "v", "seen": "yes"}));
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/a")).await.ok()["data"]["seen"], "yes");
    let request = asked.last();
    assert_eq!(request["operation"], "CREATE");
    assert_eq!(request["kind"], json!({"group": "", "version": "v1", "kind": "ConfigMap"}));
    assert_eq!(
        request["resource"],
        json!({"group": "", "version": "v1", "resource": "configmaps"})
    );
    assert_eq!(request["requestKind"], request["kind"]);
    assert_eq!(request["requestResource"], request["resource"]);
    assert_eq!((&request["name"], &request["namespace"]), (&json!("a"), &json!("default")));
    assert_eq!(request["userInfo"]["username"], "system:admin");
    assert_eq!(request["object"]["data"], json!({"k": "v"}));
    assert!(request["object"]["metadata"]["managedFields"].is_array());
    assert_eq!(request["object"]["metadata"].get("uid"), None);
    assert_eq!(request["oldObject"], Value::Null);
    assert_eq!(request["dryRun"], false);
    let options = json!({"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"});
    assert_eq!(request["options"], options);
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_fills_in_is_defaulted_and_validated_and_may_be_what_was_missing() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    let rules = json!([{
        "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["*"],
        "operations": ["CREATE", "UPDATE"],
    }]);
    configure(&api, MUTATING, "a", &[webhook_with("size", &json!({"rules": rules}))]).await;
    serve_here(&api, |request| {
        let name = request["object"]["metadata"]["name"].as_str().unwrap();
        set("/spec", &json!({"size": if name == "odd" { -1 } else { 3 }, "unknown": 1}))
    });
    let mut empty = widget("a", 0);
    empty.as_object_mut().unwrap().remove("spec");
    let created = api.post(WIDGETS, &empty).await.ok();
    assert_eq!(created["spec"], json!({"size": 3, "color": "red"}));
    let refused = api.post(WIDGETS, &widget("odd", 1)).await.refused(422);
    assert!(message(&refused).contains("spec.size"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn updates_patches_and_applies_are_asked_about_with_the_old_object() {
    let api = Api::start().await;
    let asked = serve_here(&api, |_| set("/data/seen", &json!("yes")));
    api.config_map("a", &json!({"k": "v"})).await;
    configure(&api, MUTATING, "a", &[webhook("seen")]).await;
    let path = format!("{CONFIG_MAPS}/a");
    let updated = api.put(&path, &config_map("a", &json!({"k": "w"}))).await.ok();
    assert_eq!(updated["data"], json!({"k": "w", "seen": "yes"}));
    let request = asked.last();
    assert_eq!(request["operation"], "UPDATE");
    assert_eq!(request["oldObject"]["data"], json!({"k": "v"}));
    assert_eq!(request["object"]["data"], json!({"k": "w"}));
    assert_eq!(request["options"]["kind"], "UpdateOptions");
    let merged = api.merge(&path, &json!({"data": {"m": "1", "seen": null}})).await.ok();
    assert_eq!(merged["data"], json!({"k": "w", "m": "1", "seen": "yes"}));
    let apply = format!("{path}?fieldManager=me");
    let applied = config_map("a", &json!({"applied": "1"}));
    let applied = api.patch(&apply, "application/apply-patch+yaml", &applied).await.ok();
    assert_eq!(applied["data"]["applied"], "1");
    assert_eq!(asked.last()["options"]["fieldManager"], "me");
    let other = format!("{CONFIG_MAPS}/b?fieldManager=me");
    let made = config_map("b", &json!({"applied": "1"}));
    let made = api.patch(&other, "application/apply-patch+yaml", &made).await.ok();
    assert_eq!(made["data"], json!({"applied": "1", "seen": "yes"}));
    assert_eq!(asked.last()["operation"], "CREATE");
}

#[tokio::test(start_paused = true)]
async fn validating_webhooks_are_asked_at_once_and_mutating_ones_in_the_order_of_their_names() {
    let api = Api::start().await;
    let slow = |answer: fn(&Value) -> Value| -> steersman_apiserver::WebhookHandler {
        Arc::new(move |request: http::Request<Bytes>| {
            let review: Value = serde_json::from_slice(request.body()).unwrap();
            let mut response = answer(&review["request"]);
            response["uid"] = review["request"]["uid"].clone();
            let review = json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": response,
            });
            async move {
                let never = std::future::pending::<()>();
                let _ = tokio::time::timeout(Duration::from_secs(3), never).await;
                Response::new(Bytes::from(review.to_string()))
            }
            .boxed()
        })
    };
    api.server.serve_webhooks("https://webhooks.test", slow(|_| allowed()));
    configure(&api, VALIDATING, "v", &[webhook("a"), webhook("b"), webhook("c")]).await;
    let start = Instant::now();
    api.config_map("a", &json!({})).await;
    assert_eq!(start.elapsed().as_secs(), 3);
    api.server.serve_webhooks(
        "https://webhooks.test",
        slow(|request| {
            let seen = request["object"]["data"]["seen"].as_str().unwrap_or("").to_owned();
            if request["operation"] == "CREATE"
                && request["object"]["metadata"].get("uid").is_none()
            {
                return set("/data/seen", &json!(seen + "x"));
            }
            allowed()
        }),
    );
    configure(&api, MUTATING, "b", &[webhook("one"), webhook("two")]).await;
    configure(&api, MUTATING, "a", &[webhook("zero")]).await;
    let start = Instant::now();
    let created = api.config_map("b", &json!({"seen": ""})).await;
    assert_eq!(start.elapsed().as_secs(), 12);
    assert_eq!(created["data"]["seen"], "xxx");
}

#[tokio::test(start_paused = true)]
async fn who_wishes_so_is_asked_again_after_others_have_changed_the_object() {
    let api = Api::start().await;
    let log: Arc<std::sync::Mutex<Vec<String>>> = Arc::default();
    for name in ["first", "second", "third"] {
        let log = Arc::clone(&log);
        serve(&api, &format!("{name}.test"), move |request| {
            log.lock().unwrap().push(name.to_owned());
            match request["object"]["data"].get(name) {
                None => set(&format!("/data/{name}"), &json!("1")),
                Some(_) => allowed(),
            }
        });
    }
    let hook = |name: &str, policy: &str| {
        webhook_with(
            name,
            &json!({
                "clientConfig": {"url": format!("https://{name}.test")}, "reinvocationPolicy": policy,
            }),
        )
    };
    let hooks = [hook("first", "IfNeeded"), hook("second", "Never"), hook("third", "IfNeeded")];
    configure(&api, MUTATING, "a", &hooks).await;
    api.config_map("a", &json!({"k": "v"})).await;
    assert_eq!(*log.lock().unwrap(), ["first", "second", "third", "first"]);
    log.lock().unwrap().clear();
    let all = json!({"first": "1", "second": "1", "third": "1"});
    api.config_map("b", &all).await;
    assert_eq!(*log.lock().unwrap(), ["first", "second", "third"]);
}

#[tokio::test(start_paused = true)]
async fn a_scale_may_be_changed_by_a_webhook() {
    let api = Api::start().await;
    serve_here(&api, |_| set("/spec/replicas", &json!(2)));
    let rules = json!([{
        "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments/scale"],
        "operations": ["UPDATE"],
    }]);
    configure(&api, MUTATING, "a", &[webhook_with("limit", &json!({"rules": rules}))]).await;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    api.post(deployments, &deployment("web", 1)).await.ok();
    let path = format!("{deployments}/web");
    let scale = api.merge(&format!("{path}/scale"), &json!({"spec": {"replicas": 9}})).await.ok();
    assert_eq!(scale["spec"]["replicas"], 2);
    assert_eq!(api.get(&path).await.ok()["spec"]["replicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_breaks_the_object_is_refused() {
    let api = Api::start().await;
    serve_here(&api, |_| set("/data", &json!(["not", "a", "map"])));
    configure(&api, MUTATING, "a", &[webhook("breaker")]).await;
    api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(500);
    serve_here(&api, |_| set("/metadata/namespace", &json!("other")));
    api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(400);
}

#[tokio::test(start_paused = true)]
async fn a_patch_after_which_a_custom_resource_does_not_say_what_it_is_is_refused() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    let rules = json!({"rules": [{
        "apiGroups": ["example.com"], "apiVersions": ["*"], "resources": ["widgets"],
        "operations": ["*"],
    }]});
    configure(&api, MUTATING, "a", &[webhook_with("breaker", &rules)]).await;
    let lacking = "Internal error occurred: Object 'Kind' is missing in '{";
    for (patch, start) in [
        (json!({"op": "remove", "path": "/kind"}), format!("{lacking}\"apiVersion\":")),
        (json!({"op": "replace", "path": "/kind", "value": null}), format!("{lacking}\"apiVer")),
        (json!({"op": "replace", "path": "", "value": {}}), format!("{lacking}}}'")),
        (
            json!({"op": "remove", "path": "/apiVersion"}),
            "/, Kind=Widget is unstructured and is not suitable for converting to \
             \"example.com/v1\""
                .to_owned(),
        ),
    ] {
        let told = patch.clone();
        serve_here(&api, move |_| patched(&json!([told])));
        let refused = api.post(WIDGETS, &widget("a", 1)).await.refused(500);
        assert!(message(&refused).starts_with(&start), "{patch}: {refused}");
    }
    api.get(&format!("{WIDGETS}/a")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn writers_that_meet_are_asked_about_again_and_lose_nothing() {
    let api = Api::start().await;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    // Every writer waits in the webhook, so that all of them read the same old object.
    let handler: steersman_apiserver::WebhookHandler =
        Arc::new(move |request: http::Request<Bytes>| {
            counted.fetch_add(1, Ordering::SeqCst);
            let review: Value = serde_json::from_slice(request.body()).unwrap();
            let mut response = set("/data/seen", &json!("yes"));
            response["uid"] = review["request"]["uid"].clone();
            let review = json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": response,
            });
            async move {
                let never = std::future::pending::<()>();
                let _ = tokio::time::timeout(Duration::from_millis(50), never).await;
                Response::new(Bytes::from(review.to_string()))
            }
            .boxed()
        });
    api.config_map("a", &json!({"k": "v"})).await;
    api.server.serve_webhooks("https://webhooks.test", handler);
    configure(&api, MUTATING, "a", &[webhook("seen")]).await;
    let path = format!("{CONFIG_MAPS}/a");
    let writes = (0..20).map(|i| {
        let (api, path) = (&api, &path);
        async move { api.merge(path, &json!({"data": {format!("k{i}"): "1"}})).await.ok() }
    });
    join_all(writes).await;
    let data = api.get(&path).await.ok()["data"].clone();
    assert_eq!(data.as_object().unwrap().len(), 22, "{data}");
    assert!(count.load(Ordering::SeqCst) > 20, "nobody was asked again");
}
