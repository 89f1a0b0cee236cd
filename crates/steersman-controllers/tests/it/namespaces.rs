//! Namespaces, what they contain, and their end.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::{ListOptions, Result};
use steersman_testkit::Cluster;

use crate::objects::{config_map, deployment, object, pod};

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
    let team: Namespace = cluster.client().get("team").await?.unwrap();
    let told: Vec<String> = conditions(&team);
    assert_eq!(told.len(), 5, "{told:?}");
    for (index, text) in [
        (3, "Some resources are remaining: configmaps. has 1 resource instances"),
        (4, "has finalizers remaining: example.com/hold in 1 resource instances"),
    ] {
        assert!(told[index].starts_with("True") && told[index].ends_with(text), "{told:?}");
    }
    assert!(told[..3].iter().all(|condition| condition.starts_with("False")), "{told:?}");
    let mut held: ConfigMap = cluster.client().get("team/held").await?.unwrap();
    held.metadata.finalizers = None;
    cluster.client().update(&held).await?;
    cluster.gone::<Namespace>("team").await
}

/// Status, reason and message of each condition.
fn conditions(namespace: &Namespace) -> Vec<String> {
    let all = namespace.status.as_ref().and_then(|status| status.conditions.as_ref());
    let said = |text: &Option<String>| text.clone().unwrap_or_default();
    all.into_iter()
        .flatten()
        .map(|c| format!("{} {} {}", c.status, said(&c.reason), said(&c.message)))
        .collect()
}

#[steersman::test]
async fn pods_go_from_a_namespace_before_anything_else_and_nothing_is_told_of_them(
    cluster: Cluster,
) -> Result<()> {
    create_namespace(&cluster, "team").await?;
    let mut held = pod("held", &json!({}));
    held.metadata.namespace = Some("team".into());
    held.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    cluster.client().create(&held).await?;
    let mut settings = config_map("settings", &[]);
    settings.metadata.namespace = Some("team".into());
    cluster.client().create(&settings).await?;
    cluster.client().delete::<Namespace>("team", &DeleteParams::default()).await?;
    let is_well = |text: &String| text.starts_with("False");
    let told = |team: &Namespace| conditions(team).len() == 5;
    cluster.eventually("team", told).await?;
    cluster.advance(std::time::Duration::from_secs(60)).await;
    let team: Namespace = cluster.client().get("team").await?.unwrap();
    assert!(conditions(&team).iter().all(is_well), "{:?}", conditions(&team));
    assert!(cluster.client().get::<ConfigMap>("team/settings").await?.is_some());
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.client().patch::<Pod, _>("team/held", &release).await?;
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

#[steersman::test]
async fn the_certificates_of_the_api_server_are_in_every_namespace_and_come_back(
    cluster: Cluster,
) -> Result<()> {
    create_namespace(&cluster, "team").await?;
    let published = |map: &ConfigMap| {
        let (data, annotations) = (&map.data, &map.metadata.annotations);
        let text = data.as_ref().and_then(|data| data.get("ca.crt"));
        text.is_some_and(|text| text.starts_with("-----BEGIN CERTIFICATE-----"))
            && data.as_ref().is_some_and(|data| data.len() == 1)
            && annotations.as_ref().is_some_and(|all| all.contains_key("kubernetes.io/description"))
    };
    for key in ["default/kube-root-ca.crt", "team/kube-root-ca.crt"] {
        cluster.eventually(key, published).await?;
        let first: ConfigMap = cluster.client().get(key).await?.unwrap();
        let damage = Patch::Merge(json!({"data": {"ca.crt": "mine", "more": "x"}}));
        cluster.client().patch::<ConfigMap, _>(key, &damage).await?;
        cluster.eventually(key, published).await?;
        cluster.client().delete::<ConfigMap>(key, &DeleteParams::default()).await?;
        let another = |map: &ConfigMap| published(map) && map.metadata.uid != first.metadata.uid;
        cluster.eventually(key, another).await?;
    }
    cluster.client().delete::<Namespace>("team", &DeleteParams::default()).await?;
    cluster.gone::<Namespace>("team").await
}
