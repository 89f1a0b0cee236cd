//! Namespaces, and what every cluster has from the start.

use serde_json::json;

use crate::api::{Api, names};

#[tokio::test(start_paused = true)]
async fn the_system_namespaces_and_the_service_of_the_api_exist() {
    let api = Api::start().await;
    let all = api.get("/api/v1/namespaces").await.ok();
    assert_eq!(names(&all), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    for namespace in all["items"].as_array().unwrap() {
        let name = &namespace["metadata"]["name"];
        assert_eq!(namespace["metadata"]["labels"]["kubernetes.io/metadata.name"], *name);
        assert_eq!(namespace["spec"]["finalizers"], json!(["kubernetes"]));
        assert_eq!(namespace["status"]["phase"], "Active");
    }
    let service = api.get("/api/v1/namespaces/default/services/kubernetes").await.ok();
    assert_eq!(service["spec"]["ports"][0]["port"], 443);
}

#[tokio::test(start_paused = true)]
async fn a_second_start_over_the_same_store_changes_nothing() {
    let api = Api::start().await;
    let before = api.get("/api/v1/namespaces").await.ok();
    let again = Api::over(api.store.clone()).await;
    assert_eq!(again.get("/api/v1/namespaces").await.ok()["items"], before["items"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_namespace_is_active_and_labelled() {
    let api = Api::start().await;
    let created = api.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await.ok();
    assert_eq!(created["metadata"]["labels"]["kubernetes.io/metadata.name"], "shop");
    assert_eq!(created["spec"]["finalizers"], json!(["kubernetes"]));
    assert_eq!(created["status"]["phase"], "Active");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_namespace_terminates_until_it_is_finalized() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await.ok();
    let mut going = api.delete("/api/v1/namespaces/shop").await.ok();
    assert_eq!(going["kind"], "Namespace");
    assert_eq!(going["status"]["phase"], "Terminating");
    assert_eq!(going["spec"]["finalizers"], json!(["kubernetes"]));
    assert!(going["metadata"]["deletionTimestamp"].is_string());
    api.delete("/api/v1/namespaces/shop").await.ok();
    api.get("/api/v1/namespaces/shop").await.ok();

    going["spec"]["finalizers"] = json!([]);
    api.put("/api/v1/namespaces/shop/finalize", &going).await.ok();
    api.get("/api/v1/namespaces/shop").await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_is_labelled_with_its_name_whichever_part_of_it_is_written() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await.ok();
    let bare = json!({"metadata": {"name": "shop"}, "spec": {"finalizers": ["kubernetes"]}});
    for path in ["finalize", "status"] {
        let path = format!("/api/v1/namespaces/shop/{path}");
        let written = api.put(&path, &bare).await.ok();
        assert_eq!(written["metadata"]["labels"], json!({"kubernetes.io/metadata.name": "shop"}));
    }
}

#[tokio::test(start_paused = true)]
async fn a_plain_update_does_not_finalize_a_namespace() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await.ok();
    let mut going = api.delete("/api/v1/namespaces/shop").await.ok();
    going["spec"]["finalizers"] = json!([]);
    api.put("/api/v1/namespaces/shop", &going).await.ok();
    let still = api.get("/api/v1/namespaces/shop").await.ok();
    assert_eq!(still["spec"]["finalizers"], json!(["kubernetes"]));
}

#[tokio::test(start_paused = true)]
async fn the_namespaces_of_the_system_may_not_be_deleted() {
    let api = Api::start().await;
    let status = api.delete("/api/v1/namespaces/default").await.refused(403);
    assert_eq!(
        status["message"],
        "namespaces \"default\" is forbidden: this namespace may not be deleted"
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_created_in_a_namespace_that_goes_or_never_was() {
    let api = Api::start().await;
    api.post("/api/v1/namespaces", &json!({"metadata": {"name": "shop"}})).await.ok();
    let going = api.delete("/api/v1/namespaces/shop").await.ok();
    assert!(going["metadata"].get("deletionGracePeriodSeconds").is_none());
    let object = json!({"metadata": {"name": "a"}});
    let status = api.post("/api/v1/namespaces/shop/configmaps", &object).await.refused(403);
    assert_eq!(
        status["message"],
        "configmaps \"a\" is forbidden: unable to create new content in namespace shop because \
         it is being terminated"
    );
    let cause = &status["details"]["causes"][0];
    assert_eq!(cause["reason"], "NamespaceTerminating");
    assert_eq!(cause["field"], "metadata.namespace");
    let status = api.post("/api/v1/namespaces/never/configmaps", &object).await.refused(404);
    assert_eq!(status["message"], "namespaces \"never\" not found");
}
