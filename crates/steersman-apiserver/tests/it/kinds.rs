//! Every built-in kind through the server: a small object is taken, a wrong one refused.

use serde_json::{Value, json};
use steersman_rules::patch::merge_patch;

use crate::api::Api;

/// The table that the rules themselves are tested with.
const EXAMPLES: &str = include_str!("../../../steersman-rules/src/kinds/examples.txt");

/// One kind: where it is served, a sound object, and a change that makes it wrong.
pub(crate) struct Example {
    pub(crate) path: String,
    pub(crate) object: Value,
    change: Value,
}

pub(crate) fn examples() -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    for line in EXAMPLES.lines() {
        match line.split_once(' ') {
            Some(("kind", rest)) => examples.push(example(rest)),
            Some(("refuses", patch)) => {
                let change = &mut examples.last_mut().unwrap().change;
                if change.is_null() {
                    *change = serde_json::from_str(patch).unwrap();
                }
            }
            _ => {}
        }
    }
    examples
}

fn example(line: &str) -> Example {
    let mut words = line.splitn(5, ' ');
    let [scope, version, plural, kind, object] = std::array::from_fn(|_| words.next().unwrap());
    let root = if version.contains('/') { "apis" } else { "api" };
    let namespace = if scope == "ns" { "namespaces/default/" } else { "" };
    let mut object: Value = serde_json::from_str(object).unwrap();
    object["apiVersion"] = json!(version);
    object["kind"] = json!(kind);
    if object["metadata"]["name"].is_null() {
        object["metadata"]["name"] = json!("x");
    }
    Example { path: format!("/{root}/{version}/{namespace}{plural}"), object, change: Value::Null }
}

#[tokio::test(start_paused = true)]
async fn every_built_in_kind_is_created_when_sound_and_refused_when_not() {
    let api = Api::start().await;
    for example in examples() {
        let change = example.change.to_string();
        let wrong = merge_patch(&example.object, change.as_bytes()).unwrap();
        let status = api.post(&example.path, &wrong).await.refused(422);
        assert!(status["details"]["causes"][0]["field"].is_string(), "{status}");

        let created = api.post(&example.path, &example.object).await;
        assert_eq!(created.code, 201, "{}: {:?}", example.path, created);
        let name = created.ok()["metadata"]["name"].as_str().unwrap().to_owned();
        let path = format!("{}/{name}", example.path);
        let stored = api.get(&path).await.ok();
        // What is stored can be written back.
        api.put(&path, &stored).await.ok();
    }
}

#[tokio::test(start_paused = true)]
async fn the_table_of_examples_has_every_kind_that_can_be_created() {
    let api = Api::start().await;
    let known: Vec<String> = examples().into_iter().map(|example| example.path).collect();
    let groups = api.get("/apis").await.ok();
    let mut roots = vec!["/api/v1".to_owned()];
    for group in groups["groups"].as_array().unwrap() {
        let version = group["preferredVersion"]["groupVersion"].as_str().unwrap();
        roots.push(format!("/apis/{version}"));
    }
    for root in roots {
        let list = api.get(&root).await.ok();
        for resource in list["resources"].as_array().unwrap() {
            let name = resource["name"].as_str().unwrap();
            let verbs = resource["verbs"].as_array().unwrap();
            if name.contains('/')
                || !verbs.contains(&json!("create"))
                || !verbs.contains(&json!("get"))
            {
                continue;
            }
            let place = if resource["namespaced"] == true { "namespaces/default/" } else { "" };
            let path = format!("{root}/{place}{name}");
            assert!(known.contains(&path), "no example of {path}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_lacks_what_is_a_field_of_a_daemon_set() {
    const SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";
    const GENERATION: &str = "deprecated.daemonset.template.generation";
    let api = Api::start().await;
    let set = json!({"metadata": {"name": "a"}, "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "a", "image": "b"}]},
        },
    }});
    let created = api.post(SETS, &set).await.ok();
    assert_eq!(created["metadata"]["annotations"], json!({GENERATION: "1"}));
    let path = format!("{SETS}/a");
    let metadata = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
    let alone = api.get_as(&path, metadata).await.ok();
    assert!(alone["metadata"].get("annotations").is_none(), "{alone}");
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let table = api.get_as(&path, table).await.ok();
    assert!(table["rows"][0]["object"]["metadata"].get("annotations").is_none(), "{table}");
}
