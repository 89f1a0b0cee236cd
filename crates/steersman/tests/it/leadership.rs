//! Several replicas of one manager, of which one leads.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use steersman::election::LeaderElection;
use steersman::manager::{ControllerPhase, Group, Running};
use steersman::shard::Sharding;
use steersman::{Context, Controller, Error, ListOptions, Manager, Next, Result};
use steersman_testkit::Cluster;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::reconcile::{config_map, of_the_test};

/// Marks each ConfigMap with the name of the replica that reconciled it first.
fn replica(cluster: &Cluster, name: &'static str) -> Manager {
    let marks = Controller::of::<ConfigMap>().only(of_the_test).reconcile(
        move |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| async move {
            if map.data.is_none() {
                let mut map = (*map).clone();
                map.data = Some([("by".to_owned(), name.to_owned())].into());
                ctx.update(&map).await?;
            }
            Ok(Next::Settled)
        },
    );
    let election = LeaderElection::new("default", "marks").identity(name);
    Manager::new(cluster.client().kube().clone()).with(marks).leader_election(election)
}

fn phase(running: &Running) -> ControllerPhase {
    running.controllers()[0].1
}

fn by(name: &str) -> impl Fn(&ConfigMap) -> bool {
    move |map| map.data.as_ref().is_some_and(|data| data["by"] == name)
}

#[steersman::test]
async fn one_replica_reconciles_and_the_next_one_is_warm(cluster: Cluster) -> Result<()> {
    let first = replica(&cluster, "first").start();
    first.elected().await;
    let second = replica(&cluster, "second").start();
    second.ready().await?;
    cluster.client().create(&config_map("a")).await?;
    cluster.eventually("a", by("first")).await?;
    assert_eq!(
        (phase(&first), phase(&second)),
        (ControllerPhase::Working, ControllerPhase::Standby)
    );
    assert!(first.is_leader() && !second.is_leader());
    first.stop().await;
    let released = Instant::now();
    second.elected().await;
    assert!(released.elapsed() < Duration::from_secs(5), "the lease was not given back");
    cluster.client().create(&config_map("b")).await?;
    cluster.eventually("b", by("second")).await?;
    let lease = &serde_json::to_value(second.inspect())?["leases"][0];
    assert_eq!((&lease["lease"], &lease["held"]), (&"default/marks".into(), &true.into()));
    Ok(())
}

#[steersman::test]
async fn who_leads_is_told_by_events_about_the_lease(cluster: Cluster) -> Result<()> {
    for name in ["first", "second"] {
        let running = replica(&cluster, name).start();
        running.elected().await;
        running.stop().await;
    }
    let events: Vec<Event> = cluster.client().list(&ListOptions::default()).await?;
    let about = |event: &Event| event.regarding.as_ref()?.kind.clone();
    let events = events.into_iter().filter(|event| about(event).as_deref() == Some("Lease"));
    let mut told: Vec<_> = events.map(|event| (event.reason, event.note)).collect();
    told.sort();
    let expected = ["first became", "first stopped", "second became", "second stopped"];
    let notes: Vec<_> = told.iter().filter_map(|(_, note)| note.as_deref()).collect();
    assert_eq!(notes.len(), expected.len(), "{told:?}");
    assert!(notes.iter().zip(expected).all(|(note, begin)| note.starts_with(begin)), "{told:?}");
    assert!(told.iter().all(|(reason, _)| reason.as_deref() == Some("LeaderElection")), "{told:?}");
    Ok(())
}

#[steersman::test]
async fn a_replica_that_stops_does_not_become_leader_meanwhile(cluster: Cluster) -> Result<()> {
    let first = replica(&cluster, "first").start();
    first.elected().await;
    let second = replica(&cluster, "second")
        .with_runnable("slow to end", async |_, stop: CancellationToken| {
            stop.cancelled().await;
            let _ =
                tokio::time::timeout(Duration::from_secs(20), std::future::pending::<()>()).await;
            Ok(())
        })
        .start();
    second.ready().await?;
    cluster.advance(Duration::from_secs(1)).await; // what has begun has also had its turn
    let stopping = tokio::spawn(second.stop());
    cluster.advance(Duration::from_secs(1)).await;
    first.stop().await;
    cluster.advance(Duration::from_secs(10)).await;
    assert!(!stopping.is_finished());
    let lease: Option<Lease> = cluster.client().get("marks").await?;
    assert_eq!(lease.and_then(|lease| lease.spec?.holder_identity), None, "it is for others");
    stopping.await.unwrap();
    Ok(())
}

#[steersman::test]
async fn the_lease_is_given_back_only_after_guarded_work_has_ended(cluster: Cluster) -> Result<()> {
    let observer = cluster.client().clone();
    let held = Arc::new(std::sync::Mutex::new(None));
    let seen = Arc::clone(&held);
    let manager = replica(&cluster, "first").with_runnable_in(
        Group::LeaderElected,
        "slow to end",
        move |client, stop| async move {
            stop.cancelled().await;
            let _ =
                tokio::time::timeout(Duration::from_secs(20), std::future::pending::<()>()).await;
            client.create(&config_map("the last word")).await.unwrap_err(); // not a valid name
            client.create(&config_map("last-word")).await?;
            let lease: Option<Lease> = observer.get("marks").await?;
            *seen.lock().unwrap() = lease.and_then(|lease| lease.spec?.holder_identity);
            Ok(())
        },
    );
    let running = manager.start();
    running.elected().await;
    cluster.advance(Duration::from_secs(1)).await;
    running.stop().await;
    assert_eq!(held.lock().unwrap().as_deref(), Some("first"));
    assert!(cluster.client().get::<ConfigMap>("last-word").await?.is_some());
    let lease: Option<Lease> = cluster.client().get("marks").await?;
    let holder = lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default();
    assert_eq!(holder, "", "given back in the end");
    Ok(())
}

#[steersman::test]
async fn a_lost_lease_stops_the_manager_at_once(cluster: Cluster) -> Result<()> {
    let manager =
        replica(&cluster, "first").with_runnable("stubborn", |_, _| std::future::pending());
    let takes = async {
        cluster.eventually("marks", |lease: &Lease| held_by(lease, "first")).await?;
        let mut lease: Lease = cluster.client().get("marks").await?.unwrap();
        lease.spec.as_mut().unwrap().holder_identity = Some("intruder".into());
        cluster.client().update(&lease).await?;
        Ok::<_, Error>(Instant::now())
    };
    let (ended, taken) = tokio::join!(manager.run_until(std::future::pending()), takes);
    let error = ended.unwrap_err().to_string();
    assert_eq!(error, "leader election: lost leader lease default/marks: taken by intruder");
    assert!(taken?.elapsed() < Duration::from_secs(5), "no grace after a lost lease");
    Ok(())
}

#[steersman::test]
async fn a_lease_that_is_lost_while_the_manager_stops_ends_that_at_once(
    cluster: Cluster,
) -> Result<()> {
    let running = replica(&cluster, "first")
        .with_runnable("broken", async |_, stop: CancellationToken| {
            let _ = tokio::time::timeout(Duration::from_secs(1), stop.cancelled()).await;
            Err(Error::message("another failure, before the lease was lost"))
        })
        .with_runnable_in(Group::LeaderElected, "stubborn", |_, _| std::future::pending())
        .start();
    running.elected().await;
    running.failed().await;
    let (start, stopping) = (Instant::now(), tokio::spawn(running.stop()));
    cluster.advance(Duration::from_secs(4)).await;
    assert!(!stopping.is_finished(), "work may end as long as it leads");
    let mut lease: Lease = cluster.client().get("marks").await?.unwrap();
    lease.spec.as_mut().unwrap().holder_identity = Some("intruder".into());
    cluster.client().update(&lease).await?;
    stopping.await.unwrap();
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    Ok(())
}

fn held_by(lease: &Lease, name: &str) -> bool {
    lease.spec.as_ref().is_some_and(|spec| spec.holder_identity.as_deref() == Some(name))
}

#[steersman::test]
async fn what_runs_everywhere_does_not_wait_to_be_elected(cluster: Cluster) -> Result<()> {
    let first = replica(&cluster, "first").start();
    first.elected().await;
    let idle = Controller::of::<ConfigMap>()
        .named("everywhere")
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled))
        .on_every_replica();
    let second = replica(&cluster, "second").with(idle).start();
    second.ready().await?;
    cluster.advance(Duration::from_secs(1)).await;
    let phases: Vec<_> = second.controllers().into_iter().map(|(_, phase)| phase).collect();
    assert_eq!(phases, [ControllerPhase::Standby, ControllerPhase::Working]);
    Ok(())
}

#[steersman::test]
async fn an_election_that_makes_no_sense_is_refused(cluster: Cluster) {
    let election = LeaderElection::new("default", "x").renew_deadline(Duration::from_secs(60));
    let manager = Manager::new(cluster.client().kube().clone()).leader_election(election);
    let error = manager.run_until(std::future::pending()).await.unwrap_err().to_string();
    assert!(error.contains("lease duration > renew deadline"), "{error}");
}

#[steersman::test]
async fn a_sharding_that_makes_no_sense_is_refused_as_an_election_is(cluster: Cluster) {
    for (sharding, why) in [
        (
            Sharding::new("default", "x").renew_deadline(Duration::from_secs(60)),
            "lease duration > renew deadline",
        ),
        (Sharding::new("default", ""), "lease without group"),
        (Sharding::new("default", "x").identity(""), "lease without identity"),
        (
            Sharding::new("default", "Tills"),
            "cannot be called after the group \"Tills\": a lowercase",
        ),
        (Sharding::new("default", "x".repeat(64)), "must be no more than 63"),
    ] {
        let controller = Controller::of::<ConfigMap>()
            .sharded(sharding)
            .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled));
        let manager = Manager::new(cluster.client().kube().clone()).with(controller);
        let error = manager.run_until(std::future::pending()).await.unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[steersman::test]
async fn a_candidate_without_a_name_is_refused(cluster: Cluster) {
    let election = LeaderElection::new("default", "x").identity("");
    let manager = Manager::new(cluster.client().kube().clone()).leader_election(election);
    let error = manager.run_until(std::future::pending()).await.unwrap_err().to_string();
    assert!(error.contains("lease without identity"), "{error}");
}
