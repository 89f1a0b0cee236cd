//! What has lost its owners is collected.

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::rbac::v1::ClusterRole;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, PropagationPolicy};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::json;
use steersman::Result;
use steersman_testkit::Cluster;

use crate::events::told;
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
async fn an_owner_of_a_version_that_is_not_served_may_be_there(cluster: Cluster) -> Result<()> {
    let owner: ConfigMap = cluster.client().create(&config_map("owner", &[])).await?;
    let mut kept = config_map("kept", &[&owner]);
    let reference = &mut kept.metadata.owner_references.as_mut().unwrap()[0];
    (reference.api_version, reference.uid) = ("v9".into(), "another".into());
    cluster.client().create(&kept).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let found: Option<ConfigMap> = cluster.client().get("kept").await?;
    assert!(found.is_some(), "nobody can say that its owner is gone");
    Ok(())
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
async fn orphans_lose_the_whole_field_of_their_last_owner(cluster: Cluster) -> Result<()> {
    let owner: ConfigMap = cluster.client().create(&config_map("owner", &[])).await?;
    cluster.client().create(&config_map("orphan", &[&owner])).await?;
    let orphaning = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    cluster.client().delete::<ConfigMap>("owner", &orphaning).await?;
    cluster.gone::<ConfigMap>("owner").await?;
    let orphan: ConfigMap = cluster.client().get("orphan").await?.unwrap();
    assert_eq!(orphan.metadata.owner_references, None);
    Ok(())
}

#[steersman::test]
async fn a_cluster_scoped_object_is_never_collected_for_an_owner_in_a_namespace(
    cluster: Cluster,
) -> Result<()> {
    let owner: ConfigMap = cluster.client().create(&config_map("owner", &[])).await?;
    let mut role: ClusterRole = object(json!({"metadata": {"name": "role"}, "rules": []}));
    role.metadata.owner_references = config_map("x", &[&owner]).metadata.owner_references;
    cluster.client().create(&role).await?;
    cluster.client().create(&config_map("child", &[&owner])).await?;
    cluster.advance(Duration::from_secs(5)).await;
    let uid = owner.metadata.uid.as_deref().unwrap_or_default();
    let why = format!("[v1/ConfigMap, namespace: , name: owner, uid: {uid}] does not exist in");
    let why = format!("OwnerRefInvalidNamespace: ownerRef {why} namespace \"\"");
    let line = format!("garbage-collector-controller Warning {why}");
    assert_eq!(told(&cluster, "ClusterRole").await?, [line]);
    cluster.client().delete::<ConfigMap>("owner", &DeleteParams::default()).await?;
    cluster.gone::<ConfigMap>("child").await?;
    cluster.advance(Duration::from_secs(120)).await;
    assert!(cluster.client().get::<ClusterRole>("role").await?.is_some());
    let uid = owner.metadata.uid.unwrap_or_default();
    assert_eq!(
        told(&cluster, "ClusterRole").await?,
        [format!(
            "garbage-collector-controller Warning OwnerRefInvalidNamespace: ownerRef \
             [v1/ConfigMap, namespace: , name: owner, uid: {uid}] does not exist in namespace \"\""
        )]
    );
    Ok(())
}

#[steersman::test(nodes = 0)]
async fn what_goes_with_its_owner_costs_two_requests_each(cluster: Cluster) -> Result<()> {
    let owner: ConfigMap = cluster.client().create(&config_map("owner", &[])).await?;
    for n in 0..30 {
        cluster.client().create(&config_map(&format!("child-{n}"), &[&owner])).await?;
    }
    cluster.settle().await;
    let record = cluster.audit();
    cluster.client().delete::<ConfigMap>("owner", &DeleteParams::default()).await?;
    cluster.settle().await;
    let requests = record.documents();
    let asked = |verb: &str| {
        let by = |event: &&serde_json::Value| {
            let user = event["user"]["username"].as_str().unwrap_or_default();
            user.ends_with(":generic-garbage-collector")
                && event["stage"] == "ResponseComplete"
                && event["verb"] == verb
        };
        requests.iter().filter(by).count()
    };
    assert_eq!((asked("get"), asked("delete")), (30, 30), "each is looked at, and deleted");
    Ok(())
}

#[steersman::test]
async fn custom_resources_own_and_are_owned(cluster: Cluster) -> Result<()> {
    cluster.client().create(&boats(&[("v1", true)])).await?;
    launch("v1", &cluster).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert!(cluster.client().get::<ConfigMap>("sail").await?.is_some());
    fleet("v1", &cluster).delete("argo", &DeleteParams::default()).await?;
    cluster.gone::<ConfigMap>("sail").await
}

#[steersman::test]
async fn an_owner_that_is_served_in_other_versions_than_before_keeps_its_dependents(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&boats(&[("v1", true)])).await?;
    launch("v1", &cluster).await?;
    cluster.advance(Duration::from_secs(60)).await;
    for versions in [[("v1", true), ("v2", true)], [("v1", false), ("v2", true)]] {
        serve(&versions, &cluster).await?;
        cluster.advance(Duration::from_secs(120)).await;
        assert!(cluster.client().get::<ConfigMap>("sail").await?.is_some(), "{versions:?}");
    }
    fleet("v2", &cluster).delete("argo", &DeleteParams::default()).await?;
    cluster.gone::<ConfigMap>("sail").await
}

#[steersman::test]
async fn an_owner_that_is_not_served_for_a_while_keeps_its_dependents(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&boats(&[("v1", true)])).await?;
    launch("v1", &cluster).await?;
    cluster.advance(Duration::from_secs(60)).await;
    serve(&[("v1", false)], &cluster).await?;
    cluster.advance(Duration::from_secs(120)).await;
    assert!(cluster.client().get::<ConfigMap>("sail").await?.is_some());
    serve(&[("v1", true)], &cluster).await?;
    cluster.advance(Duration::from_secs(120)).await;
    assert!(cluster.client().get::<ConfigMap>("sail").await?.is_some());
    fleet("v1", &cluster).delete("argo", &DeleteParams::default()).await?;
    cluster.gone::<ConfigMap>("sail").await
}

#[steersman::test]
async fn what_a_custom_resource_owned_goes_with_its_definition(cluster: Cluster) -> Result<()> {
    cluster.client().create(&boats(&[("v1", true)])).await?;
    launch("v1", &cluster).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let definition = "boats.example.com";
    cluster
        .client()
        .delete::<CustomResourceDefinition>(definition, &DeleteParams::default())
        .await?;
    cluster.gone::<ConfigMap>("sail").await
}

#[steersman::test]
async fn what_another_server_has_is_collected_as_soon_as_an_api_service_leads_to_it(
    cluster: Cluster,
) -> Result<()> {
    let owner: ConfigMap = cluster.client().create(&config_map("owner", &[])).await?;
    // The owner is in both, so that only the garbage collector in front has something to collect.
    let behind = cluster.fork().await?;
    behind.define(&boats(&[("v1", true)])).await?;
    let mut boat = DynamicObject::new("argo", &boat_kind("v1"));
    boat.metadata.owner_references = config_map("argo", &[&owner]).metadata.owner_references;
    fleet("v1", &behind).create(&Default::default(), &boat).await?;
    let api = behind.inner().api().clone();
    cluster.inner().api().serve_extension("https://boats.default.svc", api);
    let service: DynamicObject = object(json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": "v1.example.com"},
        "spec": {
            "group": "example.com", "version": "v1", "groupPriorityMinimum": 1000,
            "versionPriority": 15, "insecureSkipTLSVerify": true,
            "service": {"namespace": "default", "name": "boats"},
        },
    }));
    let kind = GroupVersionKind::gvk("apiregistration.k8s.io", "v1", "APIService");
    let services: kube::Api<DynamicObject> =
        kube::Api::all_with(cluster.client().kube().clone(), &ApiResource::from_gvk(&kind));
    services.create(&Default::default(), &service).await?;
    cluster.advance(Duration::from_secs(30)).await;
    cluster.client().delete::<ConfigMap>("owner", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(30)).await;
    assert!(fleet("v1", &behind).get_opt("argo").await?.is_none());
    Ok(())
}

/// The definition of boats in these versions, each served or not.
pub(crate) fn boats(versions: &[(&str, bool)]) -> CustomResourceDefinition {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version = |(name, served): &(&str, bool)| json!({"name": name, "served": served, "storage": *name == "v1", "schema": schema});
    object(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "boats.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "boats", "singular": "boat", "kind": "Boat", "listKind": "BoatList"},
            "versions": versions.iter().map(version).collect::<Vec<_>>(),
        },
    }))
}

/// Changes which versions of boats are served.
pub(crate) async fn serve(versions: &[(&str, bool)], cluster: &Cluster) -> Result<()> {
    let mut current: CustomResourceDefinition =
        cluster.client().get("boats.example.com").await?.expect("boats are defined");
    current.spec = boats(versions).spec;
    cluster.client().update(&current).await.map(drop)
}

pub(crate) fn boat_kind(version: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", version, "Boat"))
}

pub(crate) fn fleet(version: &str, cluster: &Cluster) -> kube::Api<DynamicObject> {
    let client = cluster.client().kube().clone();
    kube::Api::namespaced_with(client, "default", &boat_kind(version))
}

/// Creates the boat `argo` and the ConfigMap `sail`, which it owns.
async fn launch(version: &str, cluster: &Cluster) -> Result<()> {
    let kind = boat_kind(version);
    cluster.advance(Duration::from_secs(1)).await;
    let boat = DynamicObject::new("argo", &kind);
    let boat = fleet(version, cluster).create(&Default::default(), &boat).await?;
    let mut sail = config_map("sail", &[]);
    sail.metadata.owner_references =
        kube::Resource::owner_ref(&boat, &kind).map(|owner| vec![owner]);
    cluster.client().create(&sail).await.map(drop)
}
