//! Custom resources that cannot be read in a version: nobody converts them to it, or the version in
//! which they lie is gone.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use http::Response;
use serde_json::{Value, json};

use crate::api::{Api, names};
use crate::conversion::{Setup, V2, review, setup, stored, two_versions};
use crate::crd::{DEFINITIONS, WIDGETS, definition, until_gone, widget};
use crate::webhooks::{json_handler, message};

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";

/// Lets the webhook that converts fail from now on.
fn fail(api: &Api) {
    let broken = || Response::builder().status(500).body("no".into()).unwrap();
    api.server
        .serve_webhooks("https://convert.test", Arc::new(move |_| async move { broken() }.boxed()));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_in_a_version_is_not_deleted_in_it() {
    let Setup { api, asked } = setup().await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let mut held = widget("b", 1);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(WIDGETS, &held).await.ok();
    let before = stored(&api, "b").await;
    fail(&api);
    for path in [format!("{V2}/a"), format!("{V2}/b"), V2.to_owned()] {
        let refused = api.delete(&path).await.refused(500);
        assert_eq!(
            message(&refused),
            "conversion webhook for example.com/v1, Kind=Widget failed: an error on the server \
             (\"no\") has prevented the request from succeeding"
        );
    }
    assert_eq!(names(&api.get(WIDGETS).await.ok()), ["a", "b"]);
    assert_eq!(stored(&api, "b").await, before, "nothing is marked");
    asked.store(0, Ordering::SeqCst);
    api.delete(&format!("{WIDGETS}/a")).await.ok();
    let marked = api.delete(&format!("{WIDGETS}/b")).await.ok();
    assert!(marked["metadata"]["deletionTimestamp"].is_string(), "{marked}");
    assert_eq!(asked.load(Ordering::SeqCst), 0, "who deletes what is stored pays nothing");
}

/// Stores in the second version, and forgets the first.
async fn drop_first_version(api: &Api) {
    let mut changed = api.get(DEFINITION).await.ok();
    changed["spec"]["versions"][0]["storage"] = false.into();
    changed["spec"]["versions"][1]["storage"] = true.into();
    let mut changed = api.put(DEFINITION, &changed).await.ok();
    changed["status"]["storedVersions"] = json!(["v2"]);
    let mut changed = api.put(&format!("{DEFINITION}/status"), &changed).await.ok();
    changed["spec"]["versions"].as_array_mut().unwrap().remove(0);
    api.put(DEFINITION, &changed).await.ok();
}

#[tokio::test(start_paused = true)]
async fn what_lies_in_a_version_that_is_gone_is_not_read() {
    for definition in [definition(), two_versions()] {
        let api = Api::start().await;
        api.server.serve_webhooks("https://convert.test", json_handler(review));
        api.post(DEFINITIONS, &definition).await.ok();
        api.post(WIDGETS, &widget("old", 1)).await.ok();
        drop_first_version(&api).await;
        let path = format!("{V2}/old");
        let watch = format!("{V2}?watch=1");
        for answer in [
            api.get(&path).await,
            api.get(V2).await,
            api.get("/apis/example.com/v2/widgets").await,
            api.get(&watch).await,
            api.delete(&path).await,
            api.delete(V2).await,
            api.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await,
        ] {
            let expected = json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": "request to convert CR from an invalid group/version: example.com/v1",
                "code": 500,
            });
            assert_eq!(answer.refused(500), expected);
        }
        api.delete(DEFINITION).await.ok();
        until_gone(&api, "widgets.example.com").await;
        let key = "/registry/example.com/widgets/default/old";
        assert_eq!(api.store.get(key).await.unwrap(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_conversion_review_is_told_as_go_tells_it() {
    let Setup { api, .. } = setup().await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let field = "json: cannot unmarshal string into Go struct field";
    for (pointer, why) in [
        ("/response", format!("{field} ConversionReview.response of type v1.ConversionResponse")),
        ("/request", format!("{field} ConversionReview.request of type v1.ConversionRequest")),
        (
            "/response/result",
            format!("{field} ConversionResponse.response.result of type v1.Status"),
        ),
        (
            "/response/convertedObjects",
            format!(
                "{field} ConversionResponse.response.convertedObjects of type \
                 []runtime.RawExtension"
            ),
        ),
    ] {
        let handler = json_handler(move |question| {
            let mut answer = review(question);
            answer["request"] = json!({});
            *answer.pointer_mut(pointer).unwrap() = "x".into();
            answer
        });
        api.server.serve_webhooks("https://convert.test", handler);
        let refused = api.get(&format!("{V2}/a")).await.refused(500);
        let start = "conversion webhook for example.com/v1, Kind=Widget failed: ";
        assert_eq!(message(&refused), format!("{start}{why}"));
    }
    for (object, why) in [
        (Value::Null, "unexpected end of JSON input"),
        (json!("x"), "json: cannot unmarshal string into Go value of type map[string]interface {}"),
    ] {
        let handler = json_handler(move |question| {
            let mut answer = review(question);
            answer["response"]["convertedObjects"] = json!([object]);
            answer
        });
        api.server.serve_webhooks("https://convert.test", handler);
        assert_eq!(message(&api.get(&format!("{V2}/a")).await.refused(500)), why);
    }
}
