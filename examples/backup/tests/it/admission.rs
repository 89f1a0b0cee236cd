//! What the webhooks change, refuse and warn of.

use backup::webhooks::webhooks;
use backup::{Backup, backups};
use kube::api::DeleteParams;
use kube::core::Status;
use serde_json::{Value, json};
use steersman::prelude::*;
use steersman::webhook::{AdmissionRequest, Validator};
use steersman_testkit::Cluster;

use crate::fixture::{Memory, db, prepared, read, until};

/// A Backup as somebody may write it, with as little as possible.
fn written(name: &str, spec: &Value) -> Backup {
    let backup = json!({"apiVersion": "backup.example.com/v1", "kind": "Backup",
        "metadata": {"name": name}, "spec": spec});
    serde_json::from_value(backup).unwrap()
}

#[steersman::test(nodes = 0, controllers = false, anywhere)]
async fn what_is_left_open_is_filled_in(cluster: Cluster) -> Result<()> {
    cluster.install::<Backup>().await?;
    cluster.webhooks(webhooks()).await?;
    let stored = cluster.client().create(&written("db", &json!({"image": "dump:1"}))).await?;
    assert_eq!(stored.spec.secret.as_deref(), Some("db-credentials"));
    assert_eq!((stored.spec.every.as_str(), stored.spec.keep), ("24h", 3));
    Ok(())
}

#[steersman::test(nodes = 0, controllers = false, anywhere)]
async fn what_makes_no_sense_is_refused(cluster: Cluster) -> Result<()> {
    cluster.install::<Backup>().await?;
    cluster.webhooks(webhooks()).await?;
    let long = "a".repeat(50);
    for (name, spec, field) in [
        ("db", json!({"image": "dump:1", "every": "often"}), "spec.every"),
        ("db", json!({"image": "dump:1", "every": "30s"}), "spec.every"),
        ("db", json!({"image": "dump:1", "keep": 0}), "spec.keep"), // by the schema
        (&long, json!({"image": "dump:1"}), "metadata.name"),
    ] {
        let refused = cluster.client().create(&written(name, &spec)).await.unwrap_err();
        assert!(refused.status().is_some_and(Status::is_invalid), "{refused}");
        assert!(refused.to_string().contains(field), "{refused}");
    }
    Ok(())
}

/// A Backup from before there were webhooks may make no sense. It must still be possible to give it
/// its finalizer, or nobody would be told what is wrong with it.
#[steersman::test(nodes = 0, controllers = false)]
async fn what_makes_no_sense_is_told_so(cluster: Cluster) -> Result<()> {
    let (operator, _) = prepared(&cluster).await?;
    cluster.client().create(&db("often", 3)).await?;
    cluster.webhooks(webhooks()).await?;
    operator.run(backups(Memory::default()));
    until(&cluster, "00:01:00").await;
    assert_eq!(read(&cluster).await?.status.unwrap().conditions[0].reason, "InvalidSchedule");
    Ok(())
}

/// A Backup from before there were webhooks may make no sense. It must still be possible to take
/// its finalizer away, which is an update.
#[steersman::test(nodes = 0, controllers = false)]
async fn what_makes_no_sense_can_be_deleted(cluster: Cluster) -> Result<()> {
    let (operator, _) = prepared(&cluster).await?;
    let store = Memory::default();
    operator.run(backups(store.clone()));
    cluster.client().create(&db("often", 3)).await?;
    until(&cluster, "00:01:00").await;
    assert_eq!(read(&cluster).await?.status.unwrap().conditions[0].reason, "InvalidSchedule");
    cluster.webhooks(webhooks()).await?;
    cluster.client().delete::<Backup>("db", &DeleteParams::default()).await?;
    cluster.gone::<Backup>("db").await
}

#[test]
fn whoever_keeps_less_is_warned() {
    let request: AdmissionRequest = serde_json::from_value(json!({
        "uid": "1", "operation": "UPDATE", "name": "db",
        "kind": {"group": "backup.example.com", "version": "v1", "kind": "Backup"},
        "resource": {"group": "backup.example.com", "version": "v1", "resource": "backups"},
    }))
    .unwrap();
    let warned = |keep, old| db("1h", keep).validate_update(&db("1h", old), &request).unwrap();
    assert_eq!(warned(2, 3), ["of the finished runs, all but 2 are deleted"]);
    assert_eq!(warned(3, 3), [""; 0]);
}
