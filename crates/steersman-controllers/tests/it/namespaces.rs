//! Namespaces, what they contain, and their end.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::api::DeleteParams;
use serde_json::json;
use steersman::{ListOptions, Result};
use steersman_testkit::Cluster;

use crate::objects::{config_map, deployment, object};

async fn create_namespace(cluster: &Cluster, name: &str) -> Result<()> {
    let namespace: Namespace =
        object(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
    cluster.client().create(&namespace).await.map(drop)
}

#[steersman::test]
async fn deleting_a_namespace_empties_it_first(cluster: Cluster) -> Result<()> {
    create_namespace(&cluster, "team").await?;
    let mut web = deployment("web", 3, "nginx");
    web.metadata.namespace = Some("team".into());
    cluster.client().create(&web).await?;
    let mut settings = config_map("settings", &[]);
    settings.metadata.namespace = Some("team".into());
    cluster.client().create(&settings).await?;
    let up = |web: &Deployment| {
        web.status.as_ref().is_some_and(|status| status.available_replicas == Some(3))
    };
    cluster.eventually("team/web", up).await?;
    cluster.client().delete::<Namespace>("team", &DeleteParams::default()).await?;
    cluster.gone::<Namespace>("team").await?;
    let inside = ListOptions::namespace("team");
    assert!(cluster.client().list::<Pod>(&inside).await?.is_empty());
    assert!(cluster.client().list::<Deployment>(&inside).await?.is_empty());
    assert!(cluster.client().list::<ConfigMap>(&inside).await?.is_empty());
    create_namespace(&cluster, "team").await
}

#[steersman::test]
async fn a_namespace_stays_while_something_in_it_cannot_go(cluster: Cluster) -> Result<()> {
    create_namespace(&cluster, "team").await?;
    let mut held = config_map("held", &[]);
    held.metadata.namespace = Some("team".into());
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    cluster.client().create(&held).await?;
    cluster.client().delete::<Namespace>("team", &DeleteParams::default()).await?;
    cluster.advance(std::time::Duration::from_secs(300)).await;
    assert!(cluster.client().get::<Namespace>("team").await?.is_some());
    let mut held: ConfigMap = cluster.client().get("team/held").await?.unwrap();
    held.metadata.finalizers = None;
    cluster.client().update(&held).await?;
    cluster.gone::<Namespace>("team").await
}

#[steersman::test]
async fn the_default_service_account_comes_back(cluster: Cluster) -> Result<()> {
    create_namespace(&cluster, "team").await?;
    cluster.eventually("team/default", |_: &ServiceAccount| true).await?;
    let first: ServiceAccount = cluster.client().get("team/default").await?.unwrap();
    cluster.client().delete::<ServiceAccount>("team/default", &DeleteParams::default()).await?;
    let another = |account: &ServiceAccount| account.metadata.uid != first.metadata.uid;
    cluster.eventually("team/default", another).await
}
