//! Custom resources whose versions differ: a webhook converts them, or nobody does.
//!
//! In v1 a Widget has `spec.size`, in v2 `spec.dimensions.width`: nothing but the webhook knows
//! that they are the same.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use serde_json::{Value, json};

use crate::api::{Api, names, version};
use crate::crd::{DEFINITIONS, WIDGETS, definition, until_gone, widget};
use crate::webhooks::{json_handler, message};

pub(crate) const V2: &str = "/apis/example.com/v2/namespaces/default/widgets";
const APPLY: &str = "application/apply-patch+yaml";

pub(crate) fn two_versions() -> Value {
    let mut definition = definition();
    definition["spec"]["versions"][1]["schema"]["openAPIV3Schema"] = json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "dimensions": {
                        "type": "object", "required": ["width"],
                        "properties": {
                            "width": {"type": "integer", "minimum": 0},
                            "unit": {"type": "string", "default": "mm"},
                        },
                    },
                    "color": {"type": "string"},
                },
            },
            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
        },
    });
    definition["spec"]["versions"][1]["selectableFields"] =
        json!([{"jsonPath": ".spec.dimensions.width"}]);
    definition["spec"]["versions"][1]["subresources"] = json!({
        "status": {},
        "scale": {"specReplicasPath": ".spec.dimensions.width", "statusReplicasPath": ".status.size"},
    });
    definition["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {
            "conversionReviewVersions": ["v1"],
            "clientConfig": {"url": "https://convert.test/convert"},
        },
    });
    definition
}

/// What the webhook makes of an object.
fn converted(object: &Value, to: &str) -> Value {
    let mut object = object.clone();
    if object["apiVersion"] == to {
        return object;
    }
    object["apiVersion"] = to.into();
    let Some(spec) = object["spec"].as_object_mut() else { return object };
    let forth = to == "example.com/v2";
    if forth && let Some(size) = spec.remove("size") {
        spec.insert("dimensions".into(), json!({"width": size}));
    } else if !forth
        && let Some(dimensions) = spec.remove("dimensions")
        && let Some(width) = dimensions.get("width")
    {
        spec.insert("size".into(), width.clone());
    }
    object
}

pub(crate) fn review(review: &Value) -> Value {
    let request = &review["request"];
    let to = request["desiredAPIVersion"].as_str().unwrap();
    let objects = request["objects"].as_array().unwrap().iter();
    let objects: Vec<Value> = objects.map(|object| converted(object, to)).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "response": {
            "uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects,
        },
    })
}

pub(crate) struct Setup {
    pub(crate) api: Api,
    pub(crate) asked: Arc<AtomicUsize>,
}

pub(crate) async fn setup() -> Setup {
    let api = Api::start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let handler = json_handler(move |question| {
        count.fetch_add(1, Ordering::SeqCst);
        review(question)
    });
    api.server.serve_webhooks("https://convert.test", handler);
    api.post(DEFINITIONS, &two_versions()).await.ok();
    Setup { api, asked }
}

fn wide(name: &str, width: i64) -> Value {
    json!({
        "apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": name},
        "spec": {"dimensions": {"width": width}},
    })
}

/// The document in the store.
pub(crate) async fn stored(api: &Api, name: &str) -> Value {
    let key = format!("/registry/example.com/widgets/default/{name}");
    let entry = api.store.get(&key).await.unwrap().unwrap();
    serde_json::from_slice(&entry.value).unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_object_is_stored_in_one_version_and_read_in_both() {
    let Setup { api, asked } = setup().await;
    let created = api.post(V2, &wide("a", 3)).await.ok();
    assert_eq!(created["apiVersion"], "example.com/v2");
    // The unit was filled in in what was sent, and the stored version does not know it.
    assert_eq!(created["spec"]["dimensions"], json!({"width": 3}));
    let in_store = stored(&api, "a").await;
    assert_eq!(
        (&in_store["apiVersion"], &in_store["spec"]["size"]),
        (&json!("example.com/v1"), &json!(3))
    );
    let before = asked.load(Ordering::SeqCst);
    let old = api.get(&format!("{WIDGETS}/a")).await.ok();
    assert_eq!((&old["apiVersion"], &old["spec"]["size"]), (&json!("example.com/v1"), &json!(3)));
    assert_eq!(asked.load(Ordering::SeqCst), before, "who reads what is stored pays nothing");
    let new = api.get(&format!("{V2}/a")).await.ok();
    assert_eq!(new["spec"]["dimensions"]["width"], 3);
    assert_eq!(new["metadata"]["uid"], old["metadata"]["uid"]);
    assert_eq!(version(&new), version(&old));
    let partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    assert_eq!(api.get_as(&format!("{V2}/a"), partial).await.ok()["metadata"]["name"], "a");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_converted_at_once_and_selected_in_its_version() {
    let Setup { api, asked } = setup().await;
    for (name, size) in [("a", 1), ("b", 2), ("c", 2)] {
        api.post(WIDGETS, &widget(name, size)).await.ok();
    }
    asked.store(0, Ordering::SeqCst);
    let list = api.get(V2).await.ok();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(names(&list), ["a", "b", "c"]);
    let widths: Vec<&Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|o| &o["spec"]["dimensions"]["width"])
        .collect();
    assert_eq!(widths, [1, 2, 2]);
    let selected = api.get(&format!("{V2}?fieldSelector=spec.dimensions.width=2")).await.ok();
    assert_eq!(names(&selected), ["b", "c"]);
    let page = api.get(&format!("{V2}?limit=2")).await.ok();
    assert_eq!(names(&page), ["a", "b"]);
    assert_eq!(page["metadata"]["remainingItemCount"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_events_in_its_version() {
    let Setup { api, .. } = setup().await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let mut events = api.watch(&format!("{V2}?watch=1")).await;
    let first = events.next().await.unwrap();
    assert_eq!(first["object"]["spec"]["dimensions"]["width"], 1);
    api.merge(&format!("{WIDGETS}/a"), &json!({"spec": {"size": 5}})).await.ok();
    api.post(V2, &wide("b", 7)).await.ok();
    api.delete(&format!("{WIDGETS}/a")).await.ok();
    let mut told = Vec::new();
    for _ in 0..3 {
        let event = events.next().await.unwrap();
        assert_eq!(event["object"]["apiVersion"], "example.com/v2");
        let width = event["object"]["spec"]["dimensions"]["width"].as_i64().unwrap();
        told.push((event["type"].as_str().unwrap().to_owned(), width));
    }
    let expected = [("MODIFIED", 5), ("ADDED", 7), ("DELETED", 5)];
    assert_eq!(told, expected.map(|(kind, width)| (kind.to_owned(), width)));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_objects_is_told_in_their_version_although_their_definition_goes() {
    let Setup { api, .. } = setup().await;
    api.post(WIDGETS, &widget("w", 1)).await.ok();
    let mut events = api.watch(&format!("{V2}?watch=1")).await;
    assert_eq!(events.next().await.unwrap()["type"], "ADDED");
    api.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    let end = events.next().await.unwrap();
    assert_eq!(end["type"], "DELETED", "{end}");
    assert_eq!(end["object"]["apiVersion"], "example.com/v2");
    assert!(end["object"]["spec"]["dimensions"].is_object(), "{end}");
}

#[tokio::test(start_paused = true)]
async fn updates_and_patches_in_one_version_are_seen_in_the_other() {
    let Setup { api, .. } = setup().await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let path = format!("{V2}/a");
    let mut object = api.get(&path).await.ok();
    assert_eq!(object["metadata"]["generation"], 1);
    object["spec"]["dimensions"]["width"] = 4.into();
    let updated = api.put(&path, &object).await.ok();
    assert_eq!(updated["spec"]["dimensions"]["width"], 4);
    assert_eq!(updated["metadata"]["generation"], 2);
    assert_eq!(api.get(&format!("{WIDGETS}/a")).await.ok()["spec"]["size"], 4);
    api.merge(&path, &json!({"spec": {"dimensions": {"width": 6}}})).await.ok();
    assert_eq!(stored(&api, "a").await["spec"]["size"], 6);
    let refused = api.merge(&path, &json!({"spec": {"dimensions": {"width": -1}}})).await;
    assert!(message(&refused.refused(422)).contains("spec.dimensions.width"));
    api.merge(&format!("{path}/status"), &json!({"status": {"size": 6}})).await.ok();
    assert_eq!(stored(&api, "a").await["status"]["size"], 6);
    let scale = api.merge(&format!("{path}/scale"), &json!({"spec": {"replicas": 9}})).await.ok();
    assert_eq!(scale["spec"]["replicas"], 9);
    assert_eq!(stored(&api, "a").await["spec"]["size"], 9);
    let old = format!("{WIDGETS}/a");
    let unchanged = api.merge(&old, &json!({"spec": {"size": 9}})).await.ok();
    assert_eq!(version(&unchanged), version(&scale));
    api.delete(&path).await.ok();
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn managers_of_two_versions_own_the_same_field() {
    let Setup { api, .. } = setup().await;
    let first = format!("{WIDGETS}/a?fieldManager=first");
    api.patch(&first, APPLY, &widget("a", 1)).await.ok();
    let second = format!("{V2}/a?fieldManager=second");
    let conflict = api.patch(&second, APPLY, &wide("a", 2)).await.refused(409);
    assert!(message(&conflict).contains("first"), "{conflict}");
    let forced = api.patch(&format!("{second}&force=true"), APPLY, &wide("a", 2)).await.ok();
    assert_eq!(forced["spec"]["dimensions"]["width"], 2);
    let managers = forced["metadata"]["managedFields"].as_array().unwrap().clone();
    let owners: Vec<(&str, &str)> = managers
        .iter()
        .map(|m| (m["manager"].as_str().unwrap(), m["apiVersion"].as_str().unwrap()))
        .collect();
    assert_eq!(owners, [("second", "example.com/v2")], "{managers:?}");
    api.patch(&second, APPLY, &wide("a", 3)).await.ok();
    assert_eq!(stored(&api, "a").await["spec"]["size"], 3);
}

#[tokio::test(start_paused = true)]
async fn what_the_webhook_does_wrong_is_told() {
    let Setup { api, .. } = setup().await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    let path = format!("{V2}/a");
    let start = "conversion webhook for example.com/v1, Kind=Widget";
    type Change = fn(&mut Value);
    let wrong: [(Change, &str); 9] = [
        (
            |r| r["response"]["result"] = json!({"status": "Failed", "message": "no way"}),
            "failed: no way",
        ),
        (|r| r["response"]["convertedObjects"] = json!([]), "returned 0 objects, expected 1"),
        (|r| r["response"]["uid"] = "x".into(), "failed: expected response.uid="),
        (
            |r| r["response"]["convertedObjects"][0]["metadata"]["name"] = "b".into(),
            "returned invalid object: must have the same name: a != b",
        ),
        (
            |r| r["response"]["convertedObjects"][0]["apiVersion"] = "example.com/v3".into(),
            "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, \
             received example.com/v3)",
        ),
        (
            |r| r["response"]["result"] = json!({"status": "Odd"}),
            "failed: response.result.status was 'Odd', not 'Success'",
        ),
        (|r| r["response"] = Value::Null, "failed: no response provided"),
        (
            |r| r["apiVersion"] = "apiextensions.k8s.io/v1beta1".into(),
            "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, \
             got apiextensions.k8s.io/v1beta1, Kind=ConversionReview",
        ),
        (
            |r| r["response"]["convertedObjects"][0]["metadata"]["labels"] = json!({"a": 1}),
            "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in \
             converted object",
        ),
    ];
    for (spoil, why) in wrong {
        let handler = json_handler(move |question| {
            let mut answer = review(question);
            spoil(&mut answer);
            answer
        });
        api.server.serve_webhooks("https://convert.test", handler);
        let refused = api.get(&path).await.refused(500);
        assert!(
            message(&refused).starts_with(start) && message(&refused).contains(why),
            "{refused}"
        );
        api.get(V2).await.refused(500);
    }
    api.get(&format!("{WIDGETS}/a")).await.ok();
    let mut events = api.watch(&format!("{V2}?watch=1&resourceVersion=1")).await;
    assert_eq!(events.next().await.unwrap()["type"], "ERROR");
    api.server
        .serve_webhooks("https://convert.test", Arc::new(|_| futures::future::pending().boxed()));
    let refused = api.get(&path).await.refused(500);
    let late =
        "failed: Post \"https://convert.test/convert?timeout=30s\": context deadline exceeded";
    assert!(message(&refused).ends_with(late), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_goes_although_nobody_converts_its_instances() {
    let Setup { api, .. } = setup().await;
    api.post(V2, &wide("a", 1)).await.ok();
    api.server.serve_webhooks("https://convert.test", Arc::new(|_| panic!("gone")));
    api.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    until_gone(&api, "widgets.example.com").await;
    api.get(V2).await.no_page();
}

#[tokio::test(start_paused = true)]
async fn without_a_webhook_only_the_version_changes() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    let mut object = widget("a", 2);
    object["apiVersion"] = "example.com/v2".into();
    let created = api.post(V2, &object).await.ok();
    assert_eq!(
        (&created["apiVersion"], &created["spec"]["size"]),
        (&json!("example.com/v2"), &json!(2))
    );
    assert_eq!(stored(&api, "a").await["apiVersion"], "example.com/v1");
}

/// A definition without a webhook, of two versions whose specs have these fields; the first is
/// stored.
fn unlike(first: &Value, second: &Value) -> Value {
    let version = |name: &str, fields: &Value| {
        let spec = json!({"type": "object", "properties": fields});
        json!({
            "name": name, "served": true, "storage": name == "v1",
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}},
        })
    };
    let mut definition = definition();
    definition["spec"]["versions"] = json!([version("v1", first), version("v2", second)]);
    definition
}

fn text() -> Value {
    json!({"type": "string"})
}

fn defaulted(default: &str) -> Value {
    json!({"type": "string", "default": default})
}

/// The widget `a` with a spec.
fn specified(version: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("example.com/{version}"), "kind": "Widget", "metadata": {"name": "a"},
        "spec": spec,
    })
}

/// What the spec of the widget `a` is to whoever gets it, lists it, and begins to watch it.
async fn specs(api: &Api, folder: &str) -> [Value; 3] {
    let got = api.get(&format!("{folder}/a")).await.ok();
    let listed = api.get(folder).await.ok();
    let told = api.watch(&format!("{folder}?watch=1")).await.next().await.unwrap();
    [&got["spec"], &listed["items"][0]["spec"], &told["object"]["spec"]].map(Value::clone)
}

#[tokio::test(start_paused = true)]
async fn without_a_webhook_only_what_both_versions_know_gets_across() {
    let api = Api::start().await;
    let first = json!({"a": text(), "both": text()});
    let second = json!({"b": text(), "both": text()});
    api.post(DEFINITIONS, &unlike(&first, &second)).await.ok();
    let mut events = api.watch(&format!("{V2}?watch=1")).await;
    let both = json!({"both": "x"});
    let sent = specified("v2", &json!({"b": "y", "both": "x"}));
    assert_eq!(api.post(V2, &sent).await.ok()["spec"], both);
    assert_eq!(stored(&api, "a").await["spec"], both);
    for folder in [WIDGETS, V2] {
        assert_eq!(specs(&api, folder).await, [(); 3].map(|()| both.clone()), "{folder}");
    }
    api.merge(&format!("{WIDGETS}/a"), &json!({"spec": {"a": "z"}})).await.ok();
    assert_eq!(stored(&api, "a").await["spec"], json!({"a": "z", "both": "x"}));
    assert_eq!(specs(&api, V2).await, [(); 3].map(|()| both.clone()));
    for kind in ["ADDED", "MODIFIED"] {
        let event = events.next().await.unwrap();
        assert_eq!((&event["type"], &event["object"]["spec"]), (&json!(kind), &both));
        assert_eq!(event["object"]["apiVersion"], "example.com/v2");
    }
    // Who writes what they read leaves out what they cannot see.
    let path = format!("{V2}/a");
    let read = api.get(&path).await.ok();
    let written = api.put(&path, &read).await.ok();
    assert_ne!(version(&written), version(&read));
    assert_eq!(stored(&api, "a").await["spec"], both);
    assert_eq!(version(&api.put(&path, &written).await.ok()), version(&written));
}

#[tokio::test(start_paused = true)]
async fn defaults_are_those_of_the_version_that_is_written_and_of_the_one_that_is_stored() {
    let api = Api::start().await;
    let first = json!({"a": defaulted("A"), "both": text()});
    let second = json!({"a": text(), "both": defaulted("B"), "c": defaulted("C")});
    api.post(DEFINITIONS, &unlike(&first, &second)).await.ok();
    let created = api.post(V2, &specified("v2", &json!({}))).await.ok();
    let spec = json!({"a": "A", "both": "B"});
    assert_eq!(created["spec"], spec);
    for folder in [WIDGETS, V2] {
        assert_eq!(specs(&api, folder).await, [(); 3].map(|()| spec.clone()), "{folder}");
    }
    api.delete(&format!("{V2}/a")).await.ok();
    api.post(WIDGETS, &specified("v1", &json!({}))).await.ok();
    let spec = json!({"a": "A"});
    assert_eq!(specs(&api, V2).await, [(); 3].map(|()| spec.clone()), "none of its own");
}

#[tokio::test(start_paused = true)]
async fn an_object_is_read_as_the_version_in_which_it_lies_has_it_now() {
    let api = Api::start().await;
    let fields = json!({"a": text(), "b": text()});
    let second = json!({"a": text(), "b": text(), "c": text(), "d": defaulted("D")});
    api.post(DEFINITIONS, &unlike(&fields, &second)).await.ok();
    api.post(WIDGETS, &specified("v1", &json!({"a": "x", "b": "y"}))).await.ok();
    let changed = unlike(&json!({"b": text(), "c": defaulted("C")}), &second);
    let definition = format!("{DEFINITIONS}/widgets.example.com");
    api.merge(&definition, &json!({"spec": changed["spec"]})).await.ok();
    let spec = json!({"b": "y", "c": "C"});
    for folder in [WIDGETS, V2] {
        assert_eq!(specs(&api, folder).await, [(); 3].map(|()| spec.clone()), "{folder}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_makes_of_an_object_is_pruned_and_gets_no_defaults() {
    let Setup { api, .. } = setup().await;
    let handler = json_handler(|question| {
        let mut answer = review(question);
        let objects = answer["response"]["convertedObjects"].as_array_mut().unwrap();
        objects.iter_mut().for_each(|object| object["spec"]["unknown"] = true.into());
        answer
    });
    api.server.serve_webhooks("https://convert.test", handler);
    let spec = json!({"dimensions": {"width": 3}, "color": "red"});
    assert_eq!(api.post(V2, &wide("a", 3)).await.ok()["spec"], spec);
    assert_eq!(stored(&api, "a").await["spec"], json!({"size": 3, "color": "red"}));
    assert_eq!(specs(&api, V2).await, [(); 3].map(|()| spec.clone()));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_moves_an_object_to_a_new_storage_version() {
    let Setup { api, .. } = setup().await;
    api.post(WIDGETS, &widget("a", 2)).await.ok();
    let mut moved = two_versions();
    moved["spec"]["versions"][0]["storage"] = false.into();
    moved["spec"]["versions"][1]["storage"] = true.into();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    api.merge(&path, &json!({"spec": moved["spec"]})).await.ok();
    assert_eq!(api.get(&format!("{V2}/a")).await.ok()["spec"]["dimensions"]["width"], 2);
    assert_eq!(stored(&api, "a").await["apiVersion"], "example.com/v1");
    let object = api.get(&format!("{WIDGETS}/a")).await.ok();
    api.put(&format!("{WIDGETS}/a"), &object).await.ok();
    let in_store = stored(&api, "a").await;
    assert_eq!(in_store["apiVersion"], "example.com/v2");
    assert_eq!(in_store["spec"]["dimensions"]["width"], 2);
}

#[tokio::test(start_paused = true)]
async fn what_was_written_is_answered_although_nobody_converts_it_back() {
    let Setup { api, .. } = setup().await;
    let first = AtomicUsize::new(0);
    let handler = json_handler(move |question| match first.fetch_add(1, Ordering::SeqCst) {
        0 => review(question),
        _ => json!({}),
    });
    api.server.serve_webhooks("https://convert.test", handler);
    let made = api.post(V2, &wide("a", 4)).await.ok();
    assert_eq!(made["apiVersion"], "example.com/v2");
    assert_eq!(made["spec"]["dimensions"]["width"], 4);
    assert_eq!(version(&made), version(&api.get(&format!("{WIDGETS}/a")).await.ok()));
    api.get(&format!("{V2}/a")).await.refused(500);
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_in_time_although_nobody_converts_its_events() {
    let Setup { api, .. } = setup().await;
    let mut events = api.watch(&format!("{V2}?watch=1&timeoutSeconds=5")).await;
    api.server
        .serve_webhooks("https://convert.test", Arc::new(|_| futures::future::pending().boxed()));
    api.post(WIDGETS, &widget("a", 4)).await.ok();
    let start = tokio::time::Instant::now();
    assert_eq!(events.next().await, None);
    assert_eq!(start.elapsed().as_secs(), 5);
}
