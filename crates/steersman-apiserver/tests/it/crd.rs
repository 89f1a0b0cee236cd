//! Custom resource definitions and custom resources.

use serde_json::{Value, json};

use crate::api::{Api, names, version};

pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

pub(crate) fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
                    },
                    "selectableFields": [{"jsonPath": ".spec.color"}],
                    "additionalPrinterColumns": [
                        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                    ],
                    "schema": {"openAPIV3Schema": schema()},
                },
                {"name": "v2", "served": true, "storage": false, "schema": {"openAPIV3Schema": schema()}},
            ],
        },
    })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "spec": {
                "type": "object", "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "minimum": 0},
                    "color": {"type": "string", "default": "red"},
                },
            },
            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
        },
    })
}

pub(crate) fn widget(name: &str, size: i64) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name},
        "spec": {"size": size},
    })
}

pub(crate) fn condition<'a>(definition: &'a Value, kind: &str) -> &'a Value {
    let conditions = definition["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|condition| condition["type"] == kind).unwrap()
}

/// Waits until a definition that was deleted is gone, which happens beside the request.
pub(crate) async fn until_gone(api: &Api, definition: &str) {
    for _ in 0..10_000 {
        if api.get(&format!("{DEFINITIONS}/{definition}")).await.code == 404 {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{definition} stays");
}

async fn with_widgets() -> Api {
    let api = Api::start().await;
    api.post(DEFINITIONS, &definition()).await.ok();
    api
}

#[tokio::test(start_paused = true)]
async fn a_definition_is_established_and_served_at_once() {
    let api = Api::start().await;
    api.get(WIDGETS).await.no_page();
    let created = api.post(DEFINITIONS, &definition()).await.ok();
    assert_eq!(condition(&created, "NamesAccepted")["status"], "True");
    assert_eq!(condition(&created, "Established")["status"], "True");
    assert_eq!(created["status"]["storedVersions"], json!(["v1"]));
    assert_eq!(created["status"]["acceptedNames"]["singular"], "widget");
    assert_eq!(created["status"]["acceptedNames"]["listKind"], "WidgetList");
    let list = api.get(WIDGETS).await.ok();
    assert_eq!(list["kind"], "WidgetList");
    let resources = api.get("/apis/example.com/v1").await.ok();
    assert_eq!(resources["resources"][0]["shortNames"], json!(["wd"]));
    let group = api.get("/apis/example.com").await.ok();
    assert_eq!(group["preferredVersion"]["version"], "v2");
}

#[tokio::test(start_paused = true)]
async fn custom_resources_follow_the_rules_of_all_resources() {
    let api = with_widgets().await;
    let created = api.post(WIDGETS, &widget("a", 1)).await.ok();
    assert_eq!(created["metadata"]["generation"], 1);
    assert_eq!(created["spec"]["color"], "red");
    let path = format!("{WIDGETS}/a");
    let unversioned = api.put(&path, &widget("a", 2)).await.refused(422);
    assert!(
        unversioned["message"]
            .as_str()
            .unwrap()
            .starts_with("widgets.example.com \"a\" is invalid: metadata.resourceVersion")
    );
    let scaled = api.merge(&path, &json!({"spec": {"size": 2}})).await.ok();
    assert_eq!(scaled["metadata"]["generation"], 2);
    let reported = api
        .merge(&format!("{path}/status"), &json!({"status": {"size": 2}, "spec": {"size": 9}}))
        .await
        .ok();
    assert_eq!((&reported["spec"]["size"], &reported["status"]["size"]), (&json!(2), &json!(2)));
    assert_eq!(reported["metadata"]["generation"], 2);
    assert_eq!(api.get(&format!("{path}/scale")).await.ok()["spec"]["replicas"], 2);
    api.patch(&path, "application/strategic-merge-patch+json", &json!({})).await.refused(415);
    let absent = api.get(&format!("{path}/nothing")).await.refused(404);
    assert_eq!(absent["message"], "widgets.example.com \"a\" not found");
    let red = api.get(&format!("{WIDGETS}?fieldSelector=spec.color%3Dred")).await.ok();
    assert_eq!(red["metadata"]["continue"], "", "their lists always say how to go on");
    assert_eq!(names(&red), ["a"]);
    let blue = api.get(&format!("{WIDGETS}?fieldSelector=spec.color%3Dblue")).await.ok();
    assert!(names(&blue).is_empty());
    api.delete(&path).await.ok();
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn the_schema_prunes_and_validates() {
    let api = with_widgets().await;
    let mut object = widget("a", 1);
    object["spec"]["unknown"] = true.into();
    let answer = api.post(WIDGETS, &object).await;
    assert!(answer.headers["warning"].to_str().unwrap().contains("unknown field"));
    assert!(answer.ok()["spec"].get("unknown").is_none());
    let mut strict = widget("b", 1);
    strict["spec"]["unknown"] = true.into();
    let status = api.post(&format!("{WIDGETS}?fieldValidation=Strict"), &strict).await.refused(400);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("strict decoding error: unknown field \"spec.unknown\"")
    );
    let status = api.post(WIDGETS, &widget("c", -1)).await.refused(422);
    assert_eq!(status["details"]["causes"][0]["field"], "spec.size");
    assert_eq!(names(&api.get(WIDGETS).await.ok()), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn every_served_version_shows_the_same_object() {
    let api = with_widgets().await;
    let created = api.post(WIDGETS, &widget("a", 1)).await.ok();
    let other = "/apis/example.com/v2/namespaces/default/widgets";
    let second = api.get(&format!("{other}/a")).await.ok();
    assert_eq!(second["apiVersion"], "example.com/v2");
    assert_eq!(second["metadata"]["uid"], created["metadata"]["uid"]);
    let patched = api.merge(&format!("{other}/a"), &json!({"spec": {"size": 4}})).await.ok();
    assert_eq!(patched["apiVersion"], "example.com/v2");
    let first = api.get(&format!("{WIDGETS}/a")).await.ok();
    assert_eq!(
        (first["apiVersion"].as_str(), &first["spec"]["size"]),
        (Some("example.com/v1"), &json!(4))
    );
}

#[tokio::test(start_paused = true)]
async fn printer_columns_make_the_table() {
    let api = with_widgets().await;
    api.post(WIDGETS, &widget("a", 7)).await.ok();
    let table = api.get_as(WIDGETS, "application/json;as=Table;v=v1;g=meta.k8s.io").await.ok();
    let columns: Vec<_> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|c| c["name"].clone()).collect();
    assert_eq!(columns[..2], [json!("Name"), json!("Size")]);
    assert_eq!(table["rows"][0]["cells"][1], 7);
}

#[tokio::test(start_paused = true)]
async fn a_changed_definition_is_served_as_changed() {
    let api = with_widgets().await;
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let mut changed = api.get(&path).await.ok();
    changed["spec"]["versions"][1]["served"] = false.into();
    let changed = api.put(&path, &changed).await.ok();
    assert_eq!(condition(&changed, "Established")["status"], "True");
    api.get("/apis/example.com/v2/widgets").await.no_page();
    api.get(WIDGETS).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_deleted_definition_takes_its_instances_with_it() {
    let api = with_widgets().await;
    api.post(WIDGETS, &widget("a", 1)).await.ok();
    api.post(WIDGETS, &widget("b", 1)).await.ok();
    let mut events = api.watch(&format!("{WIDGETS}?watch=1")).await;
    events.brief().await;
    events.brief().await;
    api.delete(&format!("{DEFINITIONS}/widgets.example.com")).await.ok();
    assert_eq!(events.brief().await.0, "DELETED");
    assert_eq!(events.brief().await.0, "DELETED");
    until_gone(&api, "widgets.example.com").await;
    api.get(WIDGETS).await.no_page();
    api.get("/apis/example.com").await.no_page();
    api.post(DEFINITIONS, &definition()).await.ok();
    assert!(names(&api.get(WIDGETS).await.ok()).is_empty());
}

#[tokio::test(start_paused = true)]
async fn definitions_are_loaded_from_the_store() {
    let api = with_widgets().await;
    let created = api.post(WIDGETS, &widget("a", 1)).await.ok();
    let again = Api::over(api.store.clone()).await;
    let loaded = again.get(&format!("{WIDGETS}/a")).await.ok();
    assert_eq!(version(&loaded), version(&created));
}

#[tokio::test(start_paused = true)]
async fn a_definition_with_mistakes_is_invalid() {
    let api = Api::start().await;
    let broken = |change: fn(&mut Value)| {
        let mut definition = definition();
        change(&mut definition);
        definition
    };
    for (definition, field) in [
        (broken(|d| d["metadata"]["name"] = "x.example.com".into()), "metadata.name"),
        (broken(|d| d["spec"]["scope"] = "Galaxy".into()), "spec.scope"),
        (broken(|d| d["spec"]["versions"][1]["storage"] = true.into()), "spec.versions"),
        (
            broken(|d| d["spec"]["versions"][0]["schema"] = json!({})),
            "spec.versions[0].schema.openAPIV3Schema",
        ),
    ] {
        let status = api.post(DEFINITIONS, &definition).await.refused(422);
        let causes = status["details"]["causes"].as_array().unwrap();
        assert!(causes.iter().any(|cause| cause["field"] == field), "{field}: {status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_definition_says_something_else() {
    let api = Api::start().await;
    let created = api.post(DEFINITIONS, &definition()).await.ok();
    let path = format!("{DEFINITIONS}/widgets.example.com");
    let mut events = api.watch(&format!("{WIDGETS}?watch=1")).await;
    // What only concerns the definition's own metadata or status changes nothing.
    api.merge(&path, &json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
    assert!(events.is_silent().await);
    let mut wanted = api.get(&path).await.ok();
    wanted["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["description"] = "new".into();
    api.put(&path, &wanted).await.ok();
    assert_eq!(events.next().await, None, "the watch knows the definition as it was");
    assert_eq!(api.get(WIDGETS).await.code, 200, "{created}");
}
