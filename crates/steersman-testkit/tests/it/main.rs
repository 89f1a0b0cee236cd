//! The test kit's own promises.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod admission;
mod audited;
mod deployed;
mod fork;
mod idle;
mod metrics;
mod nodes;
mod servers;
mod time;
mod trouble;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node, Pod};
use serde_json::json;
use steersman::{Context, Controller, Error, ListOptions, Next, Result, clock};
use steersman_testkit::{Cluster, Settings, run_with};
use tokio::time::Instant;

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.into());
    map
}

#[steersman::test]
async fn what_does_not_come_true_is_explained(cluster: Cluster) -> Result<()> {
    cluster.run(Controller::of::<ConfigMap>().reconcile(
        async |_: Arc<ConfigMap>, _: Context<ConfigMap>| -> Result<Next> {
            Err(Error::message("database is down"))
        },
    ));
    cluster.client().create(&config_map("a")).await?;
    let text = cluster.eventually("a", |map: &ConfigMap| map.data.is_some()).await;
    let text = text.unwrap_err().to_string();
    for part in ["ConfigMap default/a", "database is down", "retry", "\"name\": \"a\""] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    assert!(!text.contains("managedFields"), "{text}");
    Ok(())
}

#[steersman::test]
async fn hours_pass_in_no_time_and_timestamps_follow(cluster: Cluster) -> Result<()> {
    let start = clock::now();
    cluster.advance(Duration::from_secs(2 * 3600)).await;
    cluster.client().create(&config_map("late")).await?;
    let created = cluster.client().get::<ConfigMap>("late").await?.unwrap();
    let created = created.metadata.creation_timestamp.unwrap().0;
    assert_eq!(created.duration_since(start).as_hours(), 2);
    Ok(())
}

#[steersman::test]
async fn time_stands_still_while_there_is_work(cluster: Cluster) -> Result<()> {
    let start = Instant::now();
    for number in 0..100 {
        cluster.client().create(&config_map(&format!("m-{number}"))).await?;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
    Ok(())
}

#[test]
fn the_same_seed_gives_the_same_cluster() {
    let uid = |seed| {
        run_with(Settings { nodes: 1, seed, ..Settings::default() }, |cluster| async move {
            cluster.eventually("node-0", |_: &Node| true).await.unwrap();
            let default = cluster.client().get::<Namespace>("default").await.unwrap();
            default.unwrap().metadata.uid.unwrap()
        })
    };
    assert_eq!(uid(7), uid(7));
    assert_ne!(uid(7), uid(8));
}

#[test]
fn a_cluster_can_have_no_nodes() {
    run_with(Settings { nodes: 0, ..Settings::default() }, |cluster| async move {
        let nodes: Vec<Node> = cluster.client().list(&ListOptions::default()).await.unwrap();
        assert!(nodes.is_empty());
    });
}

#[test]
fn a_bare_cluster_leaves_everything_to_the_test() {
    run_with(Settings::bare(1), |cluster| async move {
        cluster.advance(Duration::from_secs(60)).await;
        let maps: Vec<ConfigMap> = cluster.client().list(&ListOptions::default()).await.unwrap();
        assert!(maps.is_empty(), "a controller wrote {maps:?}");
    });
}

#[steersman::test(nodes = 0, controllers = false, seed = 3)]
async fn a_test_says_what_cluster_it_wants(cluster: Cluster) -> Result<()> {
    cluster.advance(Duration::from_secs(60)).await;
    assert!(cluster.client().list::<Node>(&ListOptions::default()).await?.is_empty());
    Ok(())
}

#[steersman::test(which = "*,-replicaset-controller,-kube-scheduler".parse().unwrap())]
async fn a_test_leaves_controllers_out(cluster: Cluster) -> Result<()> {
    let labels = json!({"app": "web"});
    let web = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        }},
    });
    let web: Deployment = serde_json::from_value(web)?;
    cluster.client().create(&web).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let everything = ListOptions::default();
    assert_eq!(cluster.client().list::<ReplicaSet>(&everything).await?.len(), 1);
    assert!(cluster.client().list::<Pod>(&everything).await?.is_empty());
    Ok(())
}

#[steersman::test(controllers = false, nodes = 2)]
async fn nodes_run_what_is_bound_to_them_without_any_controller(cluster: Cluster) -> Result<()> {
    let pod = json!({
        "metadata": {"name": "bound"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "main", "image": "nginx"}]},
    });
    let mut pod: Pod = serde_json::from_value(pod)?;
    cluster.client().create(&pod).await?;
    pod.metadata.name = Some("waits".into());
    pod.spec.as_mut().unwrap().node_name = None;
    cluster.client().create(&pod).await?;
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    cluster.eventually("bound", |pod: &Pod| phase(pod).as_deref() == Some("Running")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let waits: Pod = cluster.client().get("waits").await?.unwrap();
    assert_eq!(phase(&waits).as_deref(), Some("Pending"));
    assert!(cluster.client().list::<ConfigMap>(&ListOptions::default()).await?.is_empty());
    Ok(())
}

#[steersman::test(anywhere)]
async fn a_test_that_can_run_anywhere_has_a_namespace(cluster: Cluster) -> Result<()> {
    cluster.client().create(&config_map("a")).await?;
    cluster.eventually("a", |map: &ConfigMap| map.metadata.namespace.is_some()).await?;
    let namespace = cluster.namespace().to_owned();
    cluster.eventually(&*namespace, |namespace: &Namespace| namespace.spec.is_some()).await
}
