//! What goes wrong is answered with the right Status, and nothing is stored.

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::json;

use crate::api::{Api, CONFIG_MAPS, names, pod};

async fn post(api: &Api, content_type: &str, body: impl Into<bytes::Bytes>) -> crate::api::Answer {
    let request = Request::builder()
        .method(Method::POST)
        .uri(CONFIG_MAPS)
        .header(header::CONTENT_TYPE, content_type);
    api.send(request.body(Full::new(body.into())).unwrap()).await
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_found() {
    let api = Api::start().await;
    let status = api.get(&format!("{CONFIG_MAPS}/a")).await.refused(404);
    assert_eq!(status["reason"], "NotFound");
    assert_eq!(status["message"], "configmaps \"a\" not found");
    assert_eq!(status["details"], json!({"name": "a", "kind": "configmaps"}));
    let status = api.get("/apis/apps/v1/namespaces/default/deployments/web").await.refused(404);
    assert_eq!(status["message"], "deployments.apps \"web\" not found");
    assert_eq!(status["details"]["group"], "apps");
}

/// What quotes the request must not be taken for a page. Kubernetes says so of what it refuses before
/// it looks at the object, and of nothing else.
#[tokio::test(start_paused = true)]
async fn who_may_not_is_told_so_in_what_no_browser_takes_for_a_page() {
    let api = Api::start().await;
    let sniffed = |answer: &crate::api::Answer| {
        answer.headers.get(header::X_CONTENT_TYPE_OPTIONS).is_none_or(|value| value != "nosniff")
    };
    let nobody = api.acting_as("jane", &[]);
    let refused = nobody.get("/api/v1/%3Cb%3E").await;
    assert_eq!(refused.code, 403);
    assert!(!sniffed(&refused), "{refused:?}");
    let acting = Request::builder().uri(CONFIG_MAPS).header("impersonate-user", "bob");
    let acting = nobody.send(acting.body(Full::default()).unwrap()).await;
    assert_eq!(acting.code, 403);
    assert!(!sniffed(&acting), "{acting:?}");
    assert!(sniffed(&api.get(CONFIG_MAPS).await));
    assert!(sniffed(&api.get(&format!("{CONFIG_MAPS}/a")).await));
}

#[tokio::test(start_paused = true)]
async fn events_of_either_group_are_invalid_as_those_of_the_core_group() {
    let api = Api::start().await;
    for path in ["/api/v1", "/apis/events.k8s.io/v1"] {
        let events = format!("{path}/namespaces/default/events");
        let status = api.post(&events, &json!({"metadata": {"name": "a/b"}})).await.refused(422);
        assert!(status["message"].as_str().unwrap().starts_with("Event \"a/b\" is invalid"));
        assert_eq!(status["details"]["kind"], "Event");
        assert!(status["details"].get("group").is_none(), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn paths_that_name_nothing_are_not_found() {
    let api = Api::start().await;
    api.get("/nothing").await.no_page();
    api.delete("/nothing").await.no_page();
    api.get("/apis/nothing").await.no_page();
    // Nobody knows the group: there is only the page that Kubernetes shows for every other path.
    for path in ["/apis/nothing.example.com/v1/things", "/apis/nothing.example.com/v1/things/a"] {
        api.get(path).await.no_page();
        api.post(path, &json!({})).await.no_page();
        api.acting_as("jane", &[]).get(path).await.refused(403);
    }
    for path in [
        "/api/v2",
        "/api/v2/pods",
        "/apis/apps/v2",
        "/version/nothing",
        "/api/v1/nothing",
        "/apis/apps/v1/pods",
        "/api/v1/namespaces/default/nodes",
        "/api/v1/pods/x",
        "/api/v1/nodes/a/b/c",
        "/api/v1/namespaces/default/pods/x/nothing",
        "/api/v1/namespaces/default/pods/a%2Fb",
    ] {
        let status = api.get(path).await.refused(404);
        assert_eq!(status["message"], "the server could not find the requested resource", "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn verbs_that_a_resource_does_not_know_are_not_allowed() {
    let api = Api::start().await;
    let status = api.put(CONFIG_MAPS, &json!({})).await.refused(405);
    assert_eq!(
        status["message"],
        "the server does not allow this method on the requested resource"
    );
    assert_eq!(status["reason"], "MethodNotAllowed");
    api.post("/api/v1/pods", &pod("p")).await.refused(405);
    api.delete("/api/v1/namespaces").await.refused(405);
    api.get("/apis/authentication.k8s.io/v1/selfsubjectreviews").await.refused(405);
    api.post("/version", &json!({})).await.refused(405);
}

#[tokio::test(start_paused = true)]
async fn broken_bodies_are_bad_requests() {
    let api = Api::start().await;
    for body in [
        "",
        "{",
        "[]",
        "\"text\"",
        "{\"metadata\": 1}",
        "{\"metadata\": {\"name\": 5}}",
        "{\"metadata\": {\"name\": \"a\", \"labels\": {\"a\": 1}}}",
        "{\"kind\": \"Secret\", \"metadata\": {\"name\": \"a\"}}",
        "{\"apiVersion\": \"v2\", \"metadata\": {\"name\": \"a\"}}",
    ] {
        let status = post(&api, "application/json", body).await.refused(400);
        assert_eq!(status["reason"], "BadRequest", "{body}");
    }
    // Nothing is an object without fields.
    let status = post(&api, "application/json", "null").await.refused(422);
    assert_eq!(status["details"]["causes"][0]["field"], "metadata.name");
    post(&api, "application/json", vec![b'{', 0xff, 0xfe, b'}']).await.refused(400);
    post(&api, "application/json", "[".repeat(100_000)).await.refused(400);
    post(&api, "application/yaml", "a: [").await.refused(400);
    post(&api, "application/vnd.kubernetes.protobuf", "k8s\0").await.refused(415);
    post(&api, "application/vnd.kubernetes.protobuf", "protobuf").await.refused(400);
    post(&api, "application/cbor", "x").await.refused(415);
    post(&api, "text/plain", "{}").await.refused(415);
    assert!(names(&api.get(CONFIG_MAPS).await.ok()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_body_above_the_limit_is_too_large() {
    let api = Api::start().await;
    let body = format!("{{\"data\": {{\"k\": \"{}\"}}}}", "x".repeat(3 * 1024 * 1024));
    let status = post(&api, "application/json", body).await.refused(413);
    assert_eq!(status["reason"], "RequestEntityTooLarge");
    assert_eq!(status["message"], "Request entity too large: limit is 3145728");
}

#[tokio::test(start_paused = true)]
async fn an_object_made_too_deep_by_patches_is_refused() {
    let api = Api::start().await;
    let mut deep = json!("bottom");
    for _ in 0..110 {
        deep = json!({"a": deep});
    }
    let path = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let object = json!({"metadata": {"name": "r"}, "revision": 1, "data": deep});
    assert_eq!(api.post(path, &object).await.refused(400)["reason"], "BadRequest");
}

#[tokio::test(start_paused = true)]
async fn yaml_can_be_posted() {
    let api = Api::start().await;
    let answer = post(&api, "application/yaml", "metadata:\n  name: a\ndata:\n  k: v\n").await;
    assert_eq!(answer.ok()["data"]["k"], "v");
}

#[tokio::test(start_paused = true)]
async fn options_of_reads_that_are_gone_or_empty_are_refused() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let one = format!("{CONFIG_MAPS}/a");
    let gone = "the export parameter, deprecated since v1.14, is no longer supported";
    let empty = r#"strconv.ParseInt: parsing "": invalid syntax"#;
    for (path, expected) in [
        (format!("{one}?export=true"), gone),
        (format!("{one}?export"), gone),
        (format!("{CONFIG_MAPS}?limit="), empty),
        (format!("{CONFIG_MAPS}?watch=true&timeoutSeconds="), empty),
    ] {
        let status = api.get(&path).await.refused(400);
        assert_eq!(status["message"], expected, "{path}");
    }
    api.get(&format!("{one}?export=false")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_timeout_that_is_no_duration_is_refused_on_every_path_but_a_watch() {
    let api = Api::start().await;
    for path in ["/version", "/healthz", "/api/v1", "/openapi/v3", "/nowhere", CONFIG_MAPS] {
        let status = api.get(&format!("{path}?timeout=invalid")).await.refused(400);
        assert_eq!(status["reason"], "BadRequest");
        assert_eq!(
            status["message"],
            "invalid timeout specified in the request URL - time: invalid duration \"invalid\"",
            "{path}"
        );
    }
    api.watch(&format!("{CONFIG_MAPS}?watch=1&timeout=invalid")).await;
    api.watch("/api/v1/watch/configmaps?timeout=invalid").await;
}

#[tokio::test(start_paused = true)]
async fn a_path_that_names_nothing_is_told_before_what_is_wrong_with_the_request() {
    let api = Api::start().await;
    for path in ["/apis/odd/v1", "//api/v1/pods", "/healthz/", "/metrics/"] {
        api.get(path).await.no_page();
    }
    api.delete("/apis/odd/v1").await.no_page();
    api.post("/apis/apps/v1/odds/x", &json!({})).await.refused(404);
    api.get("/api/v1/namespaces//pods").await.ok();
    let status = api.get("/api/v1/namespaces//pods/x").await.refused(400);
    assert_eq!(status["message"], "Namespace parameter required.");
}

#[tokio::test(start_paused = true)]
async fn a_body_of_another_kind_is_named_by_what_it_is() {
    let api = Api::start().await;
    api.post(CONFIG_MAPS.replace("configmaps", "pods").as_str(), &pod("p")).await.ok();
    let eviction = "/api/v1/namespaces/default/pods/p/eviction";
    let status = api.post(eviction, &pod("p")).await.refused(400);
    assert_eq!(
        status["message"],
        "Pod in version \"v1\" cannot be handled as a Eviction: converting (v1.Pod) to \
         (policy.Eviction): unknown conversion"
    );
    let old =
        json!({"kind": "Eviction", "apiVersion": "policy/v1beta1", "metadata": {"name": "p"}});
    api.post(&format!("{eviction}?dryRun=All"), &old).await.ok();
    let elsewhere = json!({"metadata": {"name": "p", "namespace": "other"}});
    let status = api.post(eviction, &elsewhere).await.refused(400);
    assert_eq!(
        status["message"],
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let token = "/api/v1/namespaces/default/serviceaccounts/missing/token";
    let odd = json!({"kind": "TokenRequest", "apiVersion": "v1"});
    let status = api.post(token, &odd).await.refused(400);
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("no kind \"TokenRequest\" is registered for version \"v1\""));
}

#[tokio::test(start_paused = true)]
async fn a_review_has_no_metadata() {
    let api = Api::start().await;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let spec = json!({"resourceAttributes": {"verb": "get", "resource": "pods"}});
    let made = api.post(reviews, &json!({"spec": spec})).await.ok();
    assert_eq!(made["metadata"]["managedFields"][0]["operation"], "Update");
    let system = json!({"metadata": {"uid": "x", "namespace": "default"}, "spec": spec});
    assert_eq!(api.post(reviews, &system).await.ok()["metadata"].get("uid"), None);
    let named = json!({"metadata": {"name": "x"}, "spec": spec});
    let status = api.post(reviews, &named).await.refused(422);
    let message = status["message"].as_str().unwrap();
    assert!(message.ends_with("must be empty"), "{message}");
}
