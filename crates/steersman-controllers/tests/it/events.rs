//! What people are told of Deployments, ReplicaSets and Pods.

use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event as Counted, Pod};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::{ListOptions, Result};
use steersman_testkit::Cluster;

use crate::objects::{all, all_become, deployment, is_ready, pod};

/// Everything told of a kind of objects: who, type, reason and note.
pub(crate) async fn told(cluster: &Cluster, kind: &str) -> Result<Vec<String>> {
    cluster.advance(Duration::from_secs(1)).await; // they are written in the background
    let events: Vec<Event> = cluster.client().list(&ListOptions::namespace("default")).await?;
    let about = |event: &&Event| {
        event.regarding.as_ref().and_then(|object| object.kind.as_deref()) == Some(kind)
    };
    let said = |text: &Option<String>| text.clone().unwrap_or_default();
    let line = |event: &Event| {
        let source = event.deprecated_source.as_ref().and_then(|source| source.component.clone());
        let who = source.unwrap_or_else(|| said(&event.reporting_controller));
        let type_ = said(&event.type_);
        format!("{who} {type_} {}: {}", said(&event.reason), said(&event.note))
    };
    let mut lines: Vec<String> = events.iter().filter(about).map(line).collect();
    lines.sort();
    Ok(lines)
}

#[steersman::test]
async fn a_deployment_and_its_replica_set_tell_how_they_scale(cluster: Cluster) -> Result<()> {
    cluster.client().create(&deployment("web", 2, "nginx")).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 2 && pods.iter().all(is_ready)).await?;
    let before: Vec<String> =
        all::<Pod>(&cluster).await?.into_iter().filter_map(|pod| pod.metadata.name).collect();
    let fewer = Patch::Merge(json!({"spec": {"replicas": 1}}));
    cluster.client().patch::<Deployment, _>("web", &fewer).await?;
    let after = all_become(&cluster, |pods: &[Pod]| pods.len() == 1).await?;
    let left = after[0].metadata.name.clone().unwrap();
    let gone = before.iter().find(|name| **name != left).unwrap();
    let set = all::<ReplicaSet>(&cluster).await?.remove(0).metadata.name.unwrap();
    let by = "deployment-controller Normal ScalingReplicaSet: Scaled";
    assert_eq!(
        told(&cluster, "Deployment").await?,
        [
            format!("{by} down replica set {set} from 2 to 1"),
            format!("{by} up replica set {set} from 0 to 2"),
        ]
    );
    let mut expected: Vec<String> = before
        .iter()
        .map(|name| format!("replicaset-controller Normal SuccessfulCreate: Created pod: {name}"))
        .collect();
    expected.push(format!("replicaset-controller Normal SuccessfulDelete: Deleted pod: {gone}"));
    expected.sort();
    assert_eq!(told(&cluster, "ReplicaSet").await?, expected);
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn a_pod_tells_where_it_went_what_was_started_and_what_ends(cluster: Cluster) -> Result<()> {
    let mut web = pod("web", &json!({"initContainers": [{"name": "setup", "image": "busybox"}]}));
    web.metadata.finalizers = Some(vec!["example.com/hold".into()]);
    cluster.client().create(&web).await?;
    cluster.eventually("web", is_ready).await?;
    let pulled = |image: &str| {
        format!(
            "kubelet Normal Pulled: Successfully pulled image \"{image}\" in 1.2s (1.2s including \
             waiting). Image size: 67108864 bytes."
        )
    };
    let started = |lines: &mut Vec<String>, image: &str| {
        lines.push("kubelet Normal Created: Container created".into());
        lines.push("kubelet Normal Started: Container started".into());
        lines.push(format!("kubelet Normal Pulling: Pulling image \"{image}\""));
        lines.push(pulled(image));
    };
    let mut expected = vec![
        "default-scheduler Normal Scheduled: Successfully assigned default/web to node-0".into(),
    ];
    started(&mut expected, "busybox");
    started(&mut expected, "nginx");
    expected.sort();
    assert_eq!(told(&cluster, "Pod").await?, expected);
    cluster.client().delete::<Pod>("web", &DeleteParams::default()).await?;
    let killing = "kubelet Normal Killing: Stopping container main".to_owned();
    assert!(told(&cluster, "Pod").await?.contains(&killing));
    let events: Vec<Event> = cluster.client().list(&ListOptions::namespace("default")).await?;
    let killing = events.iter().find(|event| event.reason.as_deref() == Some("Killing")).unwrap();
    assert_eq!(killing.reporting_instance.as_deref(), Some("node-0"));
    let part = killing.regarding.as_ref().unwrap().field_path.as_deref();
    assert_eq!(part, Some("spec.containers{main}"));
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn a_kubelet_and_a_controller_count_what_happens_again(cluster: Cluster) -> Result<()> {
    cluster.client().create(&deployment("web", 1, "nginx")).await?;
    all_become(&cluster, |pods: &[Pod]| pods.len() == 1 && pods.iter().all(is_ready)).await?;
    for replicas in [0, 1, 0, 1] {
        let scale = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        cluster.client().patch::<Deployment, _>("web", &scale).await?;
        all_become(&cluster, |pods: &[Pod]| pods.len() == replicas && pods.iter().all(is_ready))
            .await?;
        cluster.advance(Duration::from_secs(60)).await;
    }
    let events: Vec<Counted> = cluster.client().list(&ListOptions::namespace("default")).await?;
    let up =
        |event: &&Counted| event.message.as_deref().is_some_and(|it| it.contains("from 0 to 1"));
    let scaled = events.iter().find(up).unwrap();
    assert_eq!((scaled.count, &scaled.event_time, &scaled.action), (Some(3), &None, &None));
    let source = scaled.source.as_ref().unwrap();
    assert_eq!((source.component.as_deref(), &source.host), (Some("deployment-controller"), &None));
    assert_eq!(scaled.reporting_component.as_deref(), Some("deployment-controller"));
    assert_eq!(scaled.reporting_instance.as_deref().unwrap_or_default(), "");
    let (first, last) = (&scaled.first_timestamp, &scaled.last_timestamp);
    let apart = last.as_ref().unwrap().0.duration_since(first.as_ref().unwrap().0);
    assert!((120..300).contains(&apart.as_secs()), "{apart}");
    let killing = events.iter().find(|event| event.reason.as_deref() == Some("Killing")).unwrap();
    let source = killing.source.as_ref().unwrap();
    assert_eq!(
        (source.component.as_deref(), source.host.as_deref()),
        (Some("kubelet"), Some("node-0"))
    );
    let scheduled =
        events.iter().find(|event| event.reason.as_deref() == Some("Scheduled")).unwrap();
    assert!(scheduled.event_time.is_some() && scheduled.count.is_none(), "{scheduled:#?}");
    assert_eq!(scheduled.action.as_deref(), Some("Binding"));
    Ok(())
}

#[steersman::test]
async fn a_pod_that_fits_nowhere_is_told_of_in_one_series(cluster: Cluster) -> Result<()> {
    let large = json!({"requests": {"cpu": "100"}});
    let containers = json!([{"name": "main", "image": "nginx", "resources": large}]);
    cluster.client().create(&pod("large", &json!({"containers": containers}))).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(
        told(&cluster, "Pod").await?,
        [
            "default-scheduler Warning FailedScheduling: 0/3 nodes are available: 3 Insufficient cpu. \
          no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        ]
    );
    let events: Vec<Event> = cluster.client().list(&ListOptions::namespace("default")).await?;
    let failed = events.iter().find(|event| event.reason.as_deref() == Some("FailedScheduling"));
    let failed = failed.unwrap();
    assert!(failed.metadata.name.as_deref().unwrap().starts_with("large."));
    assert_eq!(failed.action.as_deref(), Some("Scheduling"));
    Ok(())
}

#[steersman::test]
async fn lists_have_the_events_of_an_object_in_the_order_in_which_they_happened(
    cluster: Cluster,
) -> Result<()> {
    let spec = json!({"containers": [{"name": "main", "image": "nginx:1"}]});
    cluster.client().create(&pod("web", &spec)).await?;
    cluster.advance(Duration::from_secs(2)).await;
    let events: Vec<Counted> = cluster.client().list(&ListOptions::namespace("default")).await?;
    let of_pod = events.iter().filter(|event| event.involved_object.name.as_deref() == Some("web"));
    let reasons: Vec<&str> = of_pod.filter_map(|event| event.reason.as_deref()).collect();
    assert_eq!(reasons, ["Scheduled", "Pulled", "Created", "Started"]);
    Ok(())
}
