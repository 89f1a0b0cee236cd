//! What a Backup leaves behind: nothing.

use std::time::Duration;

use backup::operator::manifests;
use backup::{Backup, backups};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use steersman::ListOptions;
use steersman::prelude::*;
use steersman_testkit::Cluster;

use crate::fixture::{Memory, credentials, db, prepared, read, until};

#[steersman::test(nodes = 0, controllers = false)]
async fn the_bucket_is_deleted_once_although_the_store_fails_twice(cluster: Cluster) -> Result<()> {
    let (operator, _) = prepared(&cluster).await?;
    let store = Memory::default();
    operator.run(backups(store.clone()));
    cluster.client().create(&db("1h", 3)).await?;
    until(&cluster, "02:30:00").await;
    let bucket = read(&cluster).await?.bucket();
    assert_eq!(store.present(), [&*bucket]);

    store.fail(2);
    cluster.client().delete::<Backup>("db", &DeleteParams::default()).await?;
    cluster.gone::<Backup>("db").await?;
    assert_eq!(store.failing(), 0);
    assert_eq!(store.deleted(), [bucket]);
    Ok(())
}

/// Nothing here pretends but the nodes: the scheduler binds the Pods, and a node takes its time to
/// end them.
#[steersman::test(nodes = 1, termination = Duration::from_secs(20))]
async fn the_bucket_outlives_the_pods_that_write_into_it(cluster: Cluster) -> Result<()> {
    let operator = cluster.deploy(&manifests(None)).await?;
    cluster.client().create(&credentials()).await?;
    let store = Memory::default();
    operator.run(backups(store.clone()));
    cluster.client().create(&db("1m", 3)).await?;
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
    let run = "db-20300101-0001";
    cluster.eventually(run, |pod: &Pod| phase(pod).as_deref() == Some("Running")).await?;

    cluster.client().delete::<Backup>("db", &DeleteParams::default()).await?;
    cluster.eventually(run, |pod: &Pod| pod.metadata.deletion_timestamp.is_some()).await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(store.deleted(), [""; 0]);
    cluster.gone::<Backup>("db").await?;
    assert!(cluster.client().list::<Pod>(&ListOptions::default()).await?.is_empty());
    assert_eq!(store.deleted().len(), 1);
    assert_eq!(store.present(), [""; 0]);
    Ok(())
}
