//! Tokens whose account, or what they are bound to, is gone or another one.

use serde_json::{Value, json};

use super::{ACCOUNTS, NODES, PODS, SECRETS, Server, named};

const INVALIDATED: &str = "service account token has been invalidated";

fn pod() -> Value {
    json!({
        "metadata": {"name": "bound"},
        "spec": {"serviceAccountName": "robot", "nodeName": "n1",
            "containers": [{"name": "web", "image": "nginx"}]},
    })
}

async fn start() -> Server {
    let server = Server::start().await;
    server.create(ACCOUNTS, named("robot")).await;
    server.create(NODES, named("n1")).await;
    server
}

/// Creates what a token can be bound to, with the spec of a token that is bound to it.
async fn bound(server: &Server, kind: &str) -> (String, Value, Value) {
    let (path, object) = match kind {
        "Pod" => (PODS, pod()),
        "Node" => (NODES, named("bound")),
        _ => (SECRETS, named("bound")),
    };
    let made = server.create(path, object.clone()).await;
    let uid = &made["metadata"]["uid"];
    let reference = json!({"apiVersion": "v1", "kind": kind, "name": "bound", "uid": uid});
    (path.to_owned(), object, json!({"boundObjectRef": reference}))
}

#[tokio::test]
async fn a_bound_token_ends_with_its_object_and_is_not_taken_over_by_the_next() {
    for kind in ["Pod", "Node", "Secret"] {
        let server = start().await;
        let (path, object, spec) = bound(&server, kind).await;
        let token = server.request_token("robot", spec).await;
        let user = server.bearer(&token).await.unwrap();
        assert_eq!(user["username"], "system:serviceaccount:default:robot", "{kind}");
        let extra =
            |key: &str| user["extra"][format!("authentication.kubernetes.io/{key}")].clone();
        let expected = match kind {
            "Pod" => [json!(["bound"]), json!(["n1"])],
            "Node" => [json!(null), json!(["bound"])],
            _ => [json!(null), json!(null)],
        };
        assert_eq!([extra("pod-name"), extra("node-name")], expected, "{kind}");

        server.api.delete(&format!("{path}/bound?gracePeriodSeconds=0")).await.ok();
        assert_eq!(server.refused(&token).await, INVALIDATED, "{kind}");
        let new = server.create(&path, object).await;
        let why = server.refused(&token).await;
        let uid = new["metadata"]["uid"].as_str().unwrap();
        let kind = kind.to_lowercase();
        let expected =
            format!("{kind} UID ({uid}) does not match service account {kind} ref claim (");
        assert!(why.starts_with(&expected), "{why}");
    }
}

#[tokio::test]
async fn an_object_that_is_due_to_end_counts_for_a_minute_more() {
    let server = start().await;
    let (path, _, spec) = bound(&server, "Secret").await;
    let token = server.request_token("robot", spec).await;
    let finalizer = json!({"metadata": {"finalizers": ["test.dev/wait"]}});
    server.api.merge(&format!("{path}/bound"), &finalizer).await.ok();
    server.api.delete(&format!("{path}/bound")).await.ok();
    server.seconds_pass(60);
    assert!(server.bearer(&token).await.is_ok());
    server.seconds_pass(1);
    assert_eq!(server.refused(&token).await, INVALIDATED);
}

#[tokio::test]
async fn the_node_of_a_bound_pod_is_only_told() {
    let server = start().await;
    let (_, _, spec) = bound(&server, "Pod").await;
    let token = server.request_token("robot", spec).await;
    server.api.delete(&format!("{NODES}/n1")).await.ok();
    let user = server.bearer(&token).await.unwrap();
    assert_eq!(user["extra"]["authentication.kubernetes.io/node-name"], json!(["n1"]));
}

#[tokio::test]
async fn a_token_ends_with_its_account_and_is_not_taken_over_by_the_next() {
    let server = start().await;
    let token = server.request_token("robot", json!({})).await;
    assert!(server.bearer(&token).await.is_ok());
    server.api.delete(&format!("{ACCOUNTS}/robot")).await.ok();
    assert_eq!(server.refused(&token).await, "serviceaccounts \"robot\" not found");
    let new = server.create(ACCOUNTS, named("robot")).await;
    let uid = new["metadata"]["uid"].as_str().unwrap();
    let expected = format!("service account UID ({uid}) does not match claim (");
    assert!(server.refused(&token).await.starts_with(&expected));

    let token = server.request_token("robot", json!({})).await;
    let finalizer = json!({"metadata": {"finalizers": ["test.dev/wait"]}});
    server.api.merge(&format!("{ACCOUNTS}/robot"), &finalizer).await.ok();
    server.api.delete(&format!("{ACCOUNTS}/robot")).await.ok();
    server.seconds_pass(61);
    let why = server.refused(&token).await;
    assert_eq!(why, "service account default/robot has been deleted");
}

#[tokio::test]
async fn what_kubelets_ask_for_lasts_a_year() {
    let server = start().await;
    let (_, _, spec) = bound(&server, "Pod").await;
    let token_of = |seconds: i64, audiences: Value| {
        let mut spec = spec.clone();
        spec["expirationSeconds"] = seconds.into();
        spec["audiences"] = audiences;
        spec
    };
    let extended = server.request_token("robot", token_of(3607, json!([]))).await;
    let [_, claims] = super::jwt::parts(&extended);
    let now = server.now();
    assert_eq!(claims["exp"], now + 365 * 24 * 3600);
    assert_eq!(claims["kubernetes.io"]["warnafter"], now + 3607);
    let plain = server.request_token("robot", token_of(3608, json!([]))).await;
    let elsewhere = server.request_token("robot", token_of(3607, json!(["vault"]))).await;
    for token in [&plain, &elsewhere] {
        let [_, claims] = super::jwt::parts(token);
        assert_eq!(claims["kubernetes.io"].get("warnafter"), None);
    }
    // It is stale from then on, and still good.
    server.seconds_pass(3607 + 3600);
    assert!(server.bearer(&extended).await.is_ok());
    let metrics = server.api.get("/metrics").await;
    let metrics = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    assert!(metrics.contains("\nserviceaccount_stale_tokens_total 1\n"), "{metrics}");
    assert_eq!(server.refused(&plain).await, "service account token has expired");
    server.seconds_pass(365 * 24 * 3600);
    assert_eq!(server.refused(&extended).await, "service account token has expired");
}
