//! Virtual time: what happens in it, how much of it a test has, and how it shows in logs.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use steersman::controller::ReconcileRecord;
use steersman::{Context, Controller, Next, Result, clock};
use steersman_testkit::{Cluster, Settings, run_with};
use tokio::sync::broadcast::Receiver;
use tokio::time::Instant;

use crate::config_map;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Reconciles what is in the namespace of the test every minute.
fn every_minute() -> Controller {
    let ours = |map: &ConfigMap| map.metadata.name.as_deref() == Some("a");
    Controller::of::<ConfigMap>()
        .only(ours)
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::After(MINUTE)))
}

/// How many reconciles were heard of since the last time.
fn count(records: &mut Receiver<Arc<ReconcileRecord>>) -> usize {
    std::iter::from_fn(|| records.try_recv().ok()).count()
}

#[steersman::test]
async fn what_is_due_at_the_very_end_has_happened(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(every_minute());
    cluster.client().create(&config_map("a")).await?;
    cluster.settle().await;
    assert_eq!(count(&mut records), 1);
    let start = Instant::now();
    for _ in 0..5 {
        cluster.advance(MINUTE).await;
        assert_eq!(count(&mut records), 1);
    }
    assert_eq!(start.elapsed(), 5 * MINUTE, "not a moment more has passed");
    Ok(())
}

#[steersman::test]
async fn what_can_happen_now_happens_without_time_passing(cluster: Cluster) -> Result<()> {
    let start = Instant::now();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let work = tokio::spawn(async move {
        begun.await.unwrap();
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
    });
    begin.send(()).unwrap();
    cluster.settle().await;
    assert!(work.is_finished());
    assert_eq!(start.elapsed(), Duration::ZERO);
    Ok(())
}

#[steersman::test(controllers = false, nodes = 0, limit = "1d2h")]
#[should_panic(expected = "has not ended after 1d2h of virtual time, which is its limit")]
async fn a_test_that_does_not_end_fails_at_its_limit(cluster: Cluster) {
    cluster.advance(DAY).await;
    std::future::pending::<()>().await;
}

#[test]
#[should_panic(expected = "has not ended after 1m30s of virtual time")]
fn a_function_can_have_a_limit_as_well() {
    let settings = Settings { limit: Duration::from_secs(90), ..Settings::bare(1) };
    run_with(settings, async |_| std::future::pending::<()>().await);
}

#[steersman::test(controllers = false, nodes = 0, limit = 400 * DAY)]
async fn a_year_can_pass(cluster: Cluster) -> Result<()> {
    let start = clock::now();
    cluster.advance(366 * DAY).await;
    assert_eq!(clock::now().duration_since(start).as_hours(), 366 * 24);
    Ok(())
}

#[steersman::test(controllers = false, nodes = 0)]
async fn lines_of_the_log_tell_the_time_of_the_test(cluster: Cluster) -> Result<()> {
    const INSIDE: &str = "STEERSMAN_TEST_LOGS";
    if std::env::var_os(INSIDE).is_some() {
        cluster.advance(DAY).await;
        tracing::info!("a day has passed");
        tracing::debug!("nobody asked for this");
        return Ok(());
    }
    let name = "time::lines_of_the_log_tell_the_time_of_the_test";
    let logs = |filter| {
        let mut test = Command::new(std::env::current_exe().unwrap());
        test.args(["--exact", name, "--nocapture"]).env(INSIDE, "").env("RUST_LOG", filter);
        String::from_utf8(test.output().unwrap().stdout).unwrap()
    };
    let wanted = logs("it=info");
    let line = wanted.lines().find(|line| line.contains("a day has passed")).expect(&wanted);
    assert!(line.starts_with("2030-01-02T00:00:00.000Z"), "{line}");
    assert!(line.contains(name), "{line}");
    assert!(!wanted.contains("nobody asked"), "{wanted}");
    assert!(!logs("").contains("a day has passed"), "nothing unless it is asked for");
    Ok(())
}
