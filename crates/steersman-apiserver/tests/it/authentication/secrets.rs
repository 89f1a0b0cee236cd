//! Tokens that lie in Secrets and never expire.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{Request, header};
use http_body_util::Full;
use serde_json::{Value, json};
use steersman_apiserver::audit::{AuditRecord, Auditing, Level, Policy};
use steersman_apiserver::{SecretToken, sign_for_secret};

use super::jwt::{Key, parts};
use super::{ACCOUNTS, Caller, SECRETS, SELF, Server, named};

/// A server with an account `robot` and a Secret that holds a token of it, which comes with it.
async fn start() -> (Server, String) {
    let server = Server::start().await;
    let account = server.create(ACCOUNTS, named("robot")).await;
    let token = sign(&server, &account);
    server.create(SECRETS, secret(&token)).await;
    (server, token)
}

fn sign(server: &Server, account: &Value) -> String {
    let token = SecretToken {
        namespace: "default",
        secret: "robot-token",
        account: "robot",
        account_uid: account["metadata"]["uid"].as_str().unwrap(),
    };
    sign_for_secret(&server.identity, token).unwrap()
}

fn secret(token: &str) -> Value {
    json!({
        "metadata": {"name": "robot-token",
            "annotations": {"kubernetes.io/service-account.name": "robot"}},
        "type": "kubernetes.io/service-account-token",
        "data": {"token": STANDARD.encode(token)},
    })
}

#[tokio::test]
async fn a_token_in_a_secret_is_its_account_for_ever() {
    let (server, token) = start().await;
    let [_, claims] = parts(&token);
    assert_eq!(claims["iss"], "kubernetes/serviceaccount");
    assert_eq!(claims["kubernetes.io/serviceaccount/secret.name"], "robot-token");
    assert_eq!((claims.get("exp"), claims.get("aud")), (None, None));
    server.seconds_pass(10 * 365 * 24 * 3600);
    let user = server.bearer(&token).await.unwrap();
    assert_eq!(user["username"], "system:serviceaccount:default:robot");
    assert_eq!(
        user["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    assert_eq!(user.get("extra"), None);
    assert_eq!(server.review(&token, &["vault"]).await.get("authenticated"), None);
}

#[tokio::test]
async fn the_secret_tells_on_which_day_its_token_was_used_last() {
    let (server, token) = start().await;
    let path = format!("{SECRETS}/robot-token");
    let mut versions = Vec::new();
    for (seconds, day) in [(0, "2025-01-01"), (3600, "2025-01-01"), (24 * 3600, "2025-01-02")] {
        server.seconds_pass(seconds);
        server.bearer(&token).await.unwrap();
        let secret = server.api.get(&path).await.ok();
        assert_eq!(secret["metadata"]["labels"]["kubernetes.io/legacy-token-last-used"], day);
        versions.push(secret["metadata"]["resourceVersion"].clone());
    }
    assert_eq!(versions[0], versions[1], "written once a day");
}

#[tokio::test]
async fn a_token_in_a_secret_ends_with_it_and_with_its_account() {
    let (server, token) = start().await;
    let path = format!("{SECRETS}/robot-token");
    assert!(server.bearer(&token).await.is_ok());
    let other = json!({"data": {"token": STANDARD.encode("another")}});
    server.api.merge(&path, &other).await.ok();
    assert_eq!(server.refused(&token).await, "Token does not match server's copy");
    server.api.delete(&path).await.ok();
    assert_eq!(server.refused(&token).await, "Token has been invalidated");
    server.create(SECRETS, secret(&token)).await;
    assert!(server.bearer(&token).await.is_ok());

    server.api.delete(&format!("{ACCOUNTS}/robot")).await.ok();
    assert_eq!(server.refused(&token).await, "serviceaccounts \"robot\" not found");
    let new = server.create(ACCOUNTS, named("robot")).await;
    let uid = new["metadata"]["uid"].as_str().unwrap();
    let why = server.refused(&token).await;
    assert!(
        why.starts_with(&format!("ServiceAccount UID ({uid}) does not match claim (")),
        "{why}"
    );

    let mark = json!({"metadata": {"finalizers": ["test.dev/wait"]}});
    server.api.merge(&path, &mark).await.ok();
    server.api.delete(&path).await.ok();
    assert_eq!(server.refused(&token).await, "Token has been invalidated");
}

#[tokio::test]
async fn a_token_that_was_marked_invalid_or_generated_is_told_so() {
    let (server, token) = start().await;
    let listed = json!({"secrets": [{"name": "robot-token"}]});
    server.api.merge(&format!("{ACCOUNTS}/robot"), &listed).await.ok();
    let bearer = format!("Bearer {token}");
    let caller = Caller { headers: &[("authorization", &bearer)], ..Caller::default() };
    let request = caller.asks(Request::post(SELF)).body(Full::new("{}".into())).unwrap();
    let (_, headers, _) = server.send(caller, request).await;
    let warning = headers[header::WARNING].to_str().unwrap();
    assert!(warning.contains("instead of auto-generated secret-based tokens."), "{warning}");

    let label = "kubernetes.io/legacy-token-invalid-since";
    let mark = json!({"metadata": {"labels": {label: "2025-01-01"}}});
    server.api.merge(&format!("{SECRETS}/robot-token"), &mark).await.ok();
    let why = server.refused(&token).await;
    let expected = "the token in secret default/robot-token for service account default/robot has \
                    been marked invalid.";
    assert!(why.starts_with(expected), "{why}");
}

#[tokio::test]
async fn the_use_of_a_token_in_a_secret_is_audited_and_counted() {
    let (server, token) = start().await;
    let record = AuditRecord::default();
    server.api.server.audit(Auditing::new(Policy::of_all(Level::Metadata)).recorded(&record));
    server.bearer(&token).await.unwrap();
    let listed = json!({"secrets": [{"name": "robot-token"}]});
    server.api.merge(&format!("{ACCOUNTS}/robot"), &listed).await.ok();
    server.bearer(&token).await.unwrap();
    let robot = "system:serviceaccount:default:robot";
    let is_use =
        |event: &Value| event["user"]["username"] == robot && event["stage"] == "ResponseComplete";
    let uses: Vec<Value> = record.documents().into_iter().filter(is_use).collect();
    assert_eq!(uses.len(), 2, "{uses:?}");
    for (used, sort) in uses.iter().zip(["manual-secret", "autogenerated-secret"]) {
        let told = |key: &str| used["annotations"][format!("authentication.k8s.io/{key}")].clone();
        assert_eq!(told("legacy-token"), robot);
        assert_eq!(told(&format!("legacy-token-{sort}")), "robot-token");
    }
    let metrics = server.api.get("/metrics").await;
    let metrics = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    for line in ["legacy_tokens_total 2", "legacy_manual_token_uses_total 1"] {
        assert!(metrics.contains(&format!("\nserviceaccount_{line}\n")), "{line}\n{metrics}");
    }
}

#[tokio::test]
async fn claims_that_do_not_fit_together_are_refused() {
    let (server, token) = start().await;
    let key = Key::of_pkcs8(server.identity.signing_key().unwrap().to_pkcs8());
    let [header, claims] = parts(&token);
    let of = |field: &str| format!("kubernetes.io/serviceaccount/{field}");
    for (field, value, expected) in [
        ("sub".to_owned(), "", "sub claim is missing"),
        ("sub".to_owned(), "system:serviceaccount:default:admin", "sub claim is invalid"),
        ("sub".to_owned(), "jane", "sub claim is invalid"),
        (of("namespace"), "", "namespace claim is missing"),
        (of("namespace"), "kube-system", "sub claim is invalid"),
        (of("secret.name"), "", "secretName claim is missing"),
        (of("secret.name"), "other", "Token has been invalidated"),
        (of("service-account.name"), "", "serviceAccountName claim is missing"),
        (of("service-account.uid"), "", "serviceAccountUID claim is missing"),
    ] {
        let mut claims = claims.clone();
        claims[&field] = value.into();
        assert_eq!(server.refused(&key.token(&header, &claims)).await, expected, "{field}");
    }
    // Signed a second time, the same claims are another token, which no Secret holds.
    let again = key.token(&header, &claims);
    assert_eq!(server.refused(&again).await, "Token does not match server's copy");
    let forged = Key::p256().token(&header, &claims);
    assert_eq!(server.refused(&forged).await, "go-jose/go-jose: error in cryptographic primitive");
}
