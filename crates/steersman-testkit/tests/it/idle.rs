//! What a cluster costs in which nothing happens, counted so that it does not depend on the
//! machine, and that whoever looks at its nodes sees them alive all the same.

use std::sync::Arc;
use std::time::Duration;

use http::Request;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::Patch;
use serde_json::json;
use steersman::informer::{Event, Informer};
use steersman::reflector::Selection;
use steersman::{Client, Context, Controller, ListOptions, Next, Result, clock};
use steersman_testkit::Cluster;

use crate::config_map;

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// What a cluster has done so far.
#[derive(Clone, Copy, Debug)]
struct Done {
    /// Answers of the API server.
    requests: u64,
    /// Writes to the store.
    writes: u64,
    /// How often the clock has jumped, at most.
    jumps: u64,
}

impl Done {
    async fn by(cluster: &Cluster) -> Result<Self> {
        let metrics = Request::get("/metrics").body(Vec::new())?;
        let metrics = cluster.client().kube().request_text(metrics).await?;
        let lines = metrics.lines().filter(|line| line.starts_with("apiserver_request_total"));
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        let runtime = tokio::runtime::Handle::current().metrics();
        Ok(Self {
            requests: counts.sum(),
            writes: revision(cluster),
            jumps: runtime.worker_park_count(0),
        })
    }

    fn since(self, before: Self) -> Self {
        Self {
            requests: self.requests - before.requests,
            writes: self.writes - before.writes,
            jumps: self.jumps - before.jumps,
        }
    }
}

/// How far the store is, without anybody having looked at an object.
fn revision(cluster: &Cluster) -> u64 {
    cluster.inner().store().memory().unwrap().stats().revision.0
}

/// What a cluster does while time passes.
async fn pass(cluster: &Cluster, time: Duration) -> Result<Done> {
    let before = Done::by(cluster).await?;
    cluster.advance(time).await;
    Ok(Done::by(cluster).await?.since(before))
}

#[steersman::test]
async fn a_day_in_which_nothing_happens_costs_next_to_nothing(cluster: Cluster) -> Result<()> {
    cluster.advance(2 * HOUR).await; // what the start has stirred up, Events too, comes to rest
    let done = pass(&cluster, DAY).await?;
    assert_eq!(done.writes, 0);
    assert!(done.requests < 24 * 10, "{done:?}");
    assert!(done.jumps < 24 * 40, "{done:?}");
    Ok(())
}

#[steersman::test]
async fn a_week_of_reconciles_every_hour_is_cheap(cluster: Cluster) -> Result<()> {
    let hourly = Controller::of::<ConfigMap>()
        .only(|map: &ConfigMap| map.metadata.name.as_deref() == Some("a"))
        .reconcile(async |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let now = Patch::Merge(json!({"data": {"at": clock::now().to_string()}}));
            ctx.patch::<ConfigMap, _>(ctx.key(), &now).await?;
            Ok(Next::After(HOUR))
        });
    cluster.run(hourly);
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(HOUR).await;
    let mut records = cluster.reconciles();
    let done = pass(&cluster, 7 * DAY).await?;
    let reconciles = std::iter::from_fn(|| records.try_recv().ok()).count();
    assert!(reconciles >= 7 * 24, "{reconciles}");
    assert!(done.requests < 7 * 24 * 10, "{done:?}");
    assert!(done.jumps < 7 * 24 * 60, "{done:?}");
    Ok(())
}

/// How long ago the Leases of nodes were renewed, and Nodes said that they are ready, in seconds.
async fn ages(cluster: &Cluster) -> Result<Vec<(i64, i64)>> {
    let now = clock::now();
    let within =
        ListOptions { namespace: Some("kube-node-lease".into()), ..ListOptions::default() };
    let leases = cluster.client().list::<Lease>(&within).await?;
    let nodes = cluster.client().list::<Node>(&ListOptions::default()).await?;
    let ages = leases.iter().zip(&nodes).map(|(lease, node)| {
        let renewed = lease.spec.as_ref().unwrap().renew_time.as_ref().unwrap().0;
        let conditions = node.status.as_ref().unwrap().conditions.as_ref().unwrap();
        let ready = conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
        let beat = ready.last_heartbeat_time.as_ref().unwrap().0;
        (now.duration_since(renewed).as_secs(), now.duration_since(beat).as_secs())
    });
    Ok(ages.collect())
}

#[steersman::test]
async fn whoever_looks_at_nodes_finds_them_alive(cluster: Cluster) -> Result<()> {
    cluster.advance(DAY).await;
    for seconds in [0, 3, 9, 10, 299, 3600] {
        cluster.advance(Duration::from_secs(seconds)).await;
        let ages = ages(&cluster).await?;
        assert_eq!(ages.len(), 3);
        for (renewed, reported) in ages {
            assert!(renewed < 10, "renewed {renewed} s ago, after {seconds} s");
            assert!(reported < 310, "reported {reported} s ago, after {seconds} s");
        }
    }
    let renewed = async || -> Result<_> {
        let one: Lease = cluster.client().get("kube-node-lease/node-1").await?.unwrap();
        Ok(one.spec.unwrap().renew_time.unwrap().0)
    };
    let before = renewed().await?;
    cluster.advance(HOUR + Duration::from_secs(25)).await;
    let passed = renewed().await?.duration_since(before).as_secs();
    assert_eq!(passed % 10, 0, "as if it had been renewed every ten seconds all the time");
    assert!(passed > 3600);
    Ok(())
}

#[steersman::test]
async fn whoever_watches_leases_sees_every_heartbeat(cluster: Cluster) -> Result<()> {
    cluster.advance(HOUR).await;
    let selection = Selection { namespace: Some("kube-node-lease".into()), ..Selection::default() };
    let client = cluster.client().kube().clone();
    let informer = Informer::<Lease>::builder(client).selection(selection).start();
    let (seen, mut events) = tokio::sync::mpsc::channel(1024);
    let handler = informer.add_handler(move |event: &Event<Lease>| {
        if let Event::Updated { new, .. } = event {
            let spec = new.object().unwrap().spec.clone().unwrap();
            seen.try_send(spec.renew_time.unwrap().0).unwrap();
        }
    });
    handler.await.synced().await;
    cluster.advance(Duration::from_secs(600)).await;
    let times: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    assert_eq!(times.len(), 3 * 60);
    assert!(times.windows(4).all(|four| four[3].duration_since(four[0]).as_secs() == 10));
    drop(informer);
    cluster.advance(Duration::from_secs(20)).await;
    let before = revision(&cluster);
    cluster.advance(HOUR).await;
    assert_eq!(revision(&cluster), before, "nobody looks any more");
    Ok(())
}

#[steersman::test]
async fn whoever_watches_nodes_sees_them_report(cluster: Cluster) -> Result<()> {
    cluster.advance(HOUR).await;
    let informer = Informer::<Node>::builder(cluster.client().kube().clone()).start();
    let (seen, mut events) = tokio::sync::mpsc::channel(1024);
    let handler = informer.add_handler(move |event: &Event<Node>| {
        if matches!(event, Event::Updated { .. }) {
            seen.try_send(clock::now()).unwrap();
        }
    });
    handler.await.synced().await;
    cluster.advance(HOUR).await;
    let times: Vec<_> = std::iter::from_fn(|| events.try_recv().ok()).collect();
    assert_eq!(times.len(), 3 * 12);
    assert!(times.windows(4).all(|four| four[3].duration_since(four[0]).as_secs() == 300));
    Ok(())
}

#[steersman::test]
async fn what_others_write_into_a_node_is_put_right_though_nobody_looks(
    cluster: Cluster,
) -> Result<()> {
    cluster.advance(HOUR).await;
    let broken = json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}});
    let broken = Patch::Strategic(broken);
    let patched = cluster.client().patch_status::<Node, _>("node-1", &broken);
    let version = patched.await?.metadata.resource_version.unwrap();
    assert_eq!(version, revision(&cluster).to_string());
    cluster.advance(Duration::from_secs(10)).await;
    // A part of the cluster itself: nodes do not stir for it.
    let part = kube::Client::new(cluster.inner().api().for_own_parts(), "default");
    let node: Node = Client::new(part, "test").get("node-1").await?.unwrap();
    let conditions = node.status.unwrap().conditions.unwrap();
    assert!(conditions.iter().any(|it| it.type_ == "Ready" && it.status == "True"));
    // An Event tells of it, which is gone after an hour.
    let before = revision(&cluster);
    cluster.advance(HOUR / 2).await;
    assert_eq!(revision(&cluster), before);
    Ok(())
}
