//! Bootstrap tokens.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use steersman_apiserver::Authentication;

use super::Server;

const TOKEN: &str = "abcdef.0123456789abcdef";
const SECRETS: &str = "/api/v1/namespaces/kube-system/secrets";

fn secret() -> Value {
    json!({
        "metadata": {"name": "bootstrap-token-abcdef"},
        "type": "bootstrap.kubernetes.io/token",
        "stringData": {
            "token-id": "abcdef", "token-secret": "0123456789abcdef",
            "usage-bootstrap-authentication": "true",
            "expiration": "2025-01-02T00:00:00Z",
            "auth-extra-groups": "system:bootstrappers:workers,system:bootstrappers:a",
        },
    })
}

async fn start(bootstrap_tokens: bool) -> Server {
    Server::with(Authentication { bootstrap_tokens, ..Authentication::default() }).await
}

#[tokio::test]
async fn a_bootstrap_token_is_a_user_until_it_expires() {
    let server = start(true).await;
    server.create(SECRETS, secret()).await;
    let user = server.bearer(TOKEN).await.unwrap();
    let groups = [
        "system:bootstrappers",
        "system:bootstrappers:a",
        "system:bootstrappers:workers",
        "system:authenticated",
    ];
    assert_eq!(user, json!({"username": "system:bootstrap:abcdef", "groups": groups}));
    for guess in ["abcdef.0123456789abcdeg", "abcdeg.0123456789abcdef", "abcdef.", "abcdef"] {
        assert_eq!(server.refused(guess).await, "invalid bearer token");
    }
    server.seconds_pass(24 * 3600 - 1);
    assert!(server.bearer(TOKEN).await.is_ok());
    server.seconds_pass(1);
    assert_eq!(server.refused(TOKEN).await, "invalid bearer token");
}

#[tokio::test]
async fn a_secret_that_is_not_quite_one_is_none() {
    let server = start(true).await;
    server.create(SECRETS, secret()).await;
    let path = format!("{SECRETS}/bootstrap-token-abcdef");
    let data = |key: &str, value: &str| json!({"data": {key: STANDARD.encode(value)}});
    for (key, wrong) in [
        ("token-secret", "0123456789abcdee"),
        ("token-id", "abcdee"),
        ("usage-bootstrap-authentication", "True"),
        ("usage-bootstrap-authentication", ""),
        ("expiration", "tomorrow"),
        ("expiration", "2024-12-31T23:59:59Z"),
        ("auth-extra-groups", "system:masters"),
        ("auth-extra-groups", "system:bootstrappers:a,"),
    ] {
        let right = server.api.get(&path).await.ok()["data"][key].clone();
        server.api.merge(&path, &data(key, wrong)).await.ok();
        assert_eq!(server.refused(TOKEN).await, "invalid bearer token", "{key} {wrong}");
        server.api.merge(&path, &json!({"data": {key: right}})).await.ok();
        assert!(server.bearer(TOKEN).await.is_ok(), "{key}");
    }
    let mark = json!({"metadata": {"finalizers": ["test.dev/wait"]}});
    server.api.merge(&path, &mark).await.ok();
    server.api.delete(&path).await.ok();
    assert_eq!(server.refused(TOKEN).await, "invalid bearer token");
    server.api.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
    let mut other = secret();
    other["type"] = "Opaque".into();
    server.create(SECRETS, other).await;
    assert_eq!(server.refused(TOKEN).await, "invalid bearer token");
}

#[tokio::test]
async fn bootstrap_tokens_are_off_unless_switched_on_and_only_of_the_system() {
    let server = start(false).await;
    server.create(SECRETS, secret()).await;
    assert_eq!(server.refused(TOKEN).await, "invalid bearer token");
    let server = start(true).await;
    server.create("/api/v1/namespaces/default/secrets", secret()).await;
    assert_eq!(server.refused(TOKEN).await, "invalid bearer token");
}
