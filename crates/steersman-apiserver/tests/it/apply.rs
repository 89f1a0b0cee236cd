//! Server-side apply as clients meet it: subresources, versions, custom resources, refusals.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{Answer, Api, CONFIG_MAPS, config_map, deployment, version};
use crate::webhooks::{MUTATING, configure, patched, serve_here, webhook};

const APPLY: &str = "application/apply-patch+yaml";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// Applies a body as a manager.
pub(crate) async fn apply(api: &Api, path: &str, manager: &str, body: &Value) -> Answer {
    api.patch(&format!("{path}?fieldManager={manager}"), APPLY, body).await
}

/// The entry of a manager, without its time.
fn entry(object: &Value, manager: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let mut entry =
        entries.iter().find(|entry| entry["manager"] == manager).cloned().unwrap_or_default();
    if let Some(entry) = entry.as_object_mut() {
        entry.remove("time");
    }
    entry
}

fn scale(replicas: i64) -> Value {
    json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "web"}, "spec": {"replicas": replicas},
    })
}

#[tokio::test(start_paused = true)]
async fn a_scale_owns_the_replicas_of_its_object() {
    let api = Api::start().await;
    let path = format!("{DEPLOYMENTS}/web");
    apply(&api, &path, "ci", &deployment("web", 2)).await.ok();
    let scaled = format!("{path}/scale");
    let status = apply(&api, &scaled, "hpa", &scale(5)).await.refused(409);
    assert_eq!(
        status["message"],
        "Apply failed with 1 conflict: conflict with \"ci\": .spec.replicas"
    );
    let forced = format!("{scaled}?fieldManager=hpa&force=true");
    assert_eq!(api.patch(&forced, APPLY, &scale(5)).await.ok()["spec"]["replicas"], 5);
    let object = api.get(&path).await.ok();
    assert_eq!(object["spec"]["replicas"], 5);
    assert_eq!(
        entry(&object, "hpa"),
        json!({
            "manager": "hpa", "operation": "Apply", "apiVersion": "apps/v1", "subresource": "scale",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
        })
    );
    let status = apply(&api, &path, "ci", &deployment("web", 2)).await.refused(409);
    assert_eq!(
        status["message"],
        "Apply failed with 1 conflict: conflict with \"hpa\" with subresource \"scale\": .spec.replicas"
    );
    assert!(entry(&object, "ci")["fieldsV1"]["f:spec"].get("f:replicas").is_none());

    api.merge(&format!("{scaled}?fieldManager=ops"), &json!({"spec": {"replicas": 7}})).await.ok();
    let object = api.get(&path).await.ok();
    assert_eq!(entry(&object, "hpa"), Value::Null);
    assert_eq!(entry(&object, "ops")["subresource"], "scale");
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let is_timeless = |entry: &Value| entry.get("time").is_none();
    assert!(entries.iter().all(|entry| is_timeless(entry) == (entry["subresource"] == "scale")));
    apply(&api, &scaled, "hpa", &deployment("web", 1)).await.refused(400);
    apply(&api, &format!("{DEPLOYMENTS}/none/scale"), "hpa", &scale(1)).await.refused(400);
}

#[tokio::test(start_paused = true)]
async fn an_apply_must_be_of_its_paths_kind_and_name() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    let mut other = config_map("a", &json!({}));
    other["kind"] = json!("Secret");
    let status = apply(&api, &path, "ci", &other).await.refused(400);
    assert_eq!(status["message"], "invalid object type: /v1, Kind=Secret");
    let status = apply(&api, &path, "ci", &json!({"data": {}})).await.refused(400);
    assert_eq!(status["message"], "invalid object type: /, Kind=");
    let odd = json!({"apiVersion": "a/b/c", "kind": "ConfigMap"});
    let status = apply(&api, &path, "ci", &odd).await.refused(400);
    assert_eq!(status["message"], "invalid object type: /, Kind=");
    let status = apply(&api, &path, "ci", &config_map("b", &json!({}))).await.refused(400);
    assert_eq!(
        status["message"],
        "the name of the object (b) does not match the name on the URL (a)"
    );
    let mut managed = config_map("a", &json!({}));
    managed["metadata"]["managedFields"] = json!([]);
    let status = apply(&api, &path, "ci", &managed).await.refused(400);
    assert_eq!(status["message"], "metadata.managedFields must be nil");
    let mut unknown = config_map("a", &json!({}));
    unknown["nope"] = json!(1);
    let status = apply(&api, &path, "ci", &unknown).await.refused(500);
    assert!(status["message"].as_str().unwrap().ends_with(": .nope: field not declared in schema"));
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn an_apply_with_an_identity_does_not_create() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    let mut with_uid = config_map("a", &json!({}));
    with_uid["metadata"]["uid"] = json!("1");
    let status = apply(&api, &path, "ci", &with_uid).await.refused(409);
    assert_eq!(
        status["message"],
        "Operation cannot be fulfilled on configmaps \"a\": uid mismatch: the provided object \
         specified uid 1, and no existing object was found"
    );
    let created = apply(&api, &path, "ci", &config_map("a", &json!({"k": "1"}))).await.ok();
    let mut stale = config_map("a", &json!({"k": "2"}));
    stale["metadata"]["resourceVersion"] = json!("1");
    apply(&api, &path, "ci", &stale).await.refused(409);
    stale["metadata"]["resourceVersion"] = created["metadata"]["resourceVersion"].clone();
    assert_eq!(apply(&api, &path, "ci", &stale).await.ok()["data"]["k"], "2");
    apply(&api, &path, "ci", &stale).await.refused(409);
}

#[tokio::test(start_paused = true)]
async fn a_version_of_nothing_does_not_keep_an_apply_from_creating() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    let mut body = config_map("a", &json!({"k": "1"}));
    body["metadata"]["resourceVersion"] = json!("x");
    apply(&api, &path, "ci", &body).await.refused(500);
    body["metadata"]["resourceVersion"] = json!("7");
    assert_eq!(apply(&api, &path, "ci", &body).await.code, 201);
}

#[tokio::test(start_paused = true)]
async fn what_a_webhook_undoes_is_no_change() {
    let api = Api::start().await;
    let undo = json!([{"op": "add", "path": "/data/k", "value": "theirs"}]);
    let asked = serve_here(&api, move |_| patched(&undo));
    configure(&api, MUTATING, "a", &[webhook("undo")]).await;
    let path = format!("{CONFIG_MAPS}/a");
    let mine = config_map("a", &json!({"k": "mine"}));
    let created = apply(&api, &path, "ci", &mine).await.ok();
    assert_eq!(created["data"]["k"], "theirs");
    tokio::time::advance(Duration::from_secs(5)).await;
    let asked_before = asked.count();
    assert_eq!(apply(&api, &path, "ci", &mine).await.ok(), created);
    assert!(asked.count() > asked_before);
}

#[tokio::test(start_paused = true)]
async fn a_dry_apply_shows_and_stores_nothing() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    let body = config_map("a", &json!({"k": "1"}));
    let dry = api.patch(&format!("{path}?fieldManager=ci&dryRun=All"), APPLY, &body).await;
    assert_eq!((dry.code, dry.ok()["data"]["k"].as_str()), (201, Some("1")));
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn managers_of_another_version_keep_their_fields() {
    let api = Api::start().await;
    let hpa = |version: &str, spec: Value| {
        let mut spec = spec;
        spec["scaleTargetRef"] =
            json!({"kind": "Deployment", "name": "web", "apiVersion": "apps/v1"});
        json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
               "metadata": {"name": "web"}, "spec": spec})
    };
    let path = |version: &str| {
        format!("/apis/autoscaling/{version}/namespaces/default/horizontalpodautoscalers/web")
    };
    let first = hpa("v2", json!({"maxReplicas": 5, "minReplicas": 2}));
    apply(&api, &path("v2"), "ci", &first).await.ok();
    let same = hpa("v1", json!({"maxReplicas": 5}));
    let merged = apply(&api, &path("v1"), "ops", &same).await.ok();
    assert_eq!(entry(&merged, "ci")["apiVersion"], "autoscaling/v2");
    assert_eq!(entry(&merged, "ops")["apiVersion"], "autoscaling/v1");
    let other = hpa("v1", json!({"maxReplicas": 9}));
    let status = apply(&api, &path("v1"), "ops", &other).await.refused(409);
    assert_eq!(
        status["message"],
        "Apply failed with 1 conflict: conflict with \"ci\": .spec.maxReplicas"
    );
    // In another version it is the same applier, and what it leaves out goes.
    let less = hpa("v1", json!({"maxReplicas": 5}));
    let merged = apply(&api, &path("v1"), "ci", &less).await.ok();
    assert_eq!(entry(&merged, "ci")["apiVersion"], "autoscaling/v1");
    assert_ne!(merged["spec"]["minReplicas"], 2);
}

#[tokio::test(start_paused = true)]
async fn managed_fields_are_reset_on_demand_and_nonsense_is_ignored() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    let created = apply(&api, &path, "ci", &config_map("a", &json!({"k": "1"}))).await.ok();
    let nonsense = json!({"metadata": {"managedFields": [{"manager": "x", "operation": "Guess"}]}});
    let kept = api.merge(&path, &nonsense).await.ok();
    assert_eq!(kept["metadata"]["managedFields"], created["metadata"]["managedFields"]);
    assert_eq!(version(&kept), version(&created));
    for nobody in [json!([]), json!([{}])] {
        let reset = json!({"metadata": {"managedFields": nobody}});
        let reset = api.merge(&format!("{path}?dryRun=All"), &reset).await.ok();
        assert!(reset["metadata"].get("managedFields").is_none(), "{reset}");
    }
    api.merge(&path, &json!({"metadata": {"managedFields": []}})).await.ok();
    let status = apply(&api, &path, "ops", &config_map("a", &json!({"k": "2"}))).await.refused(409);
    let message = status["message"].as_str().unwrap();
    assert!(message.contains("conflict with \"before-first-apply\" using v1"), "{message}");
}

#[tokio::test(start_paused = true)]
async fn what_the_server_generates_belongs_to_nobody() {
    const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
    let api = Api::start().await;
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}],
        }}},
    });
    let created = api.post(&format!("{JOBS}?fieldManager=me"), &job).await.ok();
    let fields = &entry(&created, "me")["fieldsV1"]["f:spec"];
    assert!(fields["f:template"]["f:spec"]["f:restartPolicy"].is_object(), "{fields}");
    assert!(fields["f:backoffLimit"].is_object(), "defaults are owned: {fields}");
    assert!(fields["f:selector"].is_null(), "{fields}");
    assert!(fields["f:template"]["f:metadata"].is_null(), "{fields}");

    // So whoever created it may go over to apply, which then abandons nothing of the server's.
    let mut moved = created.clone();
    moved["metadata"]["managedFields"][0]["operation"] = "Apply".into();
    api.put(&format!("{JOBS}/once"), &moved).await.ok();
    apply(&api, &format!("{JOBS}/once"), "me", &job).await.ok();

    let pods = "/api/v1/namespaces/default/pods";
    let created = api.post(&format!("{pods}?fieldManager=me"), &crate::api::pod("a")).await.ok();
    let fields = &entry(&created, "me")["fieldsV1"];
    for generated in ["f:priority", "f:preemptionPolicy", "f:tolerations", "f:serviceAccount"] {
        assert!(fields["f:spec"][generated].is_null(), "{generated}: {fields}");
    }
    assert!(fields["f:status"].is_null(), "{fields}");
}

#[tokio::test(start_paused = true)]
async fn a_configuration_without_a_name_creates_nothing() {
    let api = Api::start().await;
    let nameless = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
    let path = format!("{CONFIG_MAPS}/a?fieldManager=m");
    let status = api.patch(&path, "application/apply-patch+yaml", &nameless).await.refused(400);
    assert_eq!(
        status["message"],
        "the name of the object (a based on URL) was undeterminable: name must be provided"
    );
    api.config_map("a", &json!({})).await;
    api.patch(&path, "application/apply-patch+yaml", &nameless).await.ok();
}
