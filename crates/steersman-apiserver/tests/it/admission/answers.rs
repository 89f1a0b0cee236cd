//! What webhooks answer, and what becomes of those that do not.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::Response;
use serde_json::json;
use tokio::time::Instant;

use crate::api::{Api, CONFIG_MAPS, config_map};
use crate::webhooks::{
    MUTATING, VALIDATING, allowed, configure, denied, message, patched, serve_here, warnings,
    webhook, webhook_with,
};

#[tokio::test(start_paused = true)]
async fn a_refusal_is_told_with_code_reason_message_and_details() {
    let api = Api::start().await;
    serve_here(&api, |request| match request["name"].as_str() {
        Some("why") => denied(&json!({
            "code": 409, "reason": "Conflict", "message": "not today",
            "details": {"causes": [{"reason": "Because", "message": "m", "field": "data"}]},
        })),
        Some("reason") => denied(&json!({"reason": "Forbidden", "code": 200})),
        Some("silent") => json!({"allowed": false}),
        _ => allowed(),
    });
    configure(&api, VALIDATING, "a", &[webhook("judge")]).await;
    let create = async |name: &str| api.post(CONFIG_MAPS, &config_map(name, &json!({}))).await;
    let refused = create("why").await.refused(409);
    assert_eq!(
        message(&refused),
        "admission webhook \"judge.example.com\" denied the request: not today"
    );
    assert_eq!(refused["reason"], "Conflict");
    assert_eq!(refused["details"]["causes"][0]["field"], "data");
    let refused = create("reason").await.refused(400);
    assert_eq!(
        message(&refused),
        "admission webhook \"judge.example.com\" denied the request: Forbidden"
    );
    let refused = create("silent").await.refused(400);
    assert_eq!(
        message(&refused),
        "admission webhook \"judge.example.com\" denied the request without explanation"
    );
    create("fine").await.ok();
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/why")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn warnings_reach_the_client_whatever_the_answer() {
    let api = Api::start().await;
    serve_here(
        &api,
        |request| json!({"allowed": request["name"] == "a", "warnings": ["mind \"this\"", "and that"]}),
    );
    configure(&api, VALIDATING, "a", &[webhook("warner")]).await;
    for (name, code) in [("a", 201), ("b", 400)] {
        let answer = api.post(CONFIG_MAPS, &config_map(name, &json!({}))).await;
        assert_eq!(answer.code, code);
        assert_eq!(warnings(&answer), [r#"299 - "mind \"this\"""#, r#"299 - "and that""#]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_fails_stops_the_request_or_is_passed_over_as_its_policy_says() {
    let api = Api::start().await;
    let broken = |status: u16, body: &'static str| {
        let answer = move || Response::builder().status(status).body(Bytes::from(body)).unwrap();
        let handler: steersman_apiserver::WebhookHandler =
            Arc::new(move |_| async move { answer() }.boxed());
        handler
    };
    configure(&api, VALIDATING, "a", &[webhook("broken")]).await;
    let create = async || api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await;
    for (status, body, why) in [
        (
            500,
            "boom",
            "an error on the server (\"boom\") has prevented the request from succeeding",
        ),
        (404, "", "the server could not find the requested resource"),
        (200, "{", "couldn't get version/kind; json parse error"),
    ] {
        api.server.serve_webhooks("https://webhooks.test", broken(status, body));
        let refused = create().await.refused(500);
        let start = format!(
            "Internal error occurred: failed calling webhook \"broken.example.com\": failed to \
             call webhook: {why}"
        );
        assert!(message(&refused).starts_with(&start), "{refused}");
    }
    api.server.serve_webhooks("https://webhooks.test", Arc::new(|_| panic!("oh")));
    let refused = create().await.refused(500);
    assert!(
        message(&refused).ends_with("Post \"https://webhooks.test/broken?timeout=10s\": EOF"),
        "{refused}"
    );
    api.merge(
        &format!("{VALIDATING}/a"),
        &json!({"webhooks": [
            webhook_with("broken", &json!({"failurePolicy": "Ignore"})),
        ]}),
    )
    .await
    .ok();
    create().await.ok();
}

#[tokio::test(start_paused = true)]
async fn what_webhooks_answer_is_counted_by_what_comes_of_it() {
    let api = Api::start().await;
    serve_here(&api, |request| match request["name"].as_str() {
        Some("denied") => denied(&json!({"code": 409})),
        Some("broken") => patched(&json!([{"op": "remove", "path": "/nothing"}])),
        _ => allowed(),
    });
    configure(&api, MUTATING, "m", &[webhook("m")]).await;
    let create = async |name: &str| api.post(CONFIG_MAPS, &config_map(name, &json!({}))).await;
    create("denied").await.refused(409);
    create("broken").await.refused(500);
    create("fine").await.ok();
    api.delete(&format!("{MUTATING}/m")).await.ok();
    configure(&api, VALIDATING, "v", &[webhook("v")]).await;
    create("other").await.ok();
    let down = || Response::builder().status(502).body(Bytes::new()).unwrap();
    let handler: steersman_apiserver::WebhookHandler =
        Arc::new(move |_| async move { down() }.boxed());
    api.server.serve_webhooks("https://webhooks.test", handler);
    create("down").await.refused(500);
    let ignored = webhook_with("v", &json!({"failurePolicy": "Ignore"}));
    api.merge(&format!("{VALIDATING}/v"), &json!({"webhooks": [ignored]})).await.ok();
    create("down").await.ok();
    let metrics = api.get("/metrics").await;
    let metrics = String::from_utf8(metrics.bytes.to_vec()).unwrap();
    let of = |name: &str| format!("name=\"{name}.example.com\",operation=\"CREATE\"");
    let (m, v) = (of("m"), of("v"));
    let total = "apiserver_admission_webhook_request_total";
    let rejected = "apiserver_admission_webhook_rejection_count";
    for line in [
        format!(r#"{total}{{code="200",{m},rejected="false",type="admit"}} 1"#),
        format!(r#"{total}{{code="409",{m},rejected="true",type="admit"}} 1"#),
        format!(r#"{total}{{code="0",{m},rejected="true",type="admit"}} 1"#),
        format!(r#"{rejected}{{error_type="no_error",{m},rejection_code="409",type="admit"}} 1"#),
        format!(
            r#"{rejected}{{error_type="apiserver_internal_error",{m},rejection_code="0",type="admit"}} 1"#
        ),
        format!(r#"{total}{{code="200",{v},rejected="false",type="validating"}} 1"#),
        format!(r#"{total}{{code="502",{v},rejected="true",type="validating"}} 1"#),
        format!(r#"{total}{{code="502",{v},rejected="false",type="validating"}} 1"#),
        format!(
            r#"{rejected}{{error_type="calling_webhook_error",{v},rejection_code="502",type="validating"}} 1"#
        ),
        r#"apiserver_admission_webhook_fail_open_count{name="v.example.com",type="validating"} 1"#
            .to_owned(),
    ] {
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_does_not_answer_in_time_has_failed() {
    let api = Api::start().await;
    api.server
        .serve_webhooks("https://webhooks.test", Arc::new(|_| futures::future::pending().boxed()));
    let slow = webhook_with("slow", &json!({"timeoutSeconds": 7}));
    configure(&api, VALIDATING, "a", &[slow]).await;
    let start = Instant::now();
    let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(500);
    assert_eq!(start.elapsed().as_secs(), 7);
    assert_eq!(
        message(&refused),
        "Internal error occurred: failed calling webhook \"slow.example.com\": failed to call \
         webhook: Post \"https://webhooks.test/slow?timeout=7s\": context deadline exceeded"
    );
    let ignored = webhook_with("slow", &json!({"timeoutSeconds": 7, "failurePolicy": "Ignore"}));
    api.merge(&format!("{VALIDATING}/a"), &json!({"webhooks": [ignored]})).await.ok();
    let start = Instant::now();
    api.config_map("a", &json!({})).await;
    assert_eq!(start.elapsed().as_secs(), 7);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_to_the_question_is_a_failure() {
    let api = Api::start().await;
    configure(&api, MUTATING, "a", &[webhook("odd")]).await;
    for (answer, why) in [
        (json!({"response": {"uid": "other", "allowed": true}}), "expected response.uid="),
        (json!({}), "webhook response was absent"),
        (json!({"apiVersion": "admission.k8s.io/v1beta1"}), "got admission.k8s.io/v1beta1, Kind="),
        (json!({"response": {"patch": "W10="}}), "response.patch but not response.patchType"),
        (
            json!({"response": {"patchType": "JSONPatch"}}),
            "response.patchType but not response.patch",
        ),
        (
            json!({"response": {"patch": "e30=", "patchType": "JSONPatch"}}),
            "received undecodable patch in webhook response",
        ),
        (
            json!({"response": {"patch": "W3sib3AiOiJ0ZXN0In1d", "patchType": "Merge"}}),
            "calling webhook \"odd.example.com\": unsupported patch type \"Merge\"",
        ),
    ] {
        let handler = crate::webhooks::json_handler(move |review| {
            let mut full = json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            });
            if answer.get("response").is_some() || answer.get("apiVersion").is_some() {
                full["response"] = json!({"uid": review["request"]["uid"], "allowed": true});
            }
            for (field, value) in answer.as_object().unwrap() {
                if let (Some(fields), Some(known)) =
                    (value.as_object(), full[field].as_object_mut())
                {
                    known.extend(fields.clone());
                } else {
                    full[field] = value.clone();
                }
            }
            full
        });
        api.server.serve_webhooks("https://webhooks.test", handler);
        let refused = api.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.refused(500);
        assert!(message(&refused).contains(why), "{why}: {refused}");
    }
}
