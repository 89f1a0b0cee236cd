//! PATCH, in its four languages.

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::api::{Api, CONFIG_MAPS, config_map, deployment, version};

const JSON: &str = "application/json-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

#[tokio::test(start_paused = true)]
async fn json_patch_tests_and_replaces() {
    let api = Api::start().await;
    api.config_map("a", &json!({"k": "1"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let good = json!([
        {"op": "test", "path": "/data/k", "value": "1"},
        {"op": "replace", "path": "/data/k", "value": "2"},
    ]);
    assert_eq!(api.patch(&path, JSON, &good).await.ok()["data"]["k"], "2");
    api.patch(&path, JSON, &good).await.refused(422);
    api.patch(&path, JSON, &json!({"not": "a list"})).await.refused(400);
    assert_eq!(api.get(&path).await.ok()["data"]["k"], "2");
}

#[tokio::test(start_paused = true)]
async fn strategic_merge_patch_merges_containers_by_name() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 1)).await.ok();
    let sidecar = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "sidecar", "image": "envoy"},
    ]}}}});
    let patched = api.patch(&format!("{DEPLOYMENTS}/web"), STRATEGIC, &sidecar).await.ok();
    let containers = patched["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert_eq!(containers.len(), 2);
    assert_eq!(patched["metadata"]["generation"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_patch_with_a_resource_version_is_conditional() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({"k": "1"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    api.merge(&path, &json!({"data": {"k": "2"}})).await.ok();
    let stale = json!({"metadata": {"resourceVersion": created["metadata"]["resourceVersion"]}, "data": {"k": "3"}});
    let status = api.merge(&path, &stale).await.refused(409);
    assert!(status["message"].as_str().unwrap().contains("the object has been modified"));
    assert_eq!(api.get(&path).await.ok()["data"]["k"], "2");
}

#[tokio::test(start_paused = true)]
async fn patches_without_a_version_do_not_lose_each_other() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let patches = (0..20).map(|index| {
        let body = json!({"data": {format!("k{index}"): "v"}});
        let (api, path) = (&api, &path);
        async move { api.merge(path, &body).await.ok() }
    });
    futures::future::join_all(patches).await;
    assert_eq!(api.get(&path).await.ok()["data"].as_object().unwrap().len(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_patch_cannot_rename_or_retype_an_object() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    api.merge(&path, &json!({"metadata": {"name": "b"}})).await.refused(400);
    api.merge(&path, &json!({"kind": "Secret"})).await.refused(422);
    api.merge(&path, &json!({"metadata": {"name": null}})).await.refused(400);
    let elsewhere = json!({"metadata": {"namespace": "kube-system"}});
    let status = api.merge(&path, &elsewhere).await.refused(400);
    assert_eq!(
        status["message"],
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    api.patch(&path, "application/json", &json!({})).await.refused(415);
    api.merge(&format!("{CONFIG_MAPS}/none"), &json!({})).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn apply_creates_then_updates_and_owns_its_fields() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a?fieldManager=one");
    let answer = api.patch(&path, APPLY, &config_map("a", &json!({"k": "1", "l": "1"}))).await;
    assert_eq!(answer.code, 201);
    let created = answer.ok();
    assert_eq!(created["metadata"]["managedFields"][0]["operation"], "Apply");
    let again = api.patch(&path, APPLY, &config_map("a", &json!({"k": "1", "l": "1"}))).await.ok();
    assert_eq!(version(&again), version(&created));
    let less = api.patch(&path, APPLY, &config_map("a", &json!({"k": "2"}))).await.ok();
    assert_eq!(less["data"], json!({"k": "2"}));
}

#[tokio::test(start_paused = true)]
async fn another_managers_field_is_a_conflict_unless_forced() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    api.patch(&format!("{path}?fieldManager=one"), APPLY, &config_map("a", &json!({"k": "1"})))
        .await
        .ok();
    let two = config_map("a", &json!({"k": "2"}));
    let status = api.patch(&format!("{path}?fieldManager=two"), APPLY, &two).await.refused(409);
    assert_eq!(status["reason"], "Conflict");
    assert_eq!(status["details"]["causes"][0]["reason"], "FieldManagerConflict");
    assert_eq!(status["details"]["causes"][0]["field"], ".data.k");
    let forced = api.patch(&format!("{path}?fieldManager=two&force=true"), APPLY, &two).await.ok();
    assert_eq!(forced["data"]["k"], "2");
}

#[tokio::test(start_paused = true)]
async fn apply_needs_a_field_manager_and_takes_yaml() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    let status = api.patch(&path, APPLY, &config_map("a", &json!({}))).await.refused(422);
    assert_eq!(
        status["message"],
        "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch"
    );
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n";
    let request = Request::builder()
        .method(Method::PATCH)
        .uri(format!("{path}?fieldManager=one"))
        .header(header::CONTENT_TYPE, APPLY)
        .body(Full::new(yaml.into()))
        .unwrap();
    assert_eq!(api.send(request).await.ok()["data"]["k"], "v");
}

#[tokio::test(start_paused = true)]
async fn all_that_is_wrong_with_the_options_is_told_before_the_patch_is_read() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a?dryRun=Some&fieldValidation=Odd");
    let fields = |status: &Value| -> Vec<Value> {
        let causes = status["details"]["causes"].as_array().unwrap();
        causes.iter().map(|cause| cause["field"].clone()).collect()
    };
    let status = api.merge(&format!("{path}&force=true"), &json!([])).await.refused(422);
    assert_eq!(fields(&status), ["force", "dryRun", "fieldValidation"]);
    let status = api.patch(&path, APPLY, &json!([])).await.refused(422);
    assert_eq!(fields(&status), ["fieldManager", "dryRun", "fieldValidation"]);
}

#[tokio::test(start_paused = true)]
async fn apply_of_status_touches_only_status() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 1)).await.ok();
    let mut applied =
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}});
    applied["spec"] = json!({"replicas": 9});
    applied["status"] = json!({"replicas": 3});
    let path = format!("{DEPLOYMENTS}/web/status?fieldManager=controller");
    let applied = api.patch(&path, APPLY, &applied).await.ok();
    assert_eq!(applied["spec"]["replicas"], 1);
    assert_eq!(applied["status"]["replicas"], 3);
    let entries = applied["metadata"]["managedFields"].as_array().unwrap();
    assert!(entries.iter().any(|e| e["manager"] == "controller" && e["subresource"] == "status"));
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_changes_nothing_writes_nothing() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({"k": "1"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let same = api.merge(&path, &json!({"data": {"k": "1", "none": null}})).await.ok();
    assert_eq!(version(&same), version(&created));
    let same = api.patch(&path, STRATEGIC, &json!({"data": {"k": "1"}})).await.ok();
    assert_eq!(version(&same), version(&created));
    assert_eq!(same["metadata"]["managedFields"], created["metadata"]["managedFields"]);
}

#[tokio::test(start_paused = true)]
async fn what_a_patch_leaves_must_be_readable() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 1)).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    let status = api.merge(&path, &json!({"spec": {"replicas": "many"}})).await.refused(422);
    let message = status["message"].as_str().unwrap();
    assert!(message.starts_with(" \"\" is invalid: patch: Invalid value: \"{"), "{message}");
    assert!(message.contains("json: cannot unmarshal string"), "{message}");

    let unknown = json!({"spec": {"nope": 1}});
    let strict = format!("{path}?fieldValidation=Strict");
    let status = api.patch(&strict, STRATEGIC, &unknown).await.refused(422);
    let message = status["message"].as_str().unwrap();
    let text = "patch: Invalid value: \"map[spec:map[nope:1]]\": strict decoding error: unknown field \"spec.nope\"";
    assert!(message.ends_with(text), "{message}");
    assert!(api.merge(&path, &unknown).await.headers.contains_key("warning"));
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_no_patch_is_refused() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let odd = "invalid character 'o' looking for beginning of object key string";
    let decoding = format!("error decoding patch: {odd}");
    for (language, expected) in
        [(JSON, &*decoding), (STRATEGIC, odd), ("application/merge-patch+json", &decoding)]
    {
        let request = Request::builder()
            .method(Method::PATCH)
            .uri(&path)
            .header(header::CONTENT_TYPE, language)
            .body(Full::new("{oops".into()))
            .unwrap();
        assert_eq!(api.send(request).await.refused(400)["message"], expected);
    }
    let force = api.merge(&format!("{path}?force=true"), &json!({})).await.refused(422);
    assert_eq!(
        force["message"],
        "PatchOptions.meta.k8s.io \"\" is invalid: force: Forbidden: may not be specified for non-apply patch"
    );
    let many = vec![json!({"op": "test", "path": "/kind", "value": "ConfigMap"}); 10_001];
    api.patch(&path, JSON, &json!(many)).await.refused(413);
}

#[tokio::test(start_paused = true)]
async fn a_strategic_patch_of_the_wrong_type_is_told_which_types_do_not_fit() {
    let api = Api::start().await;
    api.post(DEPLOYMENTS, &deployment("web", 1)).await.ok();
    let path = format!("{DEPLOYMENTS}/web");
    for (patch, shown, why) in [
        (json!({"spec": "x"}), "map[spec:x]", "cannot restore struct from: string"),
        (
            json!({"spec": {"replicas": "x"}}),
            "map[spec:map[replicas:x]]",
            "unrecognized type: int32",
        ),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "map[metadata:map[labels:map[a:1]]]",
            "cannot convert int64 to string",
        ),
    ] {
        let status = api.patch(&path, STRATEGIC, &patch).await.refused(422);
        let expected = format!(" \"\" is invalid: patch: Invalid value: \"{shown}\": {why}");
        assert_eq!(status["message"], expected);
    }
    // Other patches are read as JSON, and told so.
    let status = api.merge(&path, &json!({"spec": {"replicas": "x"}})).await.refused(422);
    assert!(status["message"].as_str().unwrap().contains("json: cannot unmarshal"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn nothing_changes_nothing_and_a_strategic_patch_cannot_change_the_type() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({"k": "v"})).await;
    let path = format!("{CONFIG_MAPS}/a");
    for content_type in [JSON, STRATEGIC] {
        assert_eq!(api.patch(&path, content_type, &json!(null)).await.ok(), created);
    }
    let other = json!({"apiVersion": "other/v1", "kind": "Other"});
    assert_eq!(api.patch(&path, STRATEGIC, &other).await.ok(), created);
    api.merge(&path, &other).await.refused(422);
}
