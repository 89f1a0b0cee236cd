//! Custom resources have no Go type and no routes of their own, and Kubernetes answers
//! accordingly: a body must name its kind, and one handler sees every method.

use http::Request;
use http_body_util::Full;
use serde_json::json;

use crate::api::Api;
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};

async fn with_widgets() -> Api {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    api
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_must_name_its_kind_and_version() {
    let api = with_widgets().await;
    let nameless = json!({"metadata": {"name": "a"}, "spec": {"size": 1}});
    let status = api.post(WIDGETS, &nameless).await.refused(400);
    let message = status["message"].as_str().unwrap();
    assert!(
        message.starts_with(
            "the object provided is unrecognized (must be of type Widget): Object 'Kind' is \
             missing in '{"
        ),
        "{message}"
    );
    let kind_only = json!({"kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}});
    let status = api.post(WIDGETS, &kind_only).await.refused(400);
    assert_eq!(
        status["message"],
        "the API version in the data () does not match the expected API version (example.com/v1)"
    );
    api.get(&format!("{WIDGETS}/a")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn methods_without_a_route_reach_custom_resources() {
    let api = with_widgets().await;
    let one = format!("{WIDGETS}/a");
    api.post(&one, &widget("a", 1)).await.ok();
    let status = api.post(&one, &widget("a", 1)).await.refused(409);
    assert_eq!(status["reason"], "AlreadyExists");
    let status = api.put(WIDGETS, &widget("a", 2)).await.refused(400);
    assert_eq!(status["message"], "name must be provided");
    let status = api.post(&format!("{one}/scale"), &json!({})).await.refused(405);
    assert_eq!(
        status["message"],
        "create is not supported on resources of kind \"widgets.example.com\""
    );
    let status = api.get(&format!("{one}/odd")).await.refused(404);
    assert_eq!(status["message"], "widgets.example.com \"a\" not found");
    let head = |path: &str| Request::head(path).body(Full::default()).unwrap();
    assert_eq!(api.send(head(&one)).await.code, 200);
    assert_eq!(api.send(head("/api/v1/pods")).await.code, 405);
}

#[tokio::test(start_paused = true)]
async fn what_a_scale_shows_is_a_number_of_replicas() {
    let api = with_widgets().await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let merge = "application/merge-patch+json";
    let negative = json!({"status": {"size": -1}});
    let status = api.patch(&format!("{WIDGETS}/a/status"), merge, &negative).await.refused(422);
    assert_eq!(
        status["message"],
        "Widget.example.com \"a\" is invalid: .status.size: Invalid value: -1: should be a \
         non-negative integer"
    );
    let odd = json!({"kind": "Deployment", "apiVersion": "apps/v1", "spec": {"replicas": 2}});
    api.patch(&format!("{WIDGETS}/a/scale"), merge, &odd).await.refused(422);
    let big = json!({"spec": {"size": 3_000_000_000_i64}});
    let status = api.patch(&format!("{WIDGETS}/a"), merge, &big).await.refused(422);
    let message = status["message"].as_str().unwrap();
    assert!(message.ends_with("should be less than or equal to 2147483647"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_whose_default_or_pattern_is_broken_is_refused() {
    let api = Api::start().await;
    let size = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size";
    let color = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color";
    for (at, key, value, expected) in [
        (
            size,
            "default",
            json!("x"),
            "[size].default: Invalid value: \"string\":  in body must be of type integer: \"string\"",
        ),
        (
            size,
            "default",
            json!(-1),
            "[size].default: Invalid value: -1:  in body should be greater than or equal to 0",
        ),
        (
            color,
            "pattern",
            json!("("),
            "[color].pattern: Invalid value: \"(\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`",
        ),
    ] {
        let mut broken = definition();
        broken.pointer_mut(at).unwrap()[key] = value;
        let status = api.post(DEFINITIONS, &broken).await.refused(422);
        let message = status["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_default_has_no_fields_that_its_schema_does_not_know() {
    let api = Api::start().await;
    let mut odd = definition();
    let spec = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
    odd.pointer_mut(spec).unwrap()["default"] = json!({"size": 1, "odd": 2});
    let status = api.post(DEFINITIONS, &odd).await.refused(422);
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("[spec].default: Invalid value:"), "{message}");
    assert!(message.contains("must not have unknown fields"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn a_custom_resource_without_replicas_has_no_scale() {
    let api = Api::start().await;
    let mut optional = definition();
    for version in optional["spec"]["versions"].as_array_mut().unwrap() {
        let spec = &mut version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        spec.as_object_mut().unwrap().remove("required");
    }
    api.post(DEFINITIONS, &optional).await.ok();
    let mut widget = widget("a", 1);
    widget["spec"] = json!({});
    api.post(WIDGETS, &widget).await.ok();
    let status = api.get(&format!("{WIDGETS}/a/scale")).await.refused(500);
    assert_eq!(
        status["message"],
        "Internal error occurred: the spec replicas field \".spec.size\" does not exist"
    );
}
