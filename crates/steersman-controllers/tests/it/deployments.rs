//! Deployments become ReplicaSets become Pods.

use std::collections::HashSet;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::Result;
use steersman_testkit::Cluster;

use crate::events::told;
use crate::objects::{all, all_become, counted, deployment, is_ready, managers};

fn available(deployment: &Deployment, replicas: i32) -> bool {
    deployment.status.as_ref().is_some_and(|status| {
        let counts = [status.available_replicas, status.replicas, status.updated_replicas];
        counts.iter().all(|count| count.unwrap_or(0) == replicas)
            && status.observed_generation == deployment.metadata.generation
    })
}

fn condition(deployment: &Deployment, type_: &str) -> Option<(String, String)> {
    let conditions = deployment.status.as_ref()?.conditions.as_ref()?;
    let condition = conditions.iter().find(|condition| condition.type_ == type_)?;
    Some((condition.status.clone(), condition.reason.clone()?))
}

#[steersman::test]
async fn a_deployment_becomes_running_pods(cluster: Cluster) -> Result<()> {
    cluster.client().create(&deployment("web", 3, "nginx")).await?;
    cluster.eventually("web", |deployment: &Deployment| available(deployment, 3)).await?;
    let pods: Vec<Pod> = all(&cluster).await?;
    assert_eq!(pods.len(), 3);
    assert!(pods.iter().all(is_ready));
    let addresses: HashSet<_> =
        pods.iter().map(|pod| pod.status.as_ref().unwrap().pod_ip.clone().unwrap()).collect();
    assert_eq!(addresses.len(), 3, "every Pod has its own address");
    let web: Deployment = cluster.client().get("web").await?.unwrap();
    let yes = |reason: &str| Some(("True".to_owned(), reason.to_owned()));
    assert_eq!(condition(&web, "Available"), yes("MinimumReplicasAvailable"));
    assert_eq!(condition(&web, "Progressing"), yes("NewReplicaSetAvailable"));
    assert_eq!(web.metadata.generation, Some(1), "nobody has changed what is wanted");
    assert_eq!(web.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"], "1");
    Ok(())
}

#[steersman::test]
async fn whoever_controls_writes_under_the_name_of_kube_controller_manager(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&deployment("web", 1, "nginx")).await?;
    cluster.eventually("web", |deployment: &Deployment| available(deployment, 1)).await?;
    let web: Deployment = cluster.client().get("web").await?.unwrap();
    assert_eq!(managers(&web), ["kube-controller-manager Update status", "test Update"]);
    let [set]: [ReplicaSet; 1] = all(&cluster).await?.try_into().unwrap();
    let made = ["kube-controller-manager Update", "kube-controller-manager Update status"];
    assert_eq!(managers(&set), made);
    let [pod]: [Pod; 1] = all(&cluster).await?.try_into().unwrap();
    assert_eq!(managers(&pod), ["kube-controller-manager Update", "kubelet Update status"]);
    assert!(
        told(&cluster, "Deployment").await?.iter().any(|it| it.contains("deployment-controller"))
    );
    Ok(())
}

#[steersman::test]
async fn a_deployment_follows_its_size_up_and_down(cluster: Cluster) -> Result<()> {
    cluster.client().create(&deployment("web", 1, "nginx")).await?;
    for replicas in [40, 3, 0, 2] {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        cluster.client().patch::<Deployment, _>("web", &patch).await?;
        cluster.eventually("web", |web: &Deployment| available(web, replicas)).await?;
        let wanted = usize::try_from(replicas)?;
        all_become(&cluster, |pods: &[Pod]| pods.len() == wanted).await?;
    }
    assert_eq!(all::<ReplicaSet>(&cluster).await?.len(), 1);
    let ages = "replicaset_controller_sorting_deletion_age_ratio_count";
    assert!(counted(&cluster, ages).await?.is_some());
    Ok(())
}

#[steersman::test]
async fn a_rolling_update_ends_with_the_new_template_only(cluster: Cluster) -> Result<()> {
    cluster.client().create(&deployment("web", 5, "nginx:1")).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 5)).await?;
    let containers = json!([{"name": "main", "image": "nginx:2"}]);
    let patch = Patch::Merge(json!({"spec": {"template": {"spec": {"containers": containers}}}}));
    cluster.client().patch::<Deployment, _>("web", &patch).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 5)).await?;
    let new =
        |pod: &Pod| pod.spec.as_ref().unwrap().containers[0].image.as_deref() == Some("nginx:2");
    all_become(&cluster, |pods: &[Pod]| pods.len() == 5 && pods.iter().all(new)).await?;
    let sets: Vec<ReplicaSet> = all(&cluster).await?;
    let mut sizes: Vec<_> = sets.iter().map(|set| set.spec.as_ref().unwrap().replicas).collect();
    sizes.sort();
    assert_eq!(sizes, [Some(0), Some(5)]);
    // `kubectl rollout undo` writes the old template again.
    let containers = json!([{"name": "main", "image": "nginx:1"}]);
    let patch = Patch::Merge(json!({"spec": {"template": {"spec": {"containers": containers}}}}));
    cluster.client().patch::<Deployment, _>("web", &patch).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 5)).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 5 && !pods.iter().any(new)).await?;
    assert_eq!(all::<ReplicaSet>(&cluster).await?.len(), 2, "it takes the one that it had");
    let web: Deployment = cluster.client().get("web").await?.unwrap();
    assert_eq!(web.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"], "3");
    // Clients of a long time ago ask for the same.
    let back = json!({"metadata": {"annotations": {"deprecated.deployment.rollback.to": "0"}}});
    cluster.client().patch::<Deployment, _>("web", &Patch::Merge(back)).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 5 && pods.iter().all(new)).await?;
    let told = told(&cluster, "Deployment").await?;
    let done = "Normal DeploymentRollback: Rolled back deployment \"web\" to revision 2";
    assert!(told.contains(&format!("deployment-controller {done}")), "{told:#?}");
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn a_deployment_that_does_not_get_on_misses_its_deadline_after_ten_minutes(
    cluster: Cluster,
) -> Result<()> {
    cluster.pods().labelled("app", "web").never_ready();
    cluster.client().create(&deployment("web", 1, "nginx")).await?;
    let progress = async || -> Result<_> {
        let web: Deployment = cluster.client().get("web").await?.unwrap();
        Ok(condition(&web, "Progressing").unwrap())
    };
    cluster.advance(Duration::from_secs(595)).await;
    assert_eq!(progress().await?, ("True".into(), "ReplicaSetUpdated".into()));
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(progress().await?, ("False".into(), "ProgressDeadlineExceeded".into()));
    // What was too late can still succeed.
    cluster.pods().labelled("app", "web").ready_after(Duration::ZERO);
    let new =
        Patch::Merge(json!({"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}}));
    cluster.client().patch::<Deployment, _>("web", &new).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 1)).await?;
    assert_eq!(progress().await?, ("True".into(), "NewReplicaSetAvailable".into()));
    Ok(())
}

#[steersman::test]
async fn recreate_replaces_all_pods_at_once(cluster: Cluster) -> Result<()> {
    let mut web = deployment("web", 3, "nginx:1");
    web.spec.as_mut().unwrap().strategy =
        Some(serde_json::from_value(json!({"type": "Recreate"}))?);
    cluster.client().create(&web).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 3)).await?;
    let containers = json!([{"name": "main", "image": "nginx:2"}]);
    let patch = Patch::Merge(json!({"spec": {"template": {"spec": {"containers": containers}}}}));
    cluster.client().patch::<Deployment, _>("web", &patch).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 3)).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 3 && pods.iter().all(is_ready)).await?;
    Ok(())
}

#[steersman::test]
async fn a_pod_that_is_deleted_is_replaced(cluster: Cluster) -> Result<()> {
    cluster.client().create(&deployment("web", 2, "nginx")).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 2)).await?;
    let victim = all::<Pod>(&cluster).await?.remove(0);
    let name = victim.metadata.name.as_deref().unwrap();
    cluster.client().delete::<Pod>(name, &DeleteParams::default()).await?;
    let others = |pods: &[Pod]| {
        pods.len() == 2
            && pods.iter().all(|pod| is_ready(pod) && pod.metadata.uid != victim.metadata.uid)
    };
    all_become(&cluster, others).await?;
    Ok(())
}

#[steersman::test]
async fn a_pod_that_loses_its_label_is_released_and_one_that_gains_it_is_adopted(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&deployment("web", 2, "nginx")).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 2)).await?;
    let pod = all::<Pod>(&cluster).await?.remove(0);
    let name = pod.metadata.name.as_deref().unwrap();
    let relabel = |app: &str| Patch::Merge(json!({"metadata": {"labels": {"app": app}}}));
    cluster.client().patch::<Pod, _>(name, &relabel("aside")).await?;
    let owned = |pod: &&Pod| pod.metadata.owner_references.iter().flatten().count() == 1;
    let one_aside = |pods: &[Pod]| pods.len() == 3 && pods.iter().filter(owned).count() == 2;
    all_become(&cluster, one_aside).await?;
    cluster.client().patch::<Pod, _>(name, &relabel("web")).await?;
    let adopted = |pods: &[Pod]| pods.len() == 2 && pods.iter().filter(owned).count() == 2;
    all_become(&cluster, adopted).await?;
    Ok(())
}

#[steersman::test]
async fn a_replicaset_that_loses_its_label_is_released_and_another_takes_its_place(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&deployment("web", 2, "nginx")).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 2)).await?;
    let set = all::<ReplicaSet>(&cluster).await?.remove(0);
    let name = set.metadata.name.as_deref().unwrap();
    let relabel = Patch::Merge(json!({"metadata": {"labels": {"app": "aside"}}}));
    cluster.client().patch::<ReplicaSet, _>(name, &relabel).await?;
    let owned = |set: &&ReplicaSet| set.metadata.owner_references.iter().flatten().count() == 1;
    let one_aside = |sets: &[ReplicaSet]| sets.len() == 2 && sets.iter().filter(owned).count() == 1;
    all_become(&cluster, one_aside).await?;
    let again = |web: &Deployment| {
        let collisions = web.status.as_ref().and_then(|status| status.collision_count);
        available(web, 2) && collisions == Some(1)
    };
    cluster.eventually("web", again).await?;
    Ok(())
}

#[steersman::test]
async fn deleting_a_deployment_removes_everything(cluster: Cluster) -> Result<()> {
    let policies =
        [DeleteParams::default(), DeleteParams::background(), DeleteParams::foreground()];
    for policy in policies {
        cluster.client().create(&deployment("web", 3, "nginx")).await?;
        cluster.eventually("web", |web: &Deployment| available(web, 3)).await?;
        cluster.client().delete::<Deployment>("web", &policy).await?;
        cluster.gone::<Deployment>("web").await?;
        all_become(&cluster, |sets: &[ReplicaSet]| sets.is_empty()).await?;
        all_become(&cluster, |pods: &[Pod]| pods.is_empty()).await?;
    }
    Ok(())
}

#[steersman::test]
async fn an_orphaning_delete_leaves_the_pods_running(cluster: Cluster) -> Result<()> {
    cluster.client().create(&deployment("web", 3, "nginx")).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 3)).await?;
    cluster.client().delete::<Deployment>("web", &DeleteParams::orphan()).await?;
    cluster.gone::<Deployment>("web").await?;
    let sets: Vec<ReplicaSet> = all(&cluster).await?;
    assert_eq!(sets.len(), 1);
    assert!(sets[0].metadata.owner_references.iter().flatten().next().is_none());
    cluster.advance(Duration::from_secs(120)).await;
    assert_eq!(all::<Pod>(&cluster).await?.len(), 3);
    // A Deployment with the same selector and template takes them over.
    cluster.client().create(&deployment("web", 3, "nginx")).await?;
    cluster.eventually("web", |web: &Deployment| available(web, 3)).await?;
    assert_eq!(all::<ReplicaSet>(&cluster).await?.len(), 1);
    Ok(())
}
