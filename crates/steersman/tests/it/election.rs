//! Leader election and its fence, on a cluster.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::Patch;
use kube::client::Body;
use serde_json::json;
use steersman::election::{ElectionError, LeaderElection};
use steersman::fence::{Fence, Fenced};
use steersman::{Client, Metrics, Result};
use steersman_testkit::{Cluster, Condition, Link};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::reconcile::config_map;

/// A candidate that runs in the background.
struct Candidate {
    fence: Fence,
    stop: CancellationToken,
    task: JoinHandle<Result<(), ElectionError>>,
    elected: JoinHandle<Instant>,
}

impl Candidate {
    fn start(client: &kube::Client, identity: &str) -> Self {
        let namespace = client.default_namespace();
        Self::with(client, LeaderElection::new(namespace, "demo").identity(identity))
    }

    fn with(client: &kube::Client, settings: LeaderElection) -> Self {
        let elector = settings.elector(client.clone(), &Metrics::default()).unwrap();
        let (fence, stop, elected) = (elector.fence(), CancellationToken::new(), elector.elected());
        let task = tokio::spawn(elector.run(stop.clone()));
        let elected = tokio::spawn(async move {
            elected.await;
            Instant::now()
        });
        Self { fence, stop, task, elected }
    }

    async fn elected(&mut self) -> Instant {
        (&mut self.elected).await.unwrap()
    }

    async fn stop(self) -> Result<(), ElectionError> {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

async fn lease(cluster: &Cluster) -> LeaseSpec {
    let lease: Option<Lease> = cluster.client().get("demo").await.unwrap();
    lease.unwrap().spec.unwrap()
}

#[steersman::test(anywhere)]
async fn a_leader_that_stops_hands_over_at_once(cluster: Cluster) -> Result<()> {
    let client = cluster.client().kube();
    let mut first = Candidate::start(client, "first");
    first.elected().await;
    assert_eq!((first.fence.is_open(), first.fence.epoch()), (true, Some(0)));
    let mut second = Candidate::start(client, "second");
    cluster.advance(Duration::from_secs(3)).await;
    assert!(!second.fence.is_open() && !second.elected.is_finished());

    let fence = first.fence.clone();
    first.stop().await?;
    let stopped = Instant::now();
    assert!(!fence.is_open());
    let waited = second.elected().await - stopped;
    assert!(waited < Duration::from_secs(5), "{waited:?}");
    let spec = lease(&cluster).await;
    assert_eq!(
        (spec.holder_identity.as_deref(), spec.lease_transitions),
        (Some("second"), Some(1))
    );
    assert_eq!(second.fence.epoch(), Some(1));
    second.stop().await?;
    assert_eq!(lease(&cluster).await.holder_identity, None);
    Ok(())
}

#[steersman::test]
async fn a_leader_that_vanishes_is_replaced_when_its_lease_has_run_out(
    cluster: Cluster,
) -> Result<()> {
    let client = cluster.client().kube();
    let mut first = Candidate::start(client, "first");
    first.elected().await;
    let mut second = Candidate::start(client, "second");
    cluster.advance(Duration::from_secs(30)).await;
    first.task.abort();
    let gone = Instant::now();
    let waited = second.elected().await - gone;
    // The lease lasts 15 s from when the second saw it renewed, and it looks every 2 to 4.4 s.
    assert!(waited > Duration::from_secs(12) && waited < Duration::from_secs(24), "{waited:?}");
    assert_eq!(lease(&cluster).await.holder_identity.as_deref(), Some("second"));
    Ok(())
}

#[steersman::test]
async fn a_foreign_lease_counts_from_when_it_was_seen_whatever_its_timestamps_say(
    cluster: Cluster,
) -> Result<()> {
    for timestamp in ["1999-01-01T00:00:00Z", "2099-01-01T00:00:00Z"] {
        let timestamp = MicroTime(timestamp.parse().unwrap());
        let mut lease = Lease::default();
        lease.metadata.name = Some("demo".into());
        lease.spec = Some(LeaseSpec {
            holder_identity: Some("stranger".into()),
            lease_duration_seconds: Some(40),
            renew_time: Some(timestamp.clone()),
            acquire_time: Some(timestamp),
            ..LeaseSpec::default()
        });
        cluster.client().apply(&lease).await?;
        let start = Instant::now();
        let mut candidate = Candidate::start(cluster.client().kube(), "patient");
        let waited = candidate.elected().await - start;
        assert!(
            waited >= Duration::from_secs(40) && waited < Duration::from_secs(46),
            "{waited:?}"
        );
        candidate.stop().await?;
    }
    Ok(())
}

#[steersman::test]
async fn a_leader_that_is_cut_off_stops_before_anybody_else_leads(cluster: Cluster) -> Result<()> {
    let link = Link::seeded(1);
    let behind = cluster.client_over(&link);
    let mut first = Candidate::start(&behind, "first");
    first.elected().await;
    let mut second = Candidate::start(cluster.client().kube(), "second");
    cluster.advance(Duration::from_secs(60)).await;

    link.set(Condition::HELD);
    let cut_off = Instant::now();
    let lost = first.task.await.unwrap().unwrap_err();
    assert!(matches!(lost, ElectionError::Lost { .. }), "{lost}");
    let stopped = cut_off.elapsed();
    assert!(stopped > Duration::from_secs(7) && stopped <= Duration::from_secs(10), "{stopped:?}");
    assert!(!first.fence.is_open());
    let replaced = second.elected().await - cut_off;
    assert!(
        replaced > Duration::from_secs(12) && replaced < Duration::from_secs(20),
        "{replaced:?}"
    );
    Ok(())
}

#[steersman::test]
async fn a_write_under_way_is_cut_off_and_does_not_arrive_later(cluster: Cluster) -> Result<()> {
    let link = Link::seeded(1);
    let behind = cluster.client_over(&link);
    let mut leader = Candidate::start(&behind, "leader");
    leader.elected().await;
    let guarded = Client::new(leader.fence.guard(&behind), "leader");
    guarded.create(&config_map("before")).await?;

    link.set(Condition::HELD);
    let start = Instant::now();
    let (under_way, later) = (config_map("under-way"), config_map("later"));
    let refused = guarded.create(&under_way).await.unwrap_err();
    assert!(refused.to_string().contains("cut off"), "{refused}");
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    let refused = guarded.create(&later).await.unwrap_err();
    assert!(refused.to_string().contains("write refused: the lease default/demo"), "{refused}");
    link.set(Condition::GOOD);
    cluster.advance(Duration::from_secs(60)).await;
    for (name, there) in [("before", true), ("under-way", false), ("later", false)] {
        let found: Option<ConfigMap> = cluster.client().get(name).await?;
        assert_eq!(found.is_some(), there, "{name}");
    }
    assert!(guarded.get::<ConfigMap>("before").await?.is_some(), "reads always pass");
    Ok(())
}

#[steersman::test]
async fn a_stop_hook_that_blocks_past_the_deadline_cannot_write(cluster: Cluster) -> Result<()> {
    let link = Link::seeded(1);
    let behind = cluster.client_over(&link);
    let mut first = Candidate::start(&behind, "first");
    first.elected().await;
    let guarded = first.fence.guard(cluster.client().kube());
    let mut second = Candidate::start(cluster.client().kube(), "second");
    // The leader is asked to stop, but what it must do before that takes long; meanwhile it
    // cannot renew. Its own writes would still reach the server.
    link.set(Condition::HELD);
    second.elected().await;
    let late = Client::new(guarded.clone(), "first").create(&config_map("late")).await;
    let late = late.unwrap_err();
    assert!(late.to_string().contains("write refused"), "{late}");
    let raw = guarded.request_text(http_post("default")).await.unwrap_err();
    assert!(matches!(Fenced::cause_of(&raw), Some(Fenced::Refused { .. })), "{raw:?}");
    assert!(cluster.client().get::<ConfigMap>("late").await?.is_none());
    Ok(())
}

fn http_post(namespace: &str) -> http::Request<Vec<u8>> {
    let path = format!("/api/v1/namespaces/{namespace}/configmaps");
    http::Request::post(path).body(b"{}".to_vec()).unwrap()
}

#[steersman::test]
async fn a_lease_is_given_back_only_when_every_guarded_write_is_answered(
    cluster: Cluster,
) -> Result<()> {
    let slow = Link::seeded(1);
    let mut leader = Candidate::start(cluster.client().kube(), "leader");
    leader.elected().await;
    let guarded = Client::new(leader.fence.guard(&cluster.client_over(&slow)), "leader");
    slow.set(Condition::HELD);
    let write = tokio::spawn(async move { guarded.create(&config_map("slow")).await });
    cluster.advance(Duration::from_millis(10)).await;
    leader.stop.cancel();
    cluster.advance(Duration::from_secs(3)).await;
    assert_eq!(lease(&cluster).await.holder_identity.as_deref(), Some("leader"));
    slow.set(Condition::GOOD);
    leader.task.await.unwrap()?;
    assert!(write.await.unwrap().is_ok());
    assert_eq!(lease(&cluster).await.holder_identity, None);
    Ok(())
}

#[steersman::test]
async fn a_conflict_while_the_lease_is_given_back_is_tried_again(cluster: Cluster) -> Result<()> {
    let link = Link::seeded(1);
    let mut leader = Candidate::start(&cluster.client_over(&link), "leader");
    leader.elected().await;
    let second = Duration::from_secs(1);
    link.set(Condition { delay: second..=second, ..Condition::GOOD });
    leader.stop.cancel();
    cluster.advance(Duration::from_millis(1500)).await; // it has been read
    let patch = Patch::Merge(json!({"metadata": {"labels": {"touched": "yes"}}}));
    cluster.client().patch::<Lease, _>("demo", &patch).await?;
    leader.task.await.unwrap()?;
    assert_eq!(lease(&cluster).await.holder_identity, None);
    Ok(())
}

#[steersman::test]
async fn a_server_that_does_not_take_the_lease_back_is_not_besieged(
    cluster: Cluster,
) -> Result<()> {
    let (client, refused) = refusing(&cluster);
    let mut leader = Candidate::start(&client, "leader");
    leader.elected().await;
    refused.store(1, Ordering::Relaxed);
    let start = Instant::now();
    leader.stop().await?;
    assert!(start.elapsed() <= Duration::from_secs(10), "it runs out by itself");
    assert_eq!(lease(&cluster).await.holder_identity.as_deref(), Some("leader"));
    assert!((2..10).contains(&refused.load(Ordering::Relaxed)), "{refused:?}");
    Ok(())
}

/// A client whose writes are forbidden, and counted, from when that number is not zero.
fn refusing(cluster: &Cluster) -> (kube::Client, Arc<AtomicUsize>) {
    let (client, refused) = (cluster.client().kube().clone(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&refused);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (client, count) = (client.clone(), Arc::clone(&count));
        async move {
            if request.method() == http::Method::GET || count.load(Ordering::Relaxed) == 0 {
                return client.send(request).await;
            }
            assert!(count.fetch_add(1, Ordering::Relaxed) < 1000, "asked without a pause");
            let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                "message": "no", "reason": "Forbidden", "code": 403});
            let body = Body::from(serde_json::to_vec(&status).unwrap());
            Ok(http::Response::builder().status(403).body(body).unwrap())
        }
    });
    (kube::Client::new(service, cluster.client().kube().default_namespace()), refused)
}

#[steersman::test]
async fn a_leader_that_finds_anothers_name_in_the_lease_stops_at_once(
    cluster: Cluster,
) -> Result<()> {
    let mut leader = Candidate::start(cluster.client().kube(), "leader");
    leader.elected().await;
    let patch = Patch::Merge(json!({"spec": {"holderIdentity": "usurper"}}));
    cluster.client().patch::<Lease, _>("demo", &patch).await?;
    let start = Instant::now();
    let lost = leader.task.await.unwrap().unwrap_err();
    assert!(matches!(&lost, ElectionError::Taken { holder, .. } if holder == "usurper"), "{lost}");
    assert!(start.elapsed() <= Duration::from_secs(2));
    assert!(!leader.fence.is_open());
    Ok(())
}

#[steersman::test]
async fn a_deleted_lease_makes_nobody_else_a_leader(cluster: Cluster) -> Result<()> {
    let client = cluster.client().kube();
    let mut leader = Candidate::start(client, "leader");
    leader.elected().await;
    let second = Candidate::start(client, "second");
    for _ in 0..20 {
        cluster.advance(Duration::from_millis(2300)).await;
        cluster.client().delete::<Lease>("demo", &Default::default()).await?;
    }
    assert!(leader.fence.is_open() && !second.elected.is_finished());
    Ok(())
}

#[steersman::test]
async fn who_leads_is_told_and_counted(cluster: Cluster) -> Result<()> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let metrics = Metrics::default();
    let settings = |identity: &str| {
        let told = Arc::clone(&told);
        let told = move |leader: &str| told.lock().unwrap().push(leader.to_owned());
        LeaderElection::new("default", "demo").identity(identity).on_new_leader(told)
    };
    let client = cluster.client().kube();
    let status = |metrics: &Metrics| {
        let text = metrics.render();
        let line = text.lines().find(|line| line.starts_with("leader_election_master_status{"));
        line.unwrap().to_owned()
    };
    let elector = settings("first").elector(client.clone(), &metrics)?;
    assert_eq!(status(&metrics), "leader_election_master_status{name=\"demo\"} 0");
    let (stop, elected) = (CancellationToken::new(), elector.elected());
    let first = tokio::spawn(elector.run(stop.clone()));
    elected.await;
    assert_eq!(status(&metrics), "leader_election_master_status{name=\"demo\"} 1");
    stop.cancel();
    first.await.unwrap()?;
    assert_eq!(status(&metrics), "leader_election_master_status{name=\"demo\"} 0");
    Candidate::with(client, settings("second")).elected().await;
    assert_eq!(*told.lock().unwrap(), ["first", "second"]);
    Ok(())
}

#[steersman::test]
async fn durations_that_make_no_sense_are_refused(cluster: Cluster) -> Result<()> {
    let settings = LeaderElection::new("default", "demo").renew_deadline(Duration::from_secs(15));
    let refused = settings.elector(cluster.client().kube().clone(), &Metrics::default());
    let text = refused.err().unwrap().to_string();
    assert!(text.contains("lease duration > renew deadline"), "{text}");
    Ok(())
}
