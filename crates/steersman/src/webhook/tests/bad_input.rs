//! Requests that make no sense, and handlers that panic.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode, header};
use serde_json::{Value, json};

use super::{MUTATE, VALIDATE, ask, post, read, review, shop, shops};
use crate::serve;
use crate::webhook::{AdmissionRequest, AdmissionResponse, WebhookServer};

/// The code, the message and the uid of an answer to something that makes no sense.
async fn refused(request: Request<Bytes>) -> (u64, String, String) {
    let response = serve::call(&shops().handler(), request).await;
    assert_eq!(response.status(), 200);
    let review = read(&response);
    assert_eq!(review["apiVersion"], "admission.k8s.io/v1");
    assert_eq!(review["kind"], "AdmissionReview");
    let answer = &review["response"];
    assert_eq!(answer["allowed"], false);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let status = &answer["status"];
    (status["code"].as_u64().unwrap(), text(&status["message"]), text(&answer["uid"]))
}

#[tokio::test]
async fn what_makes_no_sense_is_refused_in_a_review() {
    let good = review("CREATE", &shop(json!({})), &Value::Null);
    let with = |change: &dyn Fn(&mut Value)| {
        let mut review = good.clone();
        change(&mut review);
        review.to_string()
    };
    let cases = [
        (String::new(), 400, "no body", ""),
        ("{".to_owned(), 400, "cannot decode the AdmissionReview", ""),
        (" ".repeat(7 * 1024 * 1024 + 1), 413, "larger than 7340032 bytes", ""),
        (with(&|r| r["request"] = Value::Null), 400, "has no request", ""),
        (
            with(&|r| r["apiVersion"] = json!("admission.k8s.io/v1beta1")),
            400,
            "must be [\"v1\"]",
            "0-8-15",
        ),
        (with(&|r| r["kind"] = json!("Pod")), 400, "expected an AdmissionReview", "0-8-15"),
        (
            with(&|r| r["request"]["operation"] = json!("DANCE")),
            400,
            "cannot decode the request",
            "0-8-15",
        ),
        (with(&|r| r["request"]["object"] = Value::Null), 400, "has no object", "0-8-15"),
        (
            with(&|r| r["request"]["object"]["spec"]["replicas"] = json!("many")),
            400,
            "cannot decode object",
            "0-8-15",
        ),
        (
            with(&|r| r["request"]["kind"]["version"] = json!("v2")),
            400,
            "this webhook admits demo.steersman.dev/v1, Kind=Shop",
            "0-8-15",
        ),
    ];
    for (body, code, message, uid) in cases {
        let (found, text, echoed) = refused(post(MUTATE, body)).await;
        assert_eq!((found, echoed.as_str()), (code, uid), "{text}");
        assert!(text.contains(message), "{text:?} should contain {message:?}");
    }
}

#[tokio::test]
async fn only_json_is_read() {
    let review = review("CREATE", &shop(json!({})), &Value::Null).to_string();
    for (media_type, code) in [("application/yaml", 415), ("", 415)] {
        let request = Request::post(MUTATE).header(header::CONTENT_TYPE, media_type);
        let (found, text, uid) = refused(request.body(review.clone().into()).unwrap()).await;
        assert_eq!((found, uid.as_str()), (code, "0-8-15"), "{text}");
    }
    let request =
        Request::post(MUTATE).header(header::CONTENT_TYPE, "application/json; charset=utf-8");
    let response = serve::call(&shops().handler(), request.body(review.into()).unwrap()).await;
    assert_eq!(read(&response)["response"]["allowed"], true);
}

#[tokio::test]
async fn other_paths_and_methods_are_not_served() {
    let handler = shops().handler();
    let response = serve::call(&handler, post("/elsewhere", "{}")).await;
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    let request = Request::get(VALIDATE).body(Bytes::new()).unwrap();
    assert_eq!(serve::call(&handler, request).await.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test]
async fn a_panic_is_an_answer_too() {
    let server = shops();
    let panics = shop(json!({"owner": "panic"}));
    let answer = ask(&server, MUTATE, &review("CREATE", &panics, &Value::Null)).await;
    assert_eq!((&answer["uid"], &answer["status"]["code"]), (&json!("0-8-15"), &json!(500)));
    let message = answer["status"]["message"].as_str().unwrap();
    assert!(message.contains("as it was told"), "{message}");
    let fine = shop(json!({}));
    let answer = ask(&server, MUTATE, &review("CREATE", &fine, &Value::Null)).await;
    assert_eq!(answer["allowed"], true);
}

#[tokio::test]
async fn a_handler_that_panics_before_it_waits_is_caught_as_well() {
    fn broken(_: AdmissionRequest) -> std::future::Ready<AdmissionResponse> {
        panic!("at once")
    }
    let server = WebhookServer::builder("shop").in_process().handle("/x", broken).build().unwrap();
    let answer = ask(&server, "/x", &review("CREATE", &json!({}), &Value::Null)).await;
    assert_eq!(answer["status"]["message"], "panic: at once [recovered]");
}

#[tokio::test]
async fn a_patch_that_does_not_fit_is_the_webhooks_fault() {
    let remove = async |_: AdmissionRequest| {
        let patch = json!([{"op": "remove", "path": "/nothing"}]);
        AdmissionResponse::allowed().with_patch(serde_json::from_value(patch).unwrap())
    };
    let server =
        WebhookServer::builder("shop").in_process().handle("/x", remove).handle("/x", remove);
    let review = review("CREATE", &json!({}), &Value::Null);
    let answer = ask(&server.build().unwrap(), "/x", &review).await;
    assert_eq!(answer["status"]["code"], 500);
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_as_long_as_the_api_server_waits() {
    let slow = async |_: AdmissionRequest| {
        let _ = tokio::time::timeout(Duration::from_secs(5), std::future::pending::<()>()).await;
        AdmissionResponse::allowed()
    };
    let server = WebhookServer::builder("shop").in_process().handle("/slow", slow).build().unwrap();
    let review = review("CREATE", &json!({}), &Value::Null);
    assert_eq!(ask(&server, "/slow?timeout=10s", &review).await["allowed"], true);
    let late = post("/slow?timeout=2s", review.to_string());
    let late = serve::call(&server.handler(), late).await;
    assert_eq!(
        (late.status().as_u16(), &late.body()[..]),
        (504, &b"the webhook took longer than 2s"[..])
    );
}
