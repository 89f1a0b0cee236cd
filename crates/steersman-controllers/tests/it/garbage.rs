//! What has lost its owners is collected.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::DeleteParams;
use serde_json::json;
use steersman::Result;
use steersman_testkit::Cluster;

use crate::objects::{config_map, object};

#[steersman::test]
async fn an_object_that_appears_after_its_owner_has_gone_is_collected(
    cluster: Cluster,
) -> Result<()> {
    let owner: ConfigMap = cluster.client().create(&config_map("owner", &[])).await?;
    cluster.client().delete::<ConfigMap>("owner", &DeleteParams::default()).await?;
    cluster.client().create(&config_map("late", &[&owner])).await?;
    cluster.gone::<ConfigMap>("late").await
}

#[steersman::test]
async fn one_owner_is_enough_to_stay_and_the_other_is_forgotten(cluster: Cluster) -> Result<()> {
    let a: ConfigMap = cluster.client().create(&config_map("a", &[])).await?;
    let b: ConfigMap = cluster.client().create(&config_map("b", &[])).await?;
    cluster.client().create(&config_map("shared", &[&a, &b])).await?;
    cluster.client().delete::<ConfigMap>("a", &DeleteParams::default()).await?;
    let only_b = |shared: &ConfigMap| {
        let owners: Vec<_> = shared.metadata.owner_references.iter().flatten().collect();
        owners.len() == 1 && owners[0].name == "b"
    };
    cluster.eventually("shared", only_b).await?;
    cluster.client().delete::<ConfigMap>("b", &DeleteParams::default()).await?;
    cluster.gone::<ConfigMap>("shared").await
}

#[steersman::test]
async fn a_foreground_deletion_takes_the_whole_tree_before_its_root(
    cluster: Cluster,
) -> Result<()> {
    let root: ConfigMap = cluster.client().create(&config_map("root", &[])).await?;
    let branch: ConfigMap = cluster.client().create(&config_map("branch", &[&root])).await?;
    let mut leaf = config_map("leaf", &[&branch]);
    leaf.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    cluster.client().create(&leaf).await?;
    cluster.advance(Duration::from_secs(1)).await;
    cluster.client().delete::<ConfigMap>("root", &DeleteParams::foreground()).await?;
    let dying = |map: &ConfigMap| map.metadata.deletion_timestamp.is_some();
    cluster.eventually("leaf", dying).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert!(cluster.client().get::<ConfigMap>("root").await?.is_some(), "the leaf is still there");
    let mut leaf: ConfigMap = cluster.client().get("leaf").await?.unwrap();
    leaf.metadata.finalizers = None;
    cluster.client().update(&leaf).await?;
    for name in ["leaf", "branch", "root"] {
        cluster.gone::<ConfigMap>(name).await?;
    }
    Ok(())
}

#[steersman::test]
async fn owners_in_a_circle_can_be_deleted_in_the_foreground(cluster: Cluster) -> Result<()> {
    let a: ConfigMap = cluster.client().create(&config_map("a", &[])).await?;
    let b: ConfigMap = cluster.client().create(&config_map("b", &[&a])).await?;
    let mut a = a;
    a.metadata.owner_references = config_map("a", &[&b]).metadata.owner_references;
    cluster.client().update(&a).await?;
    cluster.advance(Duration::from_secs(1)).await;
    cluster.client().delete::<ConfigMap>("a", &DeleteParams::foreground()).await?;
    cluster.gone::<ConfigMap>("a").await?;
    cluster.gone::<ConfigMap>("b").await
}

#[steersman::test]
async fn custom_resources_own_and_are_owned(cluster: Cluster) -> Result<()> {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    let definition: CustomResourceDefinition = object(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object",
                           "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    }));
    cluster.client().create(&definition).await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Boat"));
    let boats: kube::Api<DynamicObject> =
        kube::Api::namespaced_with(cluster.client().kube().clone(), "default", &kind);
    cluster.advance(Duration::from_secs(1)).await;
    let boat = boats.create(&Default::default(), &DynamicObject::new("argo", &kind)).await?;
    let mut sail = config_map("sail", &[]);
    sail.metadata.owner_references =
        kube::Resource::owner_ref(&boat, &kind).map(|owner| vec![owner]);
    cluster.client().create(&sail).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert!(cluster.client().get::<ConfigMap>("sail").await?.is_some());
    boats.delete("argo", &DeleteParams::default()).await?;
    cluster.gone::<ConfigMap>("sail").await
}
