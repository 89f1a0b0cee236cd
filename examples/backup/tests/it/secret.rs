//! The Secret that a Backup refers to.

use backup::operator::manifests;
use backup::{Backup, backups};
use k8s_openapi::api::events::v1::Event;
use steersman::ListOptions;
use steersman::conditions::Conditions;
use steersman::prelude::*;
use steersman_testkit::Cluster;

use crate::fixture::{Memory, Node, credentials, db, hourly, until};

#[steersman::test(nodes = 0, controllers = false)]
async fn without_its_secret_a_backup_waits_and_says_so(cluster: Cluster) -> Result<()> {
    let operator = cluster.deploy(&manifests(None)).await?;
    let node = Node::default();
    cluster.run(node.controller());
    operator.run(backups(Memory::default()));
    cluster.client().create(&db("1h", 3)).await?;
    let missing = |backup: &Backup| {
        let conditions = backup.status.clone().unwrap_or_default().conditions;
        conditions.condition("Ready").is_some_and(|ready| ready.reason == "NoSecret")
    };
    cluster.eventually("db", missing).await?;
    until(&cluster, "00:01:00").await; // Events are sent in the background
    let events = cluster.client().list::<Event>(&ListOptions::default()).await?;
    let told = |event: &&Event| event.reason.as_deref() == Some("NoSecret");
    let event = events.iter().find(told).expect("an Event says so as well");
    assert_eq!(event.note.as_deref(), Some("there is no Secret credentials"));
    until(&cluster, "01:30:00").await;
    assert_eq!(node.seen(), [""; 0]);

    // Its creation is enough: nobody waits for the next due time.
    cluster.client().create(&credentials()).await?;
    let ready = |backup: &Backup| {
        backup.status.clone().unwrap_or_default().conditions.is_condition_true("Ready")
    };
    cluster.eventually("db", ready).await?;
    until(&cluster, "01:31:00").await;
    assert_eq!(node.seen(), hourly(1..=1));
    Ok(())
}
