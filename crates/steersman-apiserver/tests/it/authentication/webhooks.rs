//! Tokens that a webhook knows.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response, header};
use serde_json::{Value, json};
use steersman_apiserver::Authentication;
use steersman_apiserver::authentication::{TokenReviewVersion, TokenWebhook, WebhookEndpoint};

use super::{ISSUER, Server};

const ORIGIN: &str = "https://whoami.test";

/// Knows the token of Ada, and notes what it is asked. It can be told what to answer.
#[derive(Clone, Default)]
struct Webhook {
    asked: Arc<Mutex<Vec<Value>>>,
    /// Codes that are answered first, one after the other.
    failing: Arc<Mutex<Vec<u16>>>,
    /// The status of every answer, if it is not what it should be.
    saying: Arc<Mutex<Option<Value>>>,
}

impl Webhook {
    fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let review: Value = serde_json::from_slice(request.body()).unwrap();
        self.asked.lock().unwrap().push(review.clone());
        if let Some(code) = self.failing.lock().unwrap().pop() {
            return Response::builder().status(code).body(Bytes::from("not now")).unwrap();
        }
        let said = self.saying.lock().unwrap().clone();
        let status = said.unwrap_or_else(|| match review["spec"]["token"].as_str() {
            Some("adas") => json!({"authenticated": true, "user": {
                "username": "ada", "uid": "42", "groups": ["looms"], "extra": {"floor": ["3"]},
            }}),
            Some("broken") => json!({"authenticated": false, "error": "the loom is broken"}),
            _ => json!({"authenticated": false}),
        });
        let kind = &review["kind"];
        let answer = json!({"apiVersion": review["apiVersion"], "kind": kind, "status": status});
        Response::new(Bytes::from(answer.to_string()))
    }

    fn asked(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    async fn serve(&self, change: impl FnOnce(&mut TokenWebhook)) -> Server {
        let mut settings = TokenWebhook::at(WebhookEndpoint::at(&format!("{ORIGIN}/whose")));
        change(&mut settings);
        let webhook = Some(settings);
        let server = Server::with(Authentication { webhook, ..Authentication::default() }).await;
        let own = self.clone();
        let handler = move |request: Request<Bytes>| {
            assert_eq!(request.uri().path(), "/whose");
            assert_eq!(request.headers()[header::CONTENT_TYPE], "application/json");
            let answer = own.answer(&request);
            async move { answer }.boxed()
        };
        server.api.server.serve_webhooks(ORIGIN, Arc::new(handler));
        server
    }
}

#[tokio::test]
async fn a_webhook_is_asked_whose_a_token_is_that_nobody_knows() {
    let webhook = Webhook::default();
    let server = webhook.serve(|_| {}).await;
    let ada = server.bearer("adas").await.unwrap();
    let expected = json!({
        "username": "ada", "uid": "42", "groups": ["looms", "system:authenticated"],
        "extra": {"floor": ["3"]},
    });
    assert_eq!(ada, expected);
    let question = json!({
        "apiVersion": "authentication.k8s.io/v1beta1", "kind": "TokenReview", "metadata": {},
        "spec": {"token": "adas", "audiences": [ISSUER]}, "status": {"user": {}},
    });
    assert_eq!(webhook.asked.lock().unwrap()[..], [question]);
    assert_eq!(server.refused("eves").await, "invalid bearer token");
    assert_eq!(server.refused("broken").await, "the loom is broken");
}

#[tokio::test]
async fn what_the_cluster_knows_itself_no_webhook_is_asked() {
    let webhook = Webhook::default();
    let server = webhook.serve(|_| {}).await;
    server.create(super::ACCOUNTS, super::named("web")).await;
    let token = server.request_token("web", json!({})).await;
    server.bearer(&token).await.unwrap();
    assert_eq!(webhook.asked(), 0);
    // One of another cluster, which calls itself as ours does.
    let elsewhere = Webhook::default().serve(|_| {}).await;
    elsewhere.create(super::ACCOUNTS, super::named("web")).await;
    let foreign = elsewhere.request_token("web", json!({})).await;
    let said = json!({"authenticated": true, "user": {"username": "web-of-another"}});
    *webhook.saying.lock().unwrap() = Some(said);
    let user = server.bearer(&foreign).await.unwrap();
    assert_eq!((&user["username"], webhook.asked()), (&json!("web-of-another"), 1));
}

#[tokio::test]
async fn the_version_is_the_one_that_was_chosen() {
    let webhook = Webhook::default();
    let server = webhook.serve(|settings| settings.version = TokenReviewVersion::V1).await;
    server.bearer("adas").await.unwrap();
    assert_eq!(webhook.asked.lock().unwrap()[0]["apiVersion"], "authentication.k8s.io/v1");
}

#[tokio::test]
async fn an_answer_counts_for_as_long_as_was_said() {
    let webhook = Webhook::default();
    let server = webhook.serve(|settings| settings.cache_ttl = Duration::from_secs(60)).await;
    for _ in 0..3 {
        server.bearer("adas").await.unwrap();
        server.refused("eves").await;
    }
    assert_eq!(webhook.asked(), 2);
    // What went wrong is not remembered.
    for _ in 0..2 {
        server.review("broken", &[]).await;
    }
    assert_eq!(webhook.asked(), 4);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    server.bearer("adas").await.unwrap();
    assert_eq!(webhook.asked(), 5);
    let never = Webhook::default();
    let server = never.serve(|settings| settings.cache_ttl = Duration::ZERO).await;
    server.bearer("adas").await.unwrap();
    server.bearer("adas").await.unwrap();
    assert_eq!(never.asked(), 2);
}

#[tokio::test]
async fn a_token_counts_for_the_audiences_that_both_name() {
    let webhook = Webhook::default();
    let server = webhook.serve(|_| {}).await;
    let known = server.review("adas", &[]).await;
    assert_eq!((&known["authenticated"], &known["audiences"]), (&json!(true), &json!([ISSUER])));
    let elsewhere = server.review("adas", &["vault"]).await;
    assert_eq!(elsewhere["error"], "invalid bearer token", "it named none, so it means the server");
    let said = json!({"authenticated": true, "audiences": ["vault", "bank"],
        "user": {"username": "ada"}});
    *webhook.saying.lock().unwrap() = Some(said);
    let vault = server.review("adas", &["mint", "vault"]).await;
    assert_eq!((&vault["authenticated"], &vault["audiences"]), (&json!(true), &json!(["vault"])));
}

#[tokio::test]
async fn a_webhook_that_has_too_much_to_do_is_asked_again_and_one_that_fails_is_not_believed() {
    let webhook = Webhook::default();
    let server = webhook.serve(|settings| settings.cache_ttl = Duration::ZERO).await;
    *webhook.failing.lock().unwrap() = vec![429, 500];
    assert_eq!(server.review("adas", &[]).await["authenticated"], true);
    assert_eq!(webhook.asked(), 3);
    *webhook.failing.lock().unwrap() = vec![403];
    let error = server.review("adas", &[]).await["error"].as_str().unwrap().to_owned();
    assert!(error.contains("not now"), "{error}");
    assert_eq!(webhook.asked(), 4, "it would say the same again");
    *webhook.saying.lock().unwrap() = Some(json!("yes"));
    assert_eq!(server.refused("adas").await, "invalid bearer token");
}
