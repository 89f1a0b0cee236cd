//! Two replicas, of which one is elected.

use backup::operator::operator;
use steersman::Manager;
use steersman::prelude::*;
use steersman_testkit::{Cluster, Condition, Link};

use crate::fixture::{Memory, db, prepared, until};

#[steersman::test(nodes = 0, controllers = false)]
async fn the_other_replica_takes_over_where_the_leader_was_cut_off(cluster: Cluster) -> Result<()> {
    let (deployed, node) = prepared(&cluster).await?;
    let store = Memory::default();
    let link = Link::seeded(1);
    let first = operator(Manager::new(deployed.client_over(&link)), store.clone()).start();
    first.elected().await;
    let second = operator(Manager::new(deployed.client()), store.clone()).start();
    second.ready().await?; // its caches are filled, and it waits
    cluster.client().create(&db("1m", 100)).await?;
    until(&cluster, "00:02:30").await;
    assert!(first.is_leader() && !second.is_leader());

    link.set(Condition::HELD); // from here on, nothing of the first one arrives
    let lost = first.failed().await;
    assert!(lost.to_string().contains("lost leader lease"), "{lost}");
    second.elected().await;
    until(&cluster, "00:04:30").await;
    let minutes: Vec<String> = (1..=4).map(|minute| format!("db-20300101-000{minute}")).collect();
    assert_eq!(node.seen(), minutes);
    Ok(())
}
