//! Whose a token is.

use bytes::Bytes;
use http::{Request, header};
use k8s_openapi::api::authentication::v1::{TokenReviewSpec, UserInfo};
use serde_json::{Value, json};

use super::read;
use crate::Metrics;
use crate::serve;
use crate::webhook::{AdmissionRequest, AdmissionResponse, Authentication, WebhookServer};

const WHOSE: &str = "/whose";

/// Ada's token counts for one audience; one makes this panic; all others are unknown.
async fn whose(asked: TokenReviewSpec) -> Authentication {
    let token = asked.token;
    assert_ne!(token, "panic", "as it was told");
    if token != "adas" {
        return Authentication::unknown("nobody has this token");
    }
    let ada = UserInfo {
        username: Some("ada".into()),
        uid: Some("42".into()),
        groups: Some(vec!["engineers".into()]),
        extra: Some([("floor".to_owned(), vec!["3".to_owned()])].into()),
    };
    let wanted = asked.audiences.unwrap_or_default();
    Authentication::of(ada).for_audiences(wanted.into_iter().filter(|one| one == "looms"))
}

fn server() -> WebhookServer {
    let server = WebhookServer::builder("whoami").authenticates(WHOSE, whose);
    server.in_process().build().unwrap()
}

fn review(spec: &Value) -> Value {
    json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": spec})
}

fn post(media_type: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    let request = Request::post(WHOSE).header(header::CONTENT_TYPE, media_type);
    request.body(body.into()).unwrap()
}

async fn answer(request: Request<Bytes>) -> Value {
    let response = serve::call(&server().handler(), request).await;
    assert_eq!(response.status(), 200);
    read(&response)
}

async fn asked(review: &Value) -> Value {
    answer(post("application/json", review.to_string())).await
}

#[tokio::test]
async fn whose_a_token_is_the_author_says() {
    let spec = json!({"token": "adas", "audiences": ["looms", "mills"]});
    let known = asked(&review(&spec)).await;
    assert_eq!(
        known,
        json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "status": {
                "authenticated": true,
                "audiences": ["looms"],
                "user": {
                    "username": "ada", "uid": "42", "groups": ["engineers"],
                    "extra": {"floor": ["3"]},
                },
            },
        })
    );
    let unknown = asked(&review(&json!({"token": "eves"}))).await;
    let status = json!({"authenticated": false, "error": "nobody has this token"});
    assert_eq!(unknown["status"], status);
}

#[tokio::test]
async fn the_version_that_is_spoken_is_answered() {
    let mut review = review(&json!({"token": "adas"}));
    review["apiVersion"] = json!("authentication.k8s.io/v1beta1");
    let answer = asked(&review).await;
    assert_eq!(answer["apiVersion"], "authentication.k8s.io/v1beta1");
    assert_eq!(answer["status"]["authenticated"], true);
}

#[tokio::test]
async fn a_review_that_makes_no_sense_is_answered_without_its_token() {
    let good = review(&json!({"token": "adas"}));
    let with = |field: &str, value: Value| {
        let mut review = good.clone();
        review[field] = value;
        review.to_string()
    };
    for (media_type, body, expected) in [
        ("application/json", String::new(), "the request has no body"),
        ("application/json", " ".repeat(1024 * 1024 + 1), "larger than 1048576 bytes"),
        ("text/plain", good.to_string(), "expected application/json"),
        ("application/json", with("spec", json!("adas")), "cannot decode the TokenReview, at"),
        ("application/json", with("kind", json!("Pod")), "expected a TokenReview of"),
        ("application/json", with("apiVersion", json!("v2")), "--authentication-token-webhook-ver"),
        ("application/json", with("spec", json!({})), "the token is empty"),
        ("application/json", with("spec", json!({"token": ""})), "the token is empty"),
        ("application/json", with("spec", json!({"token": "panic"})), "panic: assertion"),
    ] {
        let answer = answer(post(media_type, body)).await;
        assert_eq!(answer["apiVersion"], "authentication.k8s.io/v1");
        assert_eq!(answer["status"]["authenticated"], false);
        let error = answer["status"]["error"].as_str().unwrap();
        assert!(error.contains(expected), "{error:?} should contain {expected:?}");
        assert!(!answer.to_string().contains("adas"), "{answer}");
    }
}

#[tokio::test]
async fn a_panic_is_counted_and_reviews_as_well() {
    let server = server();
    let metrics = Metrics::default();
    server.register_metrics(&metrics);
    for token in ["adas", "panic"] {
        let review = review(&json!({"token": token})).to_string();
        serve::call(&server.handler(), post("application/json", review)).await;
    }
    let text = metrics.render();
    for line in [
        r#"controller_runtime_webhook_requests_total{webhook="/whose",code="200"} 2"#,
        "controller_runtime_webhook_panics_total 1",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn a_path_has_one_purpose() {
    let admits = async |_: AdmissionRequest| AdmissionResponse::allowed();
    let builder = || WebhookServer::builder("whoami").in_process();
    for both in [
        builder().authenticates(WHOSE, whose).handle(WHOSE, admits),
        builder().handle(WHOSE, admits).authenticates(WHOSE, whose),
        builder().authenticates(WHOSE, whose).authenticates(WHOSE, whose),
    ] {
        let error = both.build().err().unwrap().to_string();
        assert!(error.contains("/whose serves only one of"), "{error}");
    }
}
