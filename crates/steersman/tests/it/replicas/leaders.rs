//! Two managers compete for one Lease: never two writers.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Patch;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use steersman::election::LeaderElection;
use steersman::workqueue::ExponentialBackoff;
use steersman::{Client, Context, Controller, Manager, Next, Result, predicate};
use steersman_testkit::{Cluster, Condition, Link, Settings, run_with};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::write_log::WriteLog;
use super::{for_seeds, pass, spell, stir};
use crate::reconcile::config_map;

/// How many seeds are tried.
const SEEDS: u64 = 200;
/// How often the network changes in each.
const SPELLS: usize = 10;
/// In this time after the network is well again, somebody works.
const RECOVERY: Duration = Duration::from_secs(30);

/// How often a leader writes.
const WORK_PERIOD: Duration = Duration::from_millis(1900);
/// How soon a replica that ended is started again.
const RESTART: Duration = Duration::from_millis(700);
/// How often somebody tries to write who has not noticed that it leads no more.
const ROGUE_PERIOD: Duration = Duration::from_millis(900);
const ROGUE_WRITES: usize = 30;

static WRITES: AtomicU64 = AtomicU64::new(0);

/// Writes who did it, so that each write is a new version.
async fn work(client: &Client, by: &str) -> Result<()> {
    let number = WRITES.fetch_add(1, Ordering::Relaxed).to_string();
    let patch = Patch::Merge(json!({"data": {"by": by, "number": number}}));
    client.patch::<ConfigMap, _>("default/work", &patch).await.map(drop)
}

/// Works as long as it is run. Its first reconcile leaves a [`rogue`] behind.
fn worker(identity: &str, refused: Arc<AtomicUsize>) -> Controller {
    let identity: Arc<str> = identity.into();
    let alone = AtomicBool::new(true);
    Controller::of::<ConfigMap>()
        // What is written must not wake its writer.
        .when(predicate::label_changed())
        .rate_limit(ExponentialBackoff::new(Duration::from_millis(50), Duration::from_secs(1)))
        .reconcile(move |_, ctx: Context<ConfigMap>| {
            let identity = Arc::clone(&identity);
            if alone.swap(false, Ordering::Relaxed) {
                let rogue = rogue(ctx.live().clone(), identity.to_string(), Arc::clone(&refused));
                tokio::spawn(rogue);
            }
            async move {
                work(ctx.live(), &identity).await?;
                Ok(Next::After(WORK_PERIOD))
            }
        })
}

/// Goes on writing whatever happens around it, as blocked hooks and forgotten tasks do: only the
/// fence can stop it.
async fn rogue(client: Client, identity: String, refused: Arc<AtomicUsize>) {
    for _ in 0..ROGUE_WRITES {
        if let Err(error) = work(&client, &identity).await
            && error.to_string().contains("lease default/demo")
        {
            refused.fetch_add(1, Ordering::Relaxed);
        }
        pass(ROGUE_PERIOD).await;
    }
}

/// One replica, which is restarted when it ends, as a Pod is.
struct Replica {
    link: Link,
    /// Ends the current life in order.
    stop: Arc<Mutex<CancellationToken>>,
    _task: AbortOnDropHandle<()>,
}

impl Replica {
    fn start(cluster: &Cluster, name: &'static str, seed: u64, refused: &Arc<AtomicUsize>) -> Self {
        let link = Link::seeded(seed);
        let (client, refused) = (cluster.client_over(&link), Arc::clone(refused));
        let stop = Arc::new(Mutex::new(CancellationToken::new()));
        let stops = Arc::clone(&stop);
        let task = tokio::spawn(async move {
            for number in 0.. {
                let life = stops.lock().unwrap().clone();
                live(&client, format!("{name}-{number}"), &life, Arc::clone(&refused)).await;
                *stops.lock().unwrap() = CancellationToken::new();
                pass(RESTART).await;
            }
        });
        Self { link, stop, _task: AbortOnDropHandle::new(task) }
    }

    fn stop(&self) {
        self.stop.lock().unwrap().cancel();
    }
}

/// One life of a replica: until it loses the Lease, or is told to stop.
async fn live(
    client: &kube::Client,
    identity: String,
    stop: &CancellationToken,
    refused: Arc<AtomicUsize>,
) {
    let settings = LeaderElection::new("default", "demo").identity(identity.as_str());
    let manager = Manager::new(client.clone()).leader_election(settings);
    // That it lost the Lease is what this is about.
    let _ = manager.with(worker(&identity, refused)).run_until(stop.cancelled()).await;
}

/// What one run has seen.
struct Seen {
    terms: usize,
    refused: usize,
}

fn simulate(seed: u64) -> Seen {
    run_with(Settings::bare(seed), |cluster| async move {
        let mut dice = StdRng::seed_from_u64(seed);
        let log = WriteLog::follow(&cluster).await;
        cluster.client().create(&config_map("work")).await.unwrap();
        let refused = Arc::new(AtomicUsize::new(0));
        let replicas = [
            Replica::start(&cluster, "a", seed * 2, &refused),
            Replica::start(&cluster, "b", seed * 2 + 1, &refused),
        ];
        for _ in 0..SPELLS {
            if dice.random_bool(0.2) {
                // The server itself is paused.
                replicas.iter().for_each(|replica| replica.link.set(Condition::HELD));
            } else {
                replicas.iter().for_each(|replica| stir(&replica.link, &mut dice));
            }
            if dice.random_bool(0.1) {
                replicas[dice.random_range(0..2)].stop();
            }
            cluster.advance(spell(&mut dice)).await;
        }
        replicas.iter().for_each(|replica| replica.link.set(Condition::GOOD));
        cluster.advance(RECOVERY).await;
        let before = log.work();
        cluster.advance(WORK_PERIOD * 2).await;
        log.check();
        assert!(log.work() > before, "nobody works after {RECOVERY:?} of a good network");
        Seen { terms: log.terms(), refused: refused.load(Ordering::Relaxed) }
    })
}

#[test]
fn two_managers_never_both_write_whatever_the_network_does() {
    let (terms, refused) = (AtomicUsize::new(0), AtomicUsize::new(0));
    for_seeds(SEEDS, |seed| {
        let seen = simulate(seed);
        terms.fetch_add(seen.terms, Ordering::Relaxed);
        refused.fetch_add(seen.refused, Ordering::Relaxed);
    });
    let (terms, refused) = (terms.into_inner(), refused.into_inner());
    println!("{terms} terms, {refused} writes refused or cut off by the fence");
    let all = std::env::var_os("STEERSMAN_SEED").is_none();
    // Seeds among which leadership hardly ever moves would show nothing.
    let seeds = SEEDS as usize;
    assert!(!all || (terms > seeds && refused > seeds * 10), "{terms} terms, {refused} refused");
}
