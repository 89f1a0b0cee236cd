//! APIServices of what is served here.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{API_SERVICES, available, tide_definition};
use crate::api::{Api, name, names};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

#[tokio::test(start_paused = true)]
async fn every_version_of_every_group_has_an_api_service() {
    let api = Api::start().await;
    let services = api.get(API_SERVICES).await.ok();
    let mut served: BTreeSet<String> = BTreeSet::from(["v1.".to_owned()]);
    for group in api.get("/apis").await.ok()["groups"].as_array().unwrap() {
        for version in group["versions"].as_array().unwrap() {
            let (version, group) = (version["version"].as_str(), group["name"].as_str());
            served.insert(format!("{}.{}", version.unwrap(), group.unwrap()));
        }
    }
    served.remove("v1.apiregistration.k8s.io");
    let found: BTreeSet<String> = names(&services).into_iter().map(ToOwned::to_owned).collect();
    assert_eq!(found, served);
    for service in services["items"].as_array().unwrap() {
        let condition = &service["status"]["conditions"][0];
        assert_eq!(condition["reason"], "Local", "{service}");
        assert_eq!(condition["message"], "Local APIServices are always available");
        assert_eq!(
            service["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"],
            "onstart"
        );
    }
    let apps = api.get(&format!("{API_SERVICES}/v1.apps")).await.ok();
    assert_eq!(
        apps["spec"],
        json!({"group": "apps", "version": "v1", "groupPriorityMinimum": 17800, "versionPriority": 15})
    );
    let core = api.get(&format!("{API_SERVICES}/v1.")).await.ok();
    assert_eq!(
        core["spec"],
        json!({"version": "v1", "groupPriorityMinimum": 18000, "versionPriority": 1})
    );
}

/// What the server writes at once is what it would come to by itself.
#[tokio::test(start_paused = true)]
async fn an_update_that_changes_nothing_changes_nothing() {
    let api = Api::start().await;
    let path = format!("{API_SERVICES}/v1.apps");
    let before = api.get(&path).await.ok();
    assert_eq!(api.put(&path, &before).await.ok(), before);
    let owners = before["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(owners.len(), 1, "nobody has written the condition: {owners:?}");
}

#[tokio::test(start_paused = true)]
async fn a_definition_has_api_services_as_long_as_it_serves_their_versions() {
    let api = Api::start().await;
    api.post(DEFINITIONS, &tide_definition()).await.ok();
    let path = format!("{API_SERVICES}/v1.sea.test");
    let service = api.get(&path).await.ok();
    assert_eq!(
        service["spec"],
        json!({"group": "sea.test", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100})
    );
    let labels = &service["metadata"]["labels"];
    assert_eq!(labels["kube-aggregator.kubernetes.io/automanaged"], "true");
    assert_eq!(service["status"]["conditions"][0]["reason"], "Local");

    // Whoever deletes or changes it does so in vain.
    api.delete(&path).await.ok();
    let again = api.get(&path).await.ok();
    assert_ne!(again["metadata"]["uid"], service["metadata"]["uid"]);
    api.merge(&path, &json!({"spec": {"groupPriorityMinimum": 5}})).await.ok();
    assert_eq!(api.get(&path).await.ok()["spec"]["groupPriorityMinimum"], 1000);

    let two = json!({"spec": {"versions": [
        tide_definition()["spec"]["versions"][0],
        {"name": "v2", "served": true, "storage": false,
         "schema": {"openAPIV3Schema": {"type": "object"}}},
    ]}});
    let definition = format!("{DEFINITIONS}/tides.sea.test");
    api.merge(&definition, &two).await.ok();
    api.get(&format!("{API_SERVICES}/v2.sea.test")).await.ok();
    let one = json!({"spec": {"versions": [tide_definition()["spec"]["versions"][0]]}});
    api.merge(&definition, &one).await.ok();
    api.get(&format!("{API_SERVICES}/v2.sea.test")).await.refused(404);
    api.get(&path).await.ok();
    api.delete(&definition).await.ok();
    api.get(&path).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn a_built_in_one_that_is_deleted_comes_back_at_the_next_start() {
    let api = Api::start().await;
    let path = format!("{API_SERVICES}/v1.apps");
    api.delete(&path).await.ok();
    api.merge(&format!("{API_SERVICES}/v1.batch"), &json!({"spec": {"versionPriority": 3}}))
        .await
        .ok();
    api.get(&path).await.refused(404);
    let again = Api::over(Arc::clone(&api.store)).await;
    again.get(&path).await.ok();
    let batch = again.get(&format!("{API_SERVICES}/v1.batch")).await.ok();
    assert_eq!(batch["spec"]["versionPriority"], 15);
    // A third start finds nothing to do.
    let before = revision(&again).await;
    let third = Api::over(Arc::clone(&api.store)).await;
    assert_eq!(revision(&third).await, before);
}

async fn revision(api: &Api) -> Value {
    api.get(API_SERVICES).await.ok()["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (name(item).to_owned(), item["metadata"]["resourceVersion"].clone()))
        .collect::<serde_json::Map<String, Value>>()
        .into()
}

#[tokio::test(start_paused = true)]
async fn one_that_somebody_made_without_a_service_is_local_as_well() {
    let api = Api::start().await;
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.mine.test"},
        "spec": {"group": "mine.test", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 1},
    });
    api.post(API_SERVICES, &service).await.ok();
    available(&api, "v1.mine.test", "Local").await;
    let again = Api::over(Arc::clone(&api.store)).await;
    again.get(&format!("{API_SERVICES}/v1.mine.test")).await.ok();
}
