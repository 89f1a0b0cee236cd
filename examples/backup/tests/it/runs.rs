//! Runs over time: one for each due time, as many kept as asked for, never one twice.

use std::time::Duration;

use backup::{Backup, backups};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::conditions::Conditions;
use steersman::prelude::*;
use steersman::{ListOptions, Manager};
use steersman_testkit::{Cluster, Fault, Faults};

use crate::fixture::{Memory, db, hourly, prepared, read, until};

#[steersman::test(nodes = 0, controllers = false)]
async fn there_is_a_pod_for_every_due_time_of_a_day(cluster: Cluster) -> Result<()> {
    let (operator, node) = prepared(&cluster).await?;
    operator.run(backups(Memory::default()));
    cluster.client().create(&db("1h", 100)).await?;
    cluster.advance(Duration::from_secs(24 * 3600)).await;
    assert_eq!(node.seen(), hourly(1..=24));
    let status = read(&cluster).await?.status.unwrap_or_default();
    assert_eq!(status.last_schedule_time.unwrap().0.to_string(), "2030-01-02T00:00:00Z");
    assert!(status.conditions.is_condition_true("Ready"), "{:?}", status.conditions);
    Ok(())
}

#[steersman::test(nodes = 0, controllers = false)]
async fn finished_runs_are_kept_as_many_as_asked_for(cluster: Cluster) -> Result<()> {
    let (operator, node) = prepared(&cluster).await?;
    operator.run(backups(Memory::default()));
    cluster.client().create(&db("1h", 3)).await?;
    until(&cluster, "07:30:00").await;
    let pods = cluster.client().list::<Pod>(&ListOptions::default()).await?;
    let kept: Vec<String> = pods.iter().map(ResourceExt::name_any).collect();
    assert_eq!(kept, hourly(5..=7));
    assert_eq!(node.seen(), hourly(1..=7));
    Ok(())
}

#[steersman::test(nodes = 0, controllers = false)]
async fn after_a_pause_only_the_last_due_time_is_made_up_for(cluster: Cluster) -> Result<()> {
    let (operator, node) = prepared(&cluster).await?;
    cluster.client().create(&db("1h", 100)).await?;
    until(&cluster, "05:30:00").await;
    operator.run(backups(Memory::default()));
    until(&cluster, "06:30:00").await;
    assert_eq!(node.seen(), hourly(5..=6));
    Ok(())
}

#[steersman::test(nodes = 0, controllers = false)]
async fn a_run_that_somebody_deletes_is_not_repeated(cluster: Cluster) -> Result<()> {
    let (operator, node) = prepared(&cluster).await?;
    operator.run(backups(Memory::default()));
    cluster.client().create(&db("1h", 100)).await?;
    until(&cluster, "01:10:00").await;
    cluster.client().delete::<Pod>(hourly(1..=1).remove(0), &DeleteParams::default()).await?;
    until(&cluster, "02:30:00").await;
    assert_eq!(node.seen(), hourly(1..=2));
    Ok(())
}

#[steersman::test(nodes = 0, controllers = false)]
async fn a_restart_in_the_middle_starts_no_second_run(cluster: Cluster) -> Result<()> {
    let (operator, node) = prepared(&cluster).await?;
    let store = Memory::default();
    // It starts the run, and then cannot write down that it did.
    let no_status = Faults::seeded(1).with(Fault::ServerError, 1.0);
    let no_status = no_status.only(|uri| uri.path().ends_with("/status"));
    let client = operator.client_with(&no_status);
    let killed = Manager::new(client).with(backups(store.clone())).start();
    cluster.client().create(&db("1h", 100)).await?;
    until(&cluster, "01:30:00").await;
    assert_eq!(node.seen(), hourly(1..=1));
    assert!(read(&cluster).await?.status.is_none());

    drop(killed);
    operator.run(backups(store));
    until(&cluster, "02:30:00").await;
    assert_eq!(node.seen(), hourly(1..=2));
    let status = read(&cluster).await?.status.unwrap_or_default();
    assert_eq!(status.last_schedule_time.unwrap().0.to_string(), "2030-01-01T02:00:00Z");
    Ok(())
}

#[steersman::test(nodes = 0, controllers = false)]
async fn a_failed_run_shows_in_the_condition(cluster: Cluster) -> Result<()> {
    let (operator, _) = prepared(&cluster).await?;
    operator.run(backups(Memory::default()));
    cluster.client().create(&db("1h", 3)).await?;
    until(&cluster, "01:30:00").await;
    let failed = json!({"status": {"phase": "Failed"}});
    let name = hourly(1..=1).remove(0);
    cluster.client().patch_status::<Pod, _>(name, &Patch::Merge(failed)).await?;
    let told = |backup: &Backup| {
        let conditions = backup.status.clone().unwrap_or_default().conditions;
        conditions.condition("Ready").is_some_and(|ready| ready.reason == "RunFailed")
    };
    cluster.eventually("db", told).await
}
