//! What a definition means for its instances: subresources, defaults, warnings, and definitions that
//! become stricter.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{Answer, Api, names};
use crate::crd::{DEFINITIONS, WIDGETS, definition, widget};

const DEFINITION: &str =
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com";
const SPEC: &str = "/schema/openAPIV3Schema/properties/spec/properties";

/// The definition of widgets in one version, after a change of that version.
fn changed(change: impl FnOnce(&mut Value)) -> Value {
    let mut definition = definition();
    let versions = definition["spec"]["versions"].as_array_mut().unwrap();
    versions.truncate(1);
    change(&mut versions[0]);
    definition
}

async fn serving(definition: &Value) -> Api {
    let api = Api::start().await;
    api.post(DEFINITIONS, definition).await.ok();
    api
}

/// Replaces the definition by one with another spec.
async fn redefine(api: &Api, definition: &Value) {
    let mut stored = api.get(DEFINITION).await.ok();
    stored["spec"]["versions"] = definition["spec"]["versions"].clone();
    api.put(DEFINITION, &stored).await.ok();
}

fn with_field(name: &str, schema: &Value) -> Value {
    changed(|version| {
        version.pointer_mut(SPEC).unwrap()[name] = schema.clone();
    })
}

fn warnings(answer: &Answer) -> Vec<&str> {
    answer.headers.get_all("warning").iter().map(|value| value.to_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn definitions_have_one_version() {
    let api = Api::start().await;
    let group = api.get("/apis/apiextensions.k8s.io").await.ok();
    assert_eq!(group["versions"].as_array().unwrap().len(), 1);
    assert_eq!(group["preferredVersion"]["version"], "v1");
    let old = "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions";
    assert_eq!(api.get(old).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_apart_and_makes_no_generation() {
    let api = serving(&definition()).await;
    let mut object = widget("a", 1);
    object["status"] = json!({"size": 7});
    let created = api.post(WIDGETS, &object).await.ok();
    assert!(created.get("status").is_none(), "{created}");
    let path = format!("{WIDGETS}/a");
    let mut both = created.clone();
    both["status"] = json!({"size": 7});
    both["spec"]["size"] = json!(2);
    both["metadata"]["labels"] = json!({"a": "b"});
    let reported = api.put(&format!("{path}/status"), &both).await.ok();
    assert_eq!(reported["status"], json!({"size": 7}));
    assert_eq!(reported["spec"]["size"], 1);
    assert!(reported["metadata"].get("labels").is_none(), "{reported}");
    assert_eq!(reported["metadata"]["generation"], 1);
    let mut both = reported.clone();
    both["status"] = json!({"size": 9});
    both["spec"]["size"] = json!(2);
    let updated = api.put(&path, &both).await.ok();
    assert_eq!(updated["status"], json!({"size": 7}));
    assert_eq!(updated["metadata"]["generation"], 2);
    let labelled = api.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert_eq!(labelled["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_whole_number_is_stored_without_a_fraction() {
    let api = serving(&with_field("weight", &json!({"type": "number"}))).await;
    let mut object = widget("a", 1);
    object["spec"]["weight"] = json!(3.0);
    assert_eq!(api.post(WIDGETS, &object).await.ok()["spec"]["weight"], json!(3));
    let path = format!("{WIDGETS}/a");
    for (sent, stored) in
        [(json!(4.0), json!(4)), (json!(4.5), json!(4.5)), (json!(1e3), json!(1000))]
    {
        api.merge(&path, &json!({"spec": {"weight": sent}})).await.ok();
        assert_eq!(api.get(&path).await.ok()["spec"]["weight"], stored);
    }
}

#[tokio::test(start_paused = true)]
async fn a_fraction_of_nothing_is_no_change() {
    let definition = changed(|version| {
        version.pointer_mut(SPEC).unwrap()["weight"] = json!({"type": "number", "default": 1.0});
        let status = "/schema/openAPIV3Schema/properties/status/properties";
        version.pointer_mut(status).unwrap()["load"] = json!({"type": "number"});
    });
    let api = serving(&definition).await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let path = format!("{WIDGETS}/a");
    let status = json!({"status": {"load": 7.0}});
    let reported = api.merge(&format!("{path}/status"), &status).await.ok();
    assert_eq!(reported["status"]["load"], json!(7));
    tokio::time::advance(Duration::from_secs(5)).await;
    for manager in ["", "?fieldManager=other"] {
        let again = api.merge(&format!("{path}/status{manager}"), &status).await.ok();
        assert_eq!(again, reported, "{manager}");
    }
    // Nor is a default that is filled in again.
    assert_eq!(reported["spec"]["weight"], json!(1));
    let mut plain = widget("a", 1);
    plain["metadata"]["resourceVersion"] = reported["metadata"]["resourceVersion"].clone();
    assert_eq!(api.put(&path, &plain).await.ok(), reported);
}

#[tokio::test(start_paused = true)]
async fn a_patch_cannot_make_another_kind_of_one() {
    let api = serving(&definition()).await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let path = format!("{WIDGETS}/a");
    let kind = "kind: Invalid value: \"Other\": must be Widget";
    let status = api.merge(&path, &json!({"kind": "Other"})).await.refused(422);
    assert_eq!(status["message"], format!("Other.example.com \"a\" is invalid: {kind}"));
    let both = json!({"apiVersion": "other/v1", "kind": "Other"});
    let status = api.merge(&path, &both).await.refused(422);
    let version = "apiVersion: Invalid value: \"other/v1\": must be example.com/v1";
    assert_eq!(status["message"], format!("Other.other \"a\" is invalid: [{kind}, {version}]"));
}

#[tokio::test(start_paused = true)]
async fn a_status_that_is_no_subresource_is_a_field_like_others() {
    let plain = changed(|version| drop(version.as_object_mut().unwrap().remove("subresources")));
    let api = serving(&plain).await;
    let mut object = widget("a", 1);
    object["status"] = json!({"size": 7});
    assert_eq!(api.post(WIDGETS, &object).await.ok()["status"], json!({"size": 7}));
    let path = format!("{WIDGETS}/a");
    let changed = api.merge(&path, &json!({"status": {"size": 8}})).await.ok();
    assert_eq!(changed["metadata"]["generation"], 2);
    api.get(&format!("{path}/status")).await.refused(404);
    api.get(&format!("{path}/scale")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn a_scale_shows_the_selector_that_the_object_tells() {
    let selecting = changed(|version| {
        version["subresources"]["scale"]["labelSelectorPath"] = ".status.selector".into();
        let status = "/schema/openAPIV3Schema/properties/status/properties";
        version.pointer_mut(status).unwrap()["selector"] = json!({"type": "string"});
    });
    let api = serving(&selecting).await;
    api.post(WIDGETS, &widget("a", 3)).await.ok();
    let path = format!("{WIDGETS}/a");
    assert_eq!(api.get(&format!("{path}/scale")).await.ok()["status"], json!({"replicas": 0}));
    let status = json!({"status": {"size": 2, "selector": "app=a"}});
    api.merge(&format!("{path}/status"), &status).await.ok();
    let scale = api.get(&format!("{path}/scale")).await.ok();
    assert_eq!(scale["status"], json!({"replicas": 2, "selector": "app=a"}));
    assert_eq!(scale["spec"], json!({"replicas": 3}));
    let negative = json!({"spec": {"replicas": -3}});
    let refused = api.merge(&format!("{path}/scale"), &negative).await.refused(422);
    let why = ".spec.size: Invalid value: -3: should be a non-negative integer";
    assert!(refused["message"].as_str().unwrap().contains(why), "{refused}");
    let set = json!({"spec": {"replicas": 5}});
    api.merge(&format!("{path}/scale"), &set).await.ok();
    let scaled = api.get(&path).await.ok();
    assert_eq!(
        (&scaled["spec"]["size"], &scaled["metadata"]["generation"]),
        (&json!(5), &json!(2))
    );
}

#[tokio::test(start_paused = true)]
async fn a_scale_without_a_number_must_be_given_one() {
    let optional = changed(|version| {
        let spec = "/schema/openAPIV3Schema/properties/spec";
        drop(version.pointer_mut(spec).unwrap().as_object_mut().unwrap().remove("required"));
    });
    let api = serving(&optional).await;
    let mut object = widget("a", 0);
    object["spec"] = json!({});
    api.post(WIDGETS, &object).await.ok();
    let path = format!("{WIDGETS}/a");
    let scale = format!("{path}/scale");
    let named = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}});
    let apply = "application/apply-patch+yaml";
    for refused in [
        api.merge(&scale, &json!({})).await,
        api.merge(&scale, &json!({"metadata": {"labels": {"a": "b"}}})).await,
        api.patch(&format!("{scale}?fieldManager=me"), apply, &named).await,
    ] {
        let status = refused.refused(400);
        assert_eq!(status["message"], "the spec replicas field \".spec.size\" cannot be empty");
        assert_eq!(status["reason"], "BadRequest");
    }
    assert!(api.get(&path).await.ok()["spec"].get("size").is_none());
    api.merge(&scale, &json!({"spec": {"replicas": 3}})).await.ok();
    assert_eq!(api.get(&path).await.ok()["spec"]["size"], 3);

    object["metadata"]["name"] = "b".into();
    api.post(WIDGETS, &object).await.ok();
    let mut whole = named.clone();
    whole["metadata"]["name"] = "b".into();
    api.put(&format!("{WIDGETS}/b/scale"), &whole).await.ok();
    let written = api.get(&format!("{WIDGETS}/b")).await.ok();
    assert_eq!(written["spec"]["size"], 0, "whoever writes all of it means zero by nothing");
}

#[tokio::test(start_paused = true)]
async fn a_new_default_is_seen_in_what_was_stored_before() {
    let api = serving(&changed(|_| {})).await;
    let created = api.post(WIDGETS, &widget("a", 1)).await.ok();
    assert!(created["spec"].get("shape").is_none());
    redefine(&api, &with_field("shape", &json!({"type": "string", "default": "round"}))).await;
    let read = api.get(&format!("{WIDGETS}/a")).await.ok();
    assert_eq!(read["spec"]["shape"], "round");
    assert_eq!(read["metadata"]["resourceVersion"], created["metadata"]["resourceVersion"]);
    assert_eq!(api.get(WIDGETS).await.ok()["items"][0]["spec"]["shape"], "round");
    let mut events = api.watch(&format!("{WIDGETS}?watch=1")).await;
    assert_eq!(events.next().await.unwrap()["object"]["spec"]["shape"], "round");
}

#[tokio::test(start_paused = true)]
async fn what_has_not_changed_is_not_refused_by_a_stricter_definition() {
    let api = serving(&with_field("note", &json!({"type": "string"}))).await;
    let mut object = widget("a", 1);
    object["spec"]["note"] = "much too long".into();
    api.post(WIDGETS, &object).await.ok();
    let path = format!("{WIDGETS}/a");
    redefine(&api, &with_field("note", &json!({"type": "string", "maxLength": 3}))).await;
    api.merge(&path, &json!({"spec": {"size": 2}})).await.ok();
    let status = api.merge(&path, &json!({"spec": {"note": "even longer"}})).await.refused(422);
    assert_eq!(
        status["message"],
        "Widget.example.com \"a\" is invalid: spec.note: Too long: may not be more than 3 bytes"
    );
    let rule = json!([{"rule": "self.size() <= 3", "message": "too long"}]);
    let ruled = json!({"type": "string", "x-kubernetes-validations": rule});
    redefine(&api, &with_field("note", &ruled)).await;
    let answer = api.merge(&path, &json!({"spec": {"size": 3}})).await;
    assert_eq!(
        warnings(&answer),
        ["299 - \"spec.note: Invalid value: \\\"much too long\\\": too long\""]
    );
    answer.ok();
    let status = api.merge(&path, &json!({"spec": {"note": "even longer"}})).await.refused(422);
    assert_eq!(
        status["message"],
        "Widget.example.com \"a\" is invalid: spec.note: Invalid value: \"even longer\": too long"
    );
}

#[tokio::test(start_paused = true)]
async fn an_embedded_resource_must_be_one() {
    let embedded = json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    });
    let api = serving(&with_field("template", &embedded)).await;
    let mut object = widget("a", 1);
    object["spec"]["template"] = json!({"kind": "Pod", "metadata": {"labels": {"a": "b c"}}});
    let status = api.post(WIDGETS, &object).await.refused(422);
    let fields: Vec<&str> = status["details"]["causes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cause| cause["field"].as_str().unwrap())
        .collect();
    assert_eq!(fields, ["spec.template.apiVersion", "spec.template.metadata.labels"]);
    object["spec"]["template"] = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "odd": 1}, "spec": {"any": 1},
    });
    let created = api.post(WIDGETS, &object).await.ok();
    assert_eq!(
        created["spec"]["template"],
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"any": 1}})
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_hardly_meant_is_told() {
    let api = Api::start().await;
    let odd = with_field("note", &json!({"type": "string", "format": "colour"}));
    let answer = api.post(DEFINITIONS, &odd).await;
    assert_eq!(warnings(&answer), ["299 - \"unrecognized format \\\"colour\\\"\""]);
    answer.ok();
    let mut object = widget("a", 1);
    object["metadata"]["finalizers"] = json!(["hold", "example.com/hold"]);
    let answer = api.post(WIDGETS, &object).await;
    assert_eq!(
        warnings(&answer),
        ["299 - \"metadata.finalizers: \\\"hold\\\": prefer a domain-qualified finalizer name to \
          avoid accidental conflicts with other finalizer writers\""]
    );
    answer.ok();
    let more = json!({"metadata": {"labels": {"a": "b"}}});
    assert!(warnings(&api.merge(&format!("{WIDGETS}/a"), &more).await).is_empty());
}

#[tokio::test(start_paused = true)]
async fn numbers_texts_and_nulls_are_what_the_schema_says() {
    let either = json!({"x-kubernetes-int-or-string": true});
    let nullable = json!({"type": "string", "nullable": true});
    let both = changed(|version| {
        let spec = version.pointer_mut(SPEC).unwrap();
        spec["either"] = either;
        spec["nullable"] = nullable;
    });
    let api = serving(&both).await;
    for (field, value, fits) in [
        ("either", json!(1), true),
        ("either", json!("10%"), true),
        ("either", json!(1.5), false),
        ("either", json!(true), false),
        ("nullable", json!(null), true),
        ("nullable", json!("a"), true),
        ("nullable", json!(1), false),
        ("color", json!(1), false),
    ] {
        let mut object = widget("a", 1);
        object["spec"][field] = value.clone();
        let answer = api.post(&format!("{WIDGETS}?dryRun=All"), &object).await;
        assert_eq!(answer.code == 201, fits, "{field} {value}: {}", answer.json());
        if fits {
            assert_eq!(answer.json()["spec"][field], value);
        }
    }
    assert!(names(&api.get(WIDGETS).await.ok()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn nested_fields_are_explained() {
    let described = with_field(
        "nested",
        &json!({"type": "object", "description": "the outer", "required": ["deep"], "properties": {
            "deep": {"type": "string", "description": "the inner", "enum": ["a", "b"]},
        }}),
    );
    let api = serving(&described).await;
    let document = api.get("/openapi/v3/apis/example.com/v1").await.ok();
    let schema = &document["components"]["schemas"]["com.example.v1.Widget"];
    let nested = &schema["properties"]["spec"]["properties"]["nested"];
    assert_eq!(nested["description"], "the outer");
    assert_eq!(nested["required"], json!(["deep"]));
    assert_eq!(nested["properties"]["deep"]["description"], "the inner");
    assert_eq!(nested["properties"]["deep"]["enum"], json!(["a", "b"]));
    assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
}
