//! Runs a test on a virtual clock, with everything in it following from one seed.

use std::future::Future;
use std::time::Duration;

use jiff::Timestamp;
use steersman::{clock, random};
use steersman_cluster::{Controllers, MemoryStore, Storage};

use crate::{Cluster, existing};

/// Virtual time after which a test that has not ended is taken for stuck.
const PATIENCE: Duration = Duration::from_secs(24 * 3600);
/// When every test begins.
const START: &str = "2030-01-01T00:00:00Z";

/// What kind of cluster a test gets.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many simulated nodes there are.
    pub nodes: usize,
    /// How long the containers of a Pod take to end when it is deleted. At once unless said
    /// otherwise; on a real cluster it is a second or more.
    pub termination: Duration,
    /// Whether the built-in controllers and the scheduler run.
    pub controllers: bool,
    /// Which of them, if they do: all, or such as `"*,-garbage-collector-controller"`, parsed.
    pub which: Controllers,
    /// Everything random follows from this.
    pub seed: u64,
    /// Whether the test asks for nothing that only this cluster has: then it also runs on any
    /// other, if `STEERSMAN_TEST_KUBECONFIG` names one.
    pub anywhere: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            nodes: 3,
            termination: Duration::ZERO,
            controllers: true,
            which: Controllers::ALL,
            seed: 1,
            anywhere: false,
        }
    }
}

impl Settings {
    /// Only an API server: nothing happens that the test does not do.
    pub fn bare(seed: u64) -> Self {
        Self { nodes: 0, controllers: false, seed, ..Self::default() }
    }
}

/// Runs a test with a cluster. This is what `#[steersman::test]` calls.
pub fn run<R, Fut: Future<Output = R>>(test: impl FnOnce(Cluster) -> Fut) -> R {
    run_with(Settings::default(), test)
}

/// Runs a test with a cluster of this kind, or on an existing one if it can run
/// [anywhere](Settings::anywhere).
///
/// # Panics
///
/// If the cluster cannot be started, or the test has not ended after a virtual day.
pub fn run_with<R, Fut: Future<Output = R>>(
    settings: Settings,
    test: impl FnOnce(Cluster) -> Fut,
) -> R {
    if settings.anywhere
        && let Some(kubeconfig) = existing::kubeconfig()
    {
        return existing::run(&kubeconfig, test);
    }
    let start = START.parse().expect("it is a valid timestamp");
    run_on(Origin { settings, prepared: None, start }, test)
}

/// What a test begins with.
pub(crate) struct Origin {
    pub(crate) settings: Settings,
    /// What to fork the cluster from, if anything.
    pub(crate) prepared: Option<MemoryStore>,
    pub(crate) start: Timestamp,
}

/// Runs a test on a runtime and a virtual clock of its own.
pub(crate) fn run_on<R, Fut: Future<Output = R>>(
    Origin { settings, prepared, start }: Origin,
    test: impl FnOnce(Cluster) -> Fut,
) -> R {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime on the current thread needs nothing that can lack");
    runtime.block_on(async {
        clock::start_at(start);
        random::seed(settings.seed);
        let storage = prepared.map_or(Storage::Memory, |store| Storage::Existing(store.fork()));
        let cluster = Cluster::start(settings, storage).await;
        let cluster = cluster.expect("the cluster of the test starts");
        let failed = cluster.failed();
        tokio::select! {
            result = test(cluster) => result,
            error = failed => panic!("part of the cluster failed: {error}"),
            () = tokio::time::sleep(PATIENCE) => {
                panic!("the test has not ended after {PATIENCE:?} of virtual time")
            }
        }
    })
}
