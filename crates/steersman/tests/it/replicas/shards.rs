//! Replicas that share keys, on a bad network: never two at once on one key.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use steersman::manager::Running;
use steersman::shard::Sharding;
use steersman::workqueue::ExponentialBackoff;
use steersman::{Context, Controller, Manager, Next, ObjectKey, Result};
use steersman_testkit::{Cluster, Condition, Link, Settings, run_with};
use tokio::time::Instant;

use super::{for_seeds, pass, spell, stir};
use crate::reconcile::config_map;

/// How many seeds are tried.
const SEEDS: u64 = 20;
/// How often the network or the group changes in each.
const SPELLS: usize = 12;
const OBJECTS: usize = 40;
/// How long reconciles may go on when their object moves, or their replica stops. Some would
/// take longer.
const PATIENCE: Duration = Duration::from_secs(5);
/// In this time after all is well again, every object has somebody: a replica that was stopped
/// at the last moment, over a bad network, is given up by the others when its Lease has run out
/// (5 s and 15 s); then reconciles of what moves end, and what has moved has its turn.
const RECOVERY: Duration = Duration::from_secs(45);
/// In any such time, every object is then reconciled. One replica alone needs half of it.
const TURN: Duration = Duration::from_secs(30);

/// Sees every reconcile of every replica.
#[derive(Default)]
pub(super) struct Oracle {
    running: Mutex<HashMap<ObjectKey, String>>,
    last: Mutex<HashMap<ObjectKey, (Instant, String)>>,
}

/// A reconcile that is running.
pub(super) struct Reconciling {
    oracle: Arc<Oracle>,
    key: ObjectKey,
}

impl Oracle {
    pub(super) fn enter(self: &Arc<Self>, key: &ObjectKey, replica: &str) -> Reconciling {
        let before = self.running.lock().unwrap().insert(key.clone(), replica.to_owned());
        assert_eq!(before, None, "{key} is reconciled by {replica} at the same time");
        self.last.lock().unwrap().insert(key.clone(), (Instant::now(), replica.to_owned()));
        Reconciling { oracle: Arc::clone(self), key: key.clone() }
    }

    /// How many objects have been reconciled in this time.
    pub(super) fn reconciled_within(&self, time: Duration) -> usize {
        let last = self.last.lock().unwrap();
        last.values().filter(|(at, _)| at.elapsed() <= time).count()
    }

    /// Which objects nobody has begun to reconcile in this time, and what is known of them.
    fn neglected(&self, time: Duration) -> Vec<String> {
        let (last, running) = (self.last.lock().unwrap(), self.running.lock().unwrap());
        let old = last.iter().filter(|(_, (at, _))| at.elapsed() > time);
        let told = |(key, (at, by)): (&ObjectKey, &(Instant, String))| {
            format!("{key}: by {by} {:?} ago, runs: {}", at.elapsed(), running.contains_key(key))
        };
        old.map(told).collect()
    }

    /// Which objects this replica was the last to reconcile.
    pub(super) fn objects_of(&self, replica: &str) -> Vec<ObjectKey> {
        let last = self.last.lock().unwrap();
        last.iter().filter(|(_, (_, by))| by == replica).map(|(key, _)| key.clone()).collect()
    }
}

impl Drop for Reconciling {
    fn drop(&mut self) {
        self.oracle.running.lock().unwrap().remove(&self.key);
    }
}

/// What a replica does with each object.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) oracle: Arc<Oracle>,
    /// How long a reconcile takes at most.
    pub(super) takes: Duration,
    /// How soon each object is reconciled again.
    pub(super) period: Duration,
    pub(super) concurrency: usize,
}

impl Job {
    pub(super) fn controller(&self, replica: &str) -> Controller {
        let (job, name) = (self.clone(), replica.to_owned());
        Controller::of::<ConfigMap>()
            .concurrency(self.concurrency)
            .sharded(Sharding::new("default", "demo").identity(replica).handover_timeout(PATIENCE))
            .reconcile(move |map: Arc<ConfigMap>, _: Context<ConfigMap>| {
                let (job, name) = (job.clone(), name.clone());
                async move {
                    let _running = job.oracle.enter(&ObjectKey::of(&*map), &name);
                    pass(random(job.takes)).await;
                    Ok(Next::After(job.period))
                }
            })
    }

    /// A replica of its own, over this link.
    pub(super) fn start(&self, cluster: &Cluster, replica: &str, link: &Link) -> Running {
        let manager = Manager::new(cluster.client_over(link)).graceful_timeout(PATIENCE);
        manager.with(self.controller(replica)).start()
    }
}

/// Mostly much shorter than this.
fn random(max: Duration) -> Duration {
    let share = steersman::random::next_u64() as f64 / u64::MAX as f64;
    max.mul_f64(share.powi(8))
}

fn simulate(seed: u64) {
    run_with(Settings::bare(seed), |cluster| async move {
        let mut dice = StdRng::seed_from_u64(seed);
        let job = Job {
            oracle: Arc::default(),
            takes: Duration::from_secs(12),
            period: Duration::from_secs(3),
            concurrency: 8,
        };
        for number in 0..OBJECTS {
            cluster.client().create(&config_map(&format!("object-{number}"))).await.unwrap();
        }
        let mut replicas = Vec::new();
        for number in 0..SPELLS {
            let joins = replicas.len() < 2 || (replicas.len() < 5 && dice.random_bool(0.3));
            if joins {
                let link = Link::seeded(dice.random());
                let running = job.start(&cluster, &format!("replica-{number}"), &link);
                replicas.push((link, running));
            } else if dice.random_bool(0.2) {
                let (_, gone) = replicas.remove(dice.random_range(0..replicas.len()));
                if dice.random_bool(0.5) {
                    drop(gone); // killed
                } else {
                    tokio::spawn(gone.stop());
                }
            }
            replicas.iter().for_each(|(link, _)| stir(link, &mut dice));
            cluster.advance(spell(&mut dice)).await;
        }
        replicas.iter().for_each(|(link, _)| link.set(Condition::GOOD));
        cluster.advance(RECOVERY + TURN).await;
        let neglected = job.oracle.neglected(TURN);
        assert!(neglected.is_empty(), "not reconciled any more: {neglected:#?}");
        assert_eq!(job.oracle.reconciled_within(TURN), OBJECTS);
    });
}

#[test]
fn no_key_is_reconciled_by_two_at_once_whatever_the_network_does() {
    for_seeds(SEEDS, simulate);
}

#[steersman::test(controllers = false, nodes = 0)]
async fn keys_of_a_replica_that_leaves_move_at_once(cluster: Cluster) -> Result<()> {
    let job = Job {
        oracle: Arc::default(),
        takes: Duration::from_millis(10),
        period: Duration::from_secs(3600),
        concurrency: 4,
    };
    for number in 0..OBJECTS {
        cluster.client().create(&config_map(&format!("object-{number}"))).await?;
    }
    let link = Link::seeded(1);
    let (stays, leaves) =
        (job.start(&cluster, "stays", &link), job.start(&cluster, "leaves", &link));
    let mut records = stays.reconciles();
    cluster.advance(Duration::from_secs(20)).await;
    let lease = &serde_json::to_value(stays.inspect())?["leases"][0];
    assert_eq!(
        (&lease["identity"], &lease["controller"], &lease["held"], &lease["members"]),
        (&"stays".into(), &"configmap".into(), &true.into(), &2.into())
    );
    let moving = job.oracle.objects_of("leaves").len();
    assert!(moving > 0 && moving < OBJECTS, "{moving}");
    while records.try_recv().is_ok() {}
    leaves.stop().await;
    cluster.advance(Duration::from_secs(5)).await;
    assert_eq!(job.oracle.objects_of("stays").len(), OBJECTS);
    let record = records.recv().await?;
    assert_eq!(record.causes.to_string(), "became this replica's");
    Ok(())
}

#[steersman::test(controllers = false, nodes = 0)]
async fn a_replica_whose_lease_runs_out_aborts_what_it_does(cluster: Cluster) -> Result<()> {
    let job = Job {
        oracle: Arc::default(),
        takes: Duration::from_millis(10),
        period: Duration::from_secs(1),
        concurrency: 4,
    };
    let link = Link::seeded(1);
    cluster.client().create(&config_map("a")).await?;
    let _cut_off = job.start(&cluster, "cut-off", &link);
    cluster.advance(Duration::from_secs(20)).await;
    assert_eq!(job.oracle.reconciled_within(Duration::from_secs(2)), 1);
    link.set(Condition::HELD);
    cluster.advance(Duration::from_secs(13)).await;
    assert_eq!(job.oracle.reconciled_within(Duration::from_secs(2)), 0, "its time is over");
    link.set(Condition::GOOD);
    cluster.advance(Duration::from_secs(13)).await;
    assert_eq!(job.oracle.reconciled_within(Duration::from_secs(2)), 1, "it came back");
    Ok(())
}

/// A controller that fails, on a replica of its own.
fn failing(cluster: &Cluster, replica: &str) -> Running {
    let controller = Controller::of::<ConfigMap>()
        .concurrency(4)
        .rate_limit(ExponentialBackoff::new(Duration::from_millis(100), Duration::from_secs(1)))
        .sharded(Sharding::new("default", "demo").identity(replica).handover_timeout(PATIENCE))
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
            Err(steersman::Error::message("no"))
        })
        .field_manager(replica); // whatever they write under, they share the keys of one controller
    Manager::new(cluster.client_over(&Link::seeded(1))).with(controller).start()
}

fn failing_keys(replica: &Running) -> BTreeSet<ObjectKey> {
    let histories = replica.history();
    histories.iter().flat_map(|history| &history.failing).map(|it| it.key.clone()).collect()
}

#[steersman::test(controllers = false, nodes = 0)]
async fn a_key_that_moved_fails_only_where_it_is_reconciled(cluster: Cluster) -> Result<()> {
    for number in 0..OBJECTS {
        cluster.client().create(&config_map(&format!("object-{number}"))).await?;
    }
    let first = failing(&cluster, "first");
    cluster.advance(Duration::from_secs(20)).await;
    assert_eq!(failing_keys(&first).len(), OBJECTS);
    let second = failing(&cluster, "second");
    cluster.advance(Duration::from_secs(60)).await;
    let (first, second) = (failing_keys(&first), failing_keys(&second));
    assert!(!second.is_empty() && second.len() < OBJECTS, "{second:?}");
    let both: Vec<&ObjectKey> = first.intersection(&second).collect();
    assert!(both.is_empty(), "still told as failing where they are no longer reconciled: {both:?}");
    assert_eq!(first.len() + second.len(), OBJECTS);
    Ok(())
}
