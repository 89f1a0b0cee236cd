//! Forks: a cluster that goes on as another one was.

use std::sync::LazyLock;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::{ListOptions, Result};
use steersman_testkit::{Cluster, Prepared, Settings};

use crate::config_map;

fn deployment(name: &str, replicas: i32) -> Deployment {
    let labels = json!({"app": name});
    let deployment = json!({
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"containers": [{"name": "main", "image": "nginx"}]},
        }},
    });
    serde_json::from_value(deployment).unwrap()
}

async fn available(cluster: &Cluster, name: &str, replicas: i32) -> Result<()> {
    let count = |it: &Deployment| it.status.as_ref()?.available_replicas;
    let settled = |it: &Deployment| count(it).unwrap_or(0) == replicas;
    cluster.eventually(name, settled).await
}

/// The uids of all Pods.
async fn pods(cluster: &Cluster) -> Result<Vec<String>> {
    let pods = cluster.client().list::<Pod>(&ListOptions::default()).await?;
    let mut uids: Vec<String> = pods.into_iter().filter_map(|pod| pod.metadata.uid).collect();
    uids.sort();
    Ok(uids)
}

#[steersman::test]
async fn what_breaks_in_a_fork_breaks_nowhere_else(cluster: Cluster) -> Result<()> {
    for name in ["shop", "cart"] {
        cluster.client().create(&deployment(name, 3)).await?;
        available(&cluster, name, 3).await?;
    }
    let before = pods(&cluster).await?;
    let fork = cluster.fork().await?;
    assert_eq!(pods(&fork).await?, before);

    fork.client().delete::<Deployment>("shop", &DeleteParams::default()).await?;
    let scaled = Patch::Merge(json!({"spec": {"replicas": 5}}));
    fork.client().patch::<Deployment, _>("cart", &scaled).await?;
    available(&fork, "cart", 5).await?;
    fork.advance(Duration::from_secs(600)).await;
    let after = pods(&fork).await?;
    assert_eq!(after.len(), 5);
    assert_eq!(after.iter().filter(|uid| before.contains(uid)).count(), 3, "its Pods ran on");

    assert_eq!(pods(&cluster).await?, before, "no Pod was made anew, none went");
    cluster.client().create(&deployment("till", 1)).await?;
    available(&cluster, "till", 1).await?;
    assert!(fork.client().get::<Deployment>("till").await?.is_none());
    Ok(())
}

#[steersman::test]
async fn forks_are_random_in_ways_of_their_own(cluster: Cluster) -> Result<()> {
    let mut uids = Vec::new();
    let forks = [cluster.fork().await?, cluster.fork().await?];
    let nested = forks[0].fork().await?;
    for cluster in forks.iter().chain([&cluster, &nested]) {
        uids.push(cluster.client().create(&config_map("a")).await?.metadata.uid);
    }
    uids.sort();
    uids.dedup();
    assert_eq!(uids.len(), 4);
    Ok(())
}

#[steersman::test(nodes = 0, controllers = false)]
async fn what_happens_after_a_fork_of_a_fork_is_seen_by_nobody_else(
    cluster: Cluster,
) -> Result<()> {
    let fork = cluster.fork().await?;
    fork.client().create(&config_map("a")).await?;
    let second = fork.fork().await?;
    drop(fork);
    second.client().create(&config_map("b")).await?;
    assert_eq!(second.client().list::<ConfigMap>(&ListOptions::default()).await?.len(), 2);
    assert_eq!(cluster.client().list::<ConfigMap>(&ListOptions::default()).await?.len(), 0);
    Ok(())
}

static SHOP: LazyLock<Prepared> = LazyLock::new(|| {
    Prepared::new(Settings::default(), async |cluster| {
        cluster.client().create(&deployment("shop", 3)).await.unwrap();
        available(cluster, "shop", 3).await.unwrap();
        cluster.advance(Duration::from_secs(1800)).await;
    })
});

#[test]
fn one_test_finds_the_prepared_cluster_and_breaks_it() {
    SHOP.run(async |cluster| {
        assert_eq!(pods(&cluster).await.unwrap().len(), 3);
        cluster.client().delete::<Deployment>("shop", &DeleteParams::default()).await.unwrap();
        cluster.gone::<Deployment>("shop").await.unwrap();
        cluster.advance(Duration::from_secs(60)).await;
        assert_eq!(pods(&cluster).await.unwrap().len(), 0);
    });
}

#[test]
fn another_test_finds_the_prepared_cluster_whole_and_its_clock_where_it_was() {
    SHOP.run(async |cluster| {
        let before = pods(&cluster).await.unwrap();
        assert_eq!(before.len(), 3);
        let shop = cluster.client().get::<Deployment>("shop").await.unwrap().unwrap();
        let age =
            steersman::clock::now().duration_since(shop.metadata.creation_timestamp.unwrap().0);
        assert!((30..32).contains(&age.as_mins()), "{age:?}");
        cluster.advance(Duration::from_secs(600)).await;
        assert_eq!(pods(&cluster).await.unwrap(), before, "they run on");
    });
}
