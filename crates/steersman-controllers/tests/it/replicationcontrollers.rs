//! ReplicationControllers keep Pods as ReplicaSets do.

use k8s_openapi::api::core::v1::{Pod, ReplicationController};
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::Result;
use steersman_testkit::Cluster;

use crate::events::told;
use crate::objects::{all, all_become, is_ready, object, pod};

fn controller(replicas: i32) -> ReplicationController {
    object(json!({
        "apiVersion": "v1",
        "kind": "ReplicationController",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"app": "web"},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "main", "image": "nginx"}]},
            },
        },
    }))
}

fn available(controller: &ReplicationController, replicas: i32) -> bool {
    controller.status.as_ref().is_some_and(|status| {
        status.replicas == replicas
            && status.available_replicas.unwrap_or(0) == replicas
            && status.observed_generation == controller.metadata.generation
    })
}

#[steersman::test]
async fn a_replication_controller_follows_its_size_and_adopts_orphans(
    cluster: Cluster,
) -> Result<()> {
    let mut orphan = pod("orphan", &json!({}));
    orphan.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    cluster.client().create(&orphan).await?;
    cluster.client().create(&controller(3)).await?;
    cluster.eventually("web", |rc: &ReplicationController| available(rc, 3)).await?;
    let pods: Vec<Pod> = all(&cluster).await?;
    assert_eq!(pods.len(), 3);
    let owned = |pod: &Pod| {
        let owners = pod.metadata.owner_references.as_deref().unwrap_or_default();
        owners.len() == 1 && owners[0].kind == "ReplicationController"
    };
    assert!(pods.iter().all(owned));
    let told = told(&cluster, "ReplicationController").await?;
    let by = "replication-controller Normal SuccessfulCreate: Created pod: web-";
    assert_eq!(told.iter().filter(|line| line.starts_with(by)).count(), 2, "{told:?}");
    let fewer = Patch::Merge(json!({"spec": {"replicas": 1}}));
    cluster.client().patch::<ReplicationController, _>("web", &fewer).await?;
    cluster.eventually("web", |rc: &ReplicationController| available(rc, 1)).await?;
    cluster.client().delete::<ReplicationController>("web", &DeleteParams::background()).await?;
    all_become(&cluster, |pods: &[Pod]| pods.is_empty()).await?;
    Ok(())
}

#[steersman::test]
async fn a_pod_that_has_ended_is_not_adopted(cluster: Cluster) -> Result<()> {
    let once = json!({
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "steersman.dev/exit:0"}],
    });
    let mut ended = pod("ended", &once);
    ended.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    cluster.client().create(&ended).await?;
    let succeeded =
        |pod: &Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Succeeded");
    cluster.eventually("ended", succeeded).await?;
    cluster.client().create(&controller(2)).await?;
    cluster.eventually("web", |rc: &ReplicationController| available(rc, 2)).await?;
    let pods: Vec<Pod> = all(&cluster).await?;
    assert_eq!(pods.len(), 3);
    let ended = pods.iter().find(|pod| succeeded(pod)).expect("it is there still");
    assert_eq!(ended.metadata.owner_references, None);
    Ok(())
}

#[steersman::test]
async fn a_pod_that_has_ended_stays_with_whom_it_is_whatever_its_labels(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&controller(0)).await?;
    let owner: ReplicationController = cluster.client().get("web").await?.unwrap();
    let once = json!({
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "steersman.dev/exit:0"}],
    });
    let mut ended = pod("ended", &once);
    ended.metadata.labels = Some([("app".to_owned(), "web".to_owned())].into());
    ended.metadata.owner_references =
        steersman::ownership::controller_reference(&owner).map(|owner| vec![owner]);
    let more = Patch::Merge(json!({"spec": {"replicas": 1}}));
    cluster.client().patch::<ReplicationController, _>("web", &more).await?;
    cluster.client().create(&ended).await?;
    let succeeded =
        |pod: &Pod| pod.status.as_ref().and_then(|it| it.phase.as_deref()) == Some("Succeeded");
    cluster.eventually("ended", succeeded).await?;
    let other = Patch::Merge(json!({"metadata": {"labels": {"app": "other"}}}));
    cluster.client().patch::<Pod, _>("ended", &other).await?;
    let more = Patch::Merge(json!({"spec": {"replicas": 2}}));
    cluster.client().patch::<ReplicationController, _>("web", &more).await?;
    cluster.eventually("web", |rc: &ReplicationController| available(rc, 2)).await?;
    let ended: Pod = cluster.client().get("ended").await?.expect("it is there still");
    assert_eq!(ended.metadata.owner_references.map(|owners| owners.len()), Some(1));
    Ok(())
}

#[steersman::test]
async fn what_cannot_be_created_is_a_condition_until_it_can(cluster: Cluster) -> Result<()> {
    let quota: k8s_openapi::api::core::v1::ResourceQuota = object(json!({
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "few", "namespace": "default"}, "spec": {"hard": {"pods": "1"}},
    }));
    cluster.client().create(&quota).await?;
    let counted = |quota: &k8s_openapi::api::core::v1::ResourceQuota| {
        quota.status.as_ref().is_some_and(|status| status.used.is_some())
    };
    cluster.eventually("few", counted).await?;
    cluster.client().create(&controller(2)).await?;
    let fails = |rc: &ReplicationController| {
        let conditions = rc.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.is_some_and(|all| {
            all[0].type_ == "ReplicaFailure" && all[0].reason.as_deref() == Some("FailedCreate")
        })
    };
    cluster.eventually("web", fails).await?;
    let more = Patch::Merge(json!({"spec": {"hard": {"pods": "5"}}}));
    cluster.client().patch::<k8s_openapi::api::core::v1::ResourceQuota, _>("few", &more).await?;
    let well = |rc: &ReplicationController| {
        let conditions = rc.status.as_ref().and_then(|status| status.conditions.as_ref());
        available(rc, 2) && conditions.is_none_or(Vec::is_empty)
    };
    cluster.eventually("web", well).await?;
    assert!(all::<Pod>(&cluster).await?.iter().all(is_ready));
    Ok(())
}
