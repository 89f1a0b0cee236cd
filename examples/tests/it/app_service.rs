use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::{ListOptions, Result};
use steersman_examples::app_service::{AppService, app_service, app_services, manifests};
use steersman_testkit::Cluster;

async fn shop(cluster: &Cluster, replicas: i32) -> Result<()> {
    cluster.deploy(&manifests()).await?.run(app_services());
    // The controller looks before there is anything to see.
    cluster.settle().await;
    cluster.client().create(&app_service("shop", replicas)).await?;
    cluster.eventually("shop", |app: &AppService| app.available() == replicas).await
}

#[steersman::test]
async fn an_app_service_becomes_available(cluster: Cluster) -> Result<()> {
    cluster.deploy(&manifests()).await?.run(app_services());
    cluster.client().create(&app_service("shop", 3)).await?;
    cluster.eventually("shop", |app: &AppService| app.available() == 3).await
}

#[steersman::test]
async fn every_step_is_an_object_of_the_api(cluster: Cluster) -> Result<()> {
    shop(&cluster, 3).await?;
    let everything = ListOptions::namespace("default");
    let sets: Vec<ReplicaSet> = cluster.client().list(&everything).await?;
    let pods: Vec<Pod> = cluster.client().list(&everything).await?;
    assert_eq!((sets.len(), pods.len()), (1, 3));
    for pod in pods {
        let status = pod.status.unwrap_or_default();
        assert_eq!(status.phase.as_deref(), Some("Running"));
        assert!(pod.spec.unwrap_or_default().node_name.is_some());
        let owner = &pod.metadata.owner_references.unwrap_or_default()[0];
        assert_eq!(Some(&owner.name), sets[0].metadata.name.as_ref());
    }
    Ok(())
}

#[steersman::test]
async fn a_changed_number_of_replicas_reaches_the_pods(cluster: Cluster) -> Result<()> {
    shop(&cluster, 2).await?;
    let five = Patch::Merge(json!({"spec": {"replicas": 5}}));
    cluster.client().patch::<AppService, _>("shop", &five).await?;
    cluster.eventually("shop", |app: &AppService| app.available() == 5).await?;
    let one = Patch::Merge(json!({"spec": {"replicas": 1}}));
    cluster.client().patch::<AppService, _>("shop", &one).await?;
    cluster.eventually("shop", |app: &AppService| app.available() == 1).await
}

#[steersman::test]
async fn deleting_the_app_service_removes_all_that_it_became(cluster: Cluster) -> Result<()> {
    shop(&cluster, 3).await?;
    let pods: Vec<Pod> = cluster.client().list(&ListOptions::namespace("default")).await?;
    cluster.client().delete::<AppService>("shop", &DeleteParams::default()).await?;
    cluster.gone::<Deployment>("shop").await?;
    for pod in pods {
        cluster.gone::<Pod>(pod.metadata.name.as_deref().unwrap_or_default()).await?;
    }
    let sets: Vec<ReplicaSet> = cluster.client().list(&ListOptions::default()).await?;
    assert!(sets.is_empty());
    Ok(())
}

#[steersman::test]
async fn a_deployment_deleted_by_hand_comes_back(cluster: Cluster) -> Result<()> {
    shop(&cluster, 2).await?;
    let first: Option<Deployment> = cluster.client().get("shop").await?;
    let first = first.and_then(|deployment| deployment.metadata.uid);
    cluster.client().delete::<Deployment>("shop", &DeleteParams::default()).await?;
    cluster
        .eventually("shop", |deployment: &Deployment| {
            let status = deployment.status.as_ref();
            deployment.metadata.uid != first
                && status.is_some_and(|status| status.available_replicas == Some(2))
        })
        .await
}

#[steersman::test]
async fn every_reconcile_knows_why_it_happened(cluster: Cluster) -> Result<()> {
    let mut reconciles = cluster.reconciles();
    shop(&cluster, 1).await?;
    let first = reconciles.recv().await?;
    assert_eq!(first.causes.to_string(), "AppService default/shop created");
    let mut causes = Vec::new();
    while let Ok(record) = reconciles.try_recv() {
        causes.push(record.causes.to_string());
    }
    assert!(
        causes.iter().any(|cause| cause.contains("Deployment default/shop changed its status")),
        "{causes:?}"
    );
    Ok(())
}
