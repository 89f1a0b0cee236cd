use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kube::api::{DeleteParams, Patch};
use kube::{Resource, ResourceExt};
use serde_json::json;
use steersman::controller::ReconcileRecord;
use steersman::{Context, Controller, ListOptions, ObjectKey, Result};
use steersman_examples::replica_set::{self, PodSet, PodSetSpec, manifests, pod_sets};
use steersman_testkit::Cluster;
use tokio::sync::Semaphore;
use tokio::sync::broadcast::Receiver;

fn pod_set(replicas: i32) -> Result<PodSet> {
    let template = json!({"metadata": {"labels": {"app": "web"}},
                          "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]}});
    let template: PodTemplateSpec = serde_json::from_value(template)?;
    Ok(PodSet::new("web", PodSetSpec { replicas, template }))
}

/// A PodSet, and Pods of it that somebody made before its controller runs.
async fn set_with_pods(cluster: &Cluster, replicas: i32, pods: usize) -> Result<PodSet> {
    cluster.install::<PodSet>().await?;
    let set = cluster.client().create(&pod_set(replicas)?).await?;
    for number in 0..pods {
        cluster.client().create(&pod_of(&set, &format!("there-{number}"))).await?;
    }
    Ok(set)
}

fn pod_of(set: &PodSet, name: &str) -> Pod {
    let PodTemplateSpec { metadata, spec } = set.spec.template.clone();
    let mut pod = Pod { metadata: metadata.unwrap_or_default(), spec, status: None };
    pod.metadata.name = Some(name.to_owned());
    pod.metadata.owner_references = set.controller_owner_ref(&()).map(|owner| vec![owner]);
    pod
}

async fn pods(cluster: &Cluster) -> Result<Vec<Pod>> {
    cluster.client().list(&ListOptions::namespace("default")).await
}

async fn scale(cluster: &Cluster, replicas: i32) -> Result<()> {
    let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
    cluster.client().patch::<PodSet, _>("web", &patch).await.map(drop)
}

fn ready(replicas: usize) -> impl Fn(&PodSet) -> bool {
    move |set| {
        let status = set.status.clone().unwrap_or_default();
        (status.replicas, status.ready_replicas) == (replicas, replicas)
    }
}

fn heard(records: &mut Receiver<Arc<ReconcileRecord>>) -> Vec<String> {
    std::iter::from_fn(|| records.try_recv().ok()).map(|record| record.causes.to_string()).collect()
}

#[steersman::test]
async fn with_five_wanted_and_three_there_exactly_two_are_created(cluster: Cluster) -> Result<()> {
    set_with_pods(&cluster, 5, 3).await?;
    let before: BTreeSet<_> = pods(&cluster).await?.iter().map(ResourceExt::uid).collect();
    cluster.deploy(&manifests()).await?.run(pod_sets());
    cluster.eventually("web", ready(5)).await?;
    cluster.advance(Duration::from_secs(600)).await;
    let pods = pods(&cluster).await?;
    let created = pods.iter().filter(|pod| !before.contains(&pod.uid()));
    assert_eq!((pods.len(), created.clone().count()), (5, 2));
    assert!(created.clone().all(|pod| pod.labels()["app"] == "web"));
    assert!(created.clone().all(|pod| pod.name_any().starts_with("web-")));
    Ok(())
}

#[steersman::test]
async fn what_was_there_at_the_start_causes_one_reconcile(cluster: Cluster) -> Result<()> {
    set_with_pods(&cluster, 20, 20).await?;
    cluster.advance(Duration::from_secs(60)).await; // all Pods run
    let mut records = cluster.reconciles();
    cluster.deploy(&manifests()).await?.run(pod_sets());
    cluster.eventually("web", ready(20)).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let causes = heard(&mut records);
    // One for what was there; one more for the status that it wrote.
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert!(causes[0].ends_with("and 13 more"), "{causes:?}");
    assert_eq!(causes[1], "PodSet default/web changed its status");
    Ok(())
}

#[steersman::test]
async fn many_events_during_a_reconcile_cause_one_more(cluster: Cluster) -> Result<()> {
    set_with_pods(&cluster, 20, 20).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let gate = Arc::new(Semaphore::new(2)); // for what is there at the start, and its status
    let entrance = Arc::clone(&gate);
    let gated = move |set: Arc<PodSet>, ctx: Context<PodSet>| {
        let gate = Arc::clone(&entrance);
        async move {
            gate.acquire().await?.forget();
            replica_set::reconcile(set, ctx).await
        }
    };
    let gated = Controller::of::<PodSet>().owns::<Pod>().concurrency(4).reconcile(gated);
    cluster.deploy(&manifests()).await?.run(gated);
    cluster.eventually("web", ready(20)).await?;
    cluster.advance(Duration::from_secs(10)).await;
    let mut records = cluster.reconciles();
    // The first change leads to a reconcile, which stands at the gate while the others come.
    for change in ["first", "second"] {
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"change": change}}}));
        for pod in pods(&cluster).await? {
            cluster.client().patch::<Pod, _>(ObjectKey::of(&pod), &patch).await?;
            cluster.advance(Duration::from_secs(1)).await;
        }
    }
    assert!(records.is_empty());
    gate.add_permits(100);
    cluster.advance(Duration::from_secs(10)).await;
    let causes = heard(&mut records);
    assert_eq!(causes.len(), 2, "{causes:?}");
    assert_eq!(causes[0], "Pod default/there-0 changed its annotations");
    assert!(causes[1].ends_with(" more"), "{causes:?}");
    Ok(())
}

#[steersman::test]
async fn of_too_many_pods_those_that_are_worth_least_go(cluster: Cluster) -> Result<()> {
    let set = set_with_pods(&cluster, 3, 0).await?;
    cluster.deploy(&manifests()).await?.run(pod_sets());
    cluster.eventually("web", ready(3)).await?;
    let running: Vec<_> = pods(&cluster).await?.iter().map(ResourceExt::uid).collect();
    let mut nowhere = pod_of(&set, "nowhere");
    nowhere.spec.as_mut().unwrap().scheduler_name = Some("nobody".to_owned());
    cluster.client().create(&nowhere).await?;
    cluster.gone::<Pod>("nowhere").await?;
    assert_eq!(pods(&cluster).await?.iter().map(ResourceExt::uid).collect::<Vec<_>>(), running);
    scale(&cluster, 1).await?;
    cluster.eventually("web", ready(1)).await?;
    cluster.advance(Duration::from_secs(60)).await; // the grace period of the others
    let left = pods(&cluster).await?;
    assert!(left.len() == 1 && running.contains(&left[0].uid()));
    Ok(())
}

#[steersman::test]
async fn a_pod_deleted_by_hand_is_replaced_and_none_once_the_set_is_deleted(
    cluster: Cluster,
) -> Result<()> {
    set_with_pods(&cluster, 2, 0).await?;
    cluster.deploy(&manifests()).await?.run(pod_sets());
    cluster.eventually("web", ready(2)).await?;
    let lost = pods(&cluster).await?.remove(0);
    cluster.client().delete::<Pod>(ObjectKey::of(&lost), &DeleteParams::default()).await?;
    cluster.gone::<Pod>(ObjectKey::of(&lost)).await?;
    cluster.eventually("web", ready(2)).await?;
    assert!(pods(&cluster).await?.iter().all(|pod| pod.uid() != lost.uid()));
    cluster.client().delete::<PodSet>("web", &DeleteParams::foreground()).await?;
    cluster.gone::<PodSet>("web").await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(pods(&cluster).await?.len(), 0);
    Ok(())
}
