//! Runs a test on a virtual clock, with everything in it following from one seed.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use steersman::{clock, random};
use steersman_cluster::{MemoryStore, Storage};

use crate::cluster::Cluster;
use crate::settings::Settings;
use crate::test::{Test, untyped};
use crate::{existing, logs, settle};

/// When every test begins.
const START: &str = "2030-01-01T00:00:00Z";

/// Runs a test with a cluster. This is what `#[steersman::test]` calls.
pub fn run<R, Fut: Future<Output = R>>(test: impl FnOnce(Cluster) -> Fut) -> R {
    run_with(Settings::default(), test)
}

/// Runs a test with a cluster of this kind, or on an existing one if it can run
/// [anywhere](Settings::anywhere).
///
/// # Panics
///
/// If the cluster cannot be started, the test has not ended within its
/// [limit](Settings::limit) of virtual time, or what it [deployed](Cluster::deploy) lacks
/// permissions.
pub fn run_with<R, Fut: Future<Output = R>>(
    settings: Settings,
    test: impl FnOnce(Cluster) -> Fut,
) -> R {
    untyped(test, |test| run_untyped(settings, test))
}

fn run_untyped(settings: Settings, test: Test<'_>) {
    logs::init();
    if settings.anywhere
        && let Some(kubeconfig) = existing::kubeconfig()
    {
        return existing::run(&kubeconfig, test);
    }
    let start = START.parse().expect("it is a valid timestamp");
    run_on(Origin { settings, prepared: None, start }, test);
}

/// What a test begins with.
pub(crate) struct Origin {
    pub(crate) settings: Settings,
    /// What to fork the cluster from, if anything.
    pub(crate) prepared: Option<MemoryStore>,
    pub(crate) start: Timestamp,
}

/// Runs a test on a runtime and a virtual clock of its own.
pub(crate) fn run_on(Origin { settings, prepared, start }: Origin, test: Test<'_>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    settle::tell_when_idle(&mut runtime);
    let runtime = runtime.enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime on the current thread needs nothing that can lack");
    runtime.block_on(async {
        clock::start_at(start);
        random::seed(settings.seed);
        let storage = prepared.map_or(Storage::Memory, |store| Storage::Existing(store.fork()));
        let cluster = Cluster::start(settings, storage).await;
        let cluster = cluster.expect("the cluster of the test starts");
        let failed = cluster.failed();
        let refusals = cluster.refusals().clone();
        let test = AssertUnwindSafe(test(cluster)).catch_unwind();
        tokio::select! {
            ended = test => {
                // It explains what else went wrong, which has been told if it was a panic.
                refusals.fail_if_any();
                ended.unwrap_or_else(|panic| resume_unwind(panic));
            }
            error = failed => panic!("part of the cluster failed: {error}"),
            () = tokio::time::sleep(settings.limit) => {
                let limit = Days(settings.limit);
                let refused = refusals.complaint().map(|complaint| format!("\n{complaint}"));
                panic!(
                    "the test has not ended after {limit} of virtual time, which is its limit; if \
                     it needs longer: #[steersman::test(limit = \"…\")], or Settings::limit{}",
                    refused.unwrap_or_default(),
                )
            }
        }
    });
}

/// Shows a time as it is written in the attribute.
struct Days(Duration);

impl fmt::Display for Days {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_secs();
        for (unit, seconds) in [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)] {
            let count = rest / seconds;
            rest %= seconds;
            if count > 0 {
                write!(f, "{count}{unit}")?;
            }
        }
        if self.0.as_secs() == 0 { write!(f, "{:?}", self.0) } else { Ok(()) }
    }
}
