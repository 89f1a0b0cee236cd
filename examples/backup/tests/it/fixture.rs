//! What the tests share: a store in memory, a node that ends every Pod, and Backups.

use std::collections::BTreeSet;
use std::io;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backup::operator::manifests;
use backup::{Backup, BackupSpec, Store};
use k8s_openapi::api::core::v1::{Pod, PodStatus, Secret};
use k8s_openapi::jiff::Timestamp;
use steersman::informer::Event;
use steersman::prelude::*;
use steersman_testkit::{Cluster, Deployed};

/// A store that can be looked into, and be out of order. Clones are the same store.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<Buckets>>);

#[derive(Default)]
struct Buckets {
    present: BTreeSet<String>,
    deleted: Vec<String>,
    /// How many deletions are still to fail.
    failing: usize,
}

impl Memory {
    /// The buckets that there are.
    pub(crate) fn present(&self) -> Vec<String> {
        self.0.lock().unwrap().present.iter().cloned().collect()
    }

    /// The buckets that were deleted, in order.
    pub(crate) fn deleted(&self) -> Vec<String> {
        self.0.lock().unwrap().deleted.clone()
    }

    /// Lets the next deletions fail; tells how many are left to.
    pub(crate) fn fail(&self, deletions: usize) {
        self.0.lock().unwrap().failing = deletions;
    }

    pub(crate) fn failing(&self) -> usize {
        self.0.lock().unwrap().failing
    }
}

impl Store for Memory {
    async fn create(&self, bucket: &str) -> io::Result<()> {
        self.0.lock().unwrap().present.insert(bucket.to_owned());
        Ok(())
    }

    async fn delete(&self, bucket: &str) -> io::Result<()> {
        let mut buckets = self.0.lock().unwrap();
        if buckets.failing > 0 {
            buckets.failing -= 1;
            return Err(io::Error::other("the store is out of order"));
        }
        if buckets.present.remove(bucket) {
            buckets.deleted.push(bucket.to_owned());
        }
        Ok(())
    }
}

/// Ends every Pod as soon as it sees it, and remembers all that there ever were: one that was
/// made again is seen twice.
#[derive(Clone, Default)]
pub(crate) struct Node(Arc<Mutex<Vec<String>>>);

impl Node {
    pub(crate) fn controller(&self) -> Controller {
        let pods = Arc::clone(&self.0);
        Controller::of::<Pod>()
            .named("node")
            .observes(move |event: &Event<Pod>| {
                if let Event::Added { object, .. } = event {
                    pods.lock().unwrap().push(object.key().name.to_string());
                }
            })
            .reconcile(succeed)
    }

    /// The names of the Pods that it saw, in order.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

async fn succeed(pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    if phase == Some("Pending") {
        ctx.change_status(|status: &mut PodStatus| status.phase = Some("Succeeded".into()))?;
    }
    Ok(Next::Settled)
}

/// The Backup `db`.
pub(crate) fn db(every: &str, keep: u32) -> Backup {
    let image = "example.com/dump:1".to_owned();
    let secret = Some("credentials".to_owned());
    Backup::new("db", BackupSpec { image, every: every.to_owned(), keep, secret })
}

/// The Secret that it refers to.
pub(crate) fn credentials() -> Secret {
    let mut secret = Secret::default();
    secret.metadata.name = Some("credentials".into());
    secret
}

/// A cluster that has all that a Backup needs, and a node. What runs as the operator may do what its
/// manifests allow.
pub(crate) async fn prepared(cluster: &Cluster) -> Result<(Deployed, Node)> {
    let operator = cluster.deploy(&manifests(None)).await?;
    cluster.client().create(&credentials()).await?;
    let node = Node::default();
    cluster.run(node.controller());
    Ok((operator, node))
}

/// The names of the hourly Pods of `db`, so many hours after the clock of a test begins.
pub(crate) fn hourly(hours: RangeInclusive<u32>) -> Vec<String> {
    let name = |hour| match hour {
        0..24 => format!("db-20300101-{hour:02}00"),
        _ => format!("db-20300102-{:02}00", hour - 24),
    };
    hours.map(name).collect()
}

/// Lets time pass until it is this late on the first day.
pub(crate) async fn until(cluster: &Cluster, clock: &str) {
    let then: Timestamp = format!("2030-01-01T{clock}Z").parse().unwrap();
    let left = then.duration_since(steersman::clock::now());
    cluster.advance(Duration::try_from(left).unwrap()).await;
}

/// `db` as it is.
pub(crate) async fn read(cluster: &Cluster) -> Result<Backup> {
    let db = cluster.client().get::<Backup>("db").await?;
    db.ok_or_else(|| Error::message("there is no Backup db"))
}
