//! DELETE.

use serde_json::json;

use crate::api::{Api, CONFIG_MAPS, config_map, names, pod};

const PODS: &str = "/api/v1/namespaces/default/pods";

#[tokio::test(start_paused = true)]
async fn an_object_that_nothing_holds_is_gone_at_once() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({})).await;
    let status = api.delete(&format!("{CONFIG_MAPS}/a")).await.ok();
    assert_eq!(status["kind"], "Status");
    assert_eq!(status["status"], "Success");
    let details = json!({"name": "a", "kind": "configmaps", "uid": created["metadata"]["uid"]});
    assert_eq!(status["details"], details);
    api.get(&format!("{CONFIG_MAPS}/a")).await.refused(404);
    api.delete(&format!("{CONFIG_MAPS}/a")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_one_is_removed() {
    let api = Api::start().await;
    let path = format!("{CONFIG_MAPS}/a");
    let mut object = config_map("a", &json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/one", "example.com/two"]);
    api.post(CONFIG_MAPS, &object).await.ok();
    let marked = api.delete(&path).await.ok();
    assert_eq!(marked["kind"], "ConfigMap");
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2025-01-01T00:00:00Z");
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 0);

    let added = json!({"metadata": {"finalizers": ["example.com/one", "example.com/new"]}});
    let status = api.merge(&path, &added).await.refused(422);
    assert!(status["message"].as_str().unwrap().contains(
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/new\"}"
    ));
    let kept = json!({"metadata": {"deletionTimestamp": null, "finalizers": ["example.com/one"]}});
    let one = api.merge(&path, &kept).await.ok();
    assert_eq!(one["metadata"]["deletionTimestamp"], "2025-01-01T00:00:00Z");
    api.merge(&path, &json!({"metadata": {"finalizers": null}})).await.ok();
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn preconditions_must_hold() {
    let api = Api::start().await;
    let created = api.config_map("a", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/a");
    let wrong = json!({"preconditions": {"uid": "other"}});
    let status = api.delete_with(&path, &wrong).await.refused(409);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .contains("Precondition failed: UID in precondition: other")
    );
    let wrong = json!({"preconditions": {"resourceVersion": "1"}});
    api.delete_with(&path, &wrong).await.refused(409);
    let right = json!({"preconditions": {
        "uid": created["metadata"]["uid"], "resourceVersion": created["metadata"]["resourceVersion"],
    }});
    api.delete_with(&path, &right).await.ok();
}

#[tokio::test(start_paused = true)]
async fn propagation_policies_become_finalizers() {
    let api = Api::start().await;
    for (name, policy, finalizer) in
        [("a", "Orphan", "orphan"), ("b", "Foreground", "foregroundDeletion")]
    {
        api.config_map(name, &json!({})).await;
        let options = json!({"propagationPolicy": policy});
        let marked = api.delete_with(&format!("{CONFIG_MAPS}/{name}"), &options).await.ok();
        assert_eq!(marked["metadata"]["finalizers"], json!([finalizer]));
    }
    api.config_map("c", &json!({})).await;
    let path = format!("{CONFIG_MAPS}/c?propagationPolicy=Background");
    assert_eq!(api.delete(&path).await.ok()["kind"], "Status");
    api.config_map("d", &json!({})).await;
    let status =
        api.delete(&format!("{CONFIG_MAPS}/d?propagationPolicy=Sometime")).await.refused(422);
    assert!(
        status["message"]
            .as_str()
            .unwrap()
            .starts_with("DeleteOptions.meta.k8s.io \"\" is invalid")
    );
    api.delete(&format!("{CONFIG_MAPS}/d?propagationPolicy=Orphan&orphanDependents=true"))
        .await
        .refused(422);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_of_a_deletion_deletes_nothing() {
    let api = Api::start().await;
    api.config_map("a", &json!({})).await;
    api.delete(&format!("{CONFIG_MAPS}/a?dryRun=All")).await.ok();
    api.delete_with(&format!("{CONFIG_MAPS}/a"), &json!({"dryRun": ["All"]})).await.ok();
    api.get(&format!("{CONFIG_MAPS}/a")).await.ok();
}

#[tokio::test(start_paused = true)]
async fn a_scheduled_pod_ends_gracefully_and_its_grace_only_gets_shorter() {
    let api = Api::start().await;
    let mut object = pod("p");
    object["spec"]["nodeName"] = "node-1".into();
    api.post(PODS, &object).await.ok();
    let marked = api.delete(&format!("{PODS}/p")).await.ok();
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2025-01-01T00:00:30Z");
    assert_eq!(marked["metadata"]["generation"], 2);

    let longer = json!({"gracePeriodSeconds": 60});
    let again = api.delete_with(&format!("{PODS}/p"), &longer).await.ok();
    assert_eq!(again, marked);
    let shorter = json!({"gracePeriodSeconds": 10});
    let again = api.delete_with(&format!("{PODS}/p"), &shorter).await.ok();
    assert_eq!(again["metadata"]["deletionTimestamp"], "2025-01-01T00:00:10Z");
    let now = json!({"gracePeriodSeconds": 0});
    assert_eq!(api.delete_with(&format!("{PODS}/p"), &now).await.ok()["kind"], "Status");
    api.get(&format!("{PODS}/p")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn an_unscheduled_pod_is_gone_at_once() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await.ok();
    assert_eq!(api.delete(&format!("{PODS}/p")).await.ok()["kind"], "Status");
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_by_its_selectors() {
    let api = Api::start().await;
    for (name, app) in [("a", "x"), ("b", "x"), ("c", "y")] {
        let mut object = config_map(name, &json!({}));
        object["metadata"]["labels"] = json!({"app": app});
        api.post(CONFIG_MAPS, &object).await.ok();
    }
    let deleted = api.delete(&format!("{CONFIG_MAPS}?labelSelector=app%3Dx")).await.ok();
    assert_eq!(deleted["kind"], "ConfigMapList");
    assert_eq!(names(&deleted), ["a", "b"]);
    assert_eq!(names(&api.get(CONFIG_MAPS).await.ok()), ["c"]);
}
