//! The manager: what it starts and stops in which order, and what it does when parts fail.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use steersman::manager::{ControllerPhase, Group, Running};
use steersman::{Client, Context, Controller, Error, Manager, Next, Result};
use steersman_testkit::Cluster;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::reconcile::{config_map, of_the_test};

/// What happened, in order.
#[derive(Clone, Default)]
struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Work that notes when it begins and when it ends, which takes it a second.
    fn runnable(
        &self,
        name: &'static str,
    ) -> impl FnOnce(Client, CancellationToken) -> futures::future::BoxFuture<'static, Result<()>>
    + Send
    + 'static {
        let journal = self.clone();
        move |_, stop| {
            Box::pin(async move {
                journal.note(format!("+{name}"));
                stop.cancelled().await;
                waited(Duration::from_secs(1)).await;
                journal.note(format!("-{name}"));
                Ok(())
            })
        }
    }
}

/// Lets time pass inside a part; tests themselves never wait.
async fn waited(time: Duration) {
    let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
}

fn idle(name: &str) -> Controller {
    Controller::of::<ConfigMap>()
        .named(name)
        .only(of_the_test)
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled))
}

fn manager(cluster: &Cluster) -> Manager {
    Manager::new(cluster.client().kube().clone())
}

#[steersman::test]
async fn groups_start_in_order_and_work_stops_before_what_serves_it(cluster: Cluster) {
    let journal = Journal::default();
    let groups = [
        (Group::LeaderElected, "leader-elected"),
        (Group::Others, "others"),
        (Group::Caches, "caches"),
        (Group::Webhooks, "webhooks"),
        (Group::Servers, "servers"),
    ];
    let manager = groups.into_iter().fold(manager(&cluster), |manager, (group, name)| {
        manager.with_runnable_in(group, name, journal.runnable(name))
    });
    let running = manager.start();
    running.ready().await.unwrap();
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(journal.take(), ["+servers", "+webhooks", "+caches", "+others", "+leader-elected"]);
    let start = Instant::now();
    running.stop().await;
    assert_eq!(journal.take(), ["-others", "-leader-elected", "-caches", "-webhooks", "-servers"]);
    assert_eq!(start.elapsed().as_secs(), 5, "each group ends before the next is asked to");
}

#[steersman::test]
async fn work_can_be_added_at_any_time_and_stops_with_its_group(cluster: Cluster) -> Result<()> {
    let journal = Journal::default();
    let running = manager(&cluster).with_runnable("first", journal.runnable("first")).start();
    running.ready().await?;
    running.add_runnable(Group::Servers, "late", journal.runnable("late"));
    running.add(idle("late"))?;
    running.ready().await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert_eq!(running.controllers(), [("late".into(), ControllerPhase::Working)]);
    running.stop().await;
    assert_eq!(journal.take(), ["+first", "+late", "-first", "-late"]);
    Ok(())
}

#[steersman::test]
async fn a_reconcile_under_way_may_end_before_the_manager_does(cluster: Cluster) -> Result<()> {
    let journal = Journal::default();
    let ended = journal.clone();
    let slow = Controller::of::<ConfigMap>().only(of_the_test).reconcile(
        move |_: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            let ended = ended.clone();
            async move {
                waited(Duration::from_secs(20)).await;
                let map: Option<Arc<ConfigMap>> = ctx.get(&ctx.key().name.clone())?;
                ended.note(format!("ended, and still reads the cache: {}", map.is_some()));
                Ok(Next::Settled)
            }
        },
    );
    let running = manager(&cluster).with(slow).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    running.stop().await;
    assert_eq!(journal.take(), ["ended, and still reads the cache: true"]);
    Ok(())
}

#[steersman::test]
async fn what_does_not_end_within_the_graceful_timeout_is_aborted(cluster: Cluster) {
    let journal = Journal::default();
    let (stubborn, dropped) = (journal.clone(), journal.clone());
    let manager = manager(&cluster)
        .graceful_timeout(Duration::from_secs(7))
        .with_runnable("stubborn", move |_, _| async move {
            let _guard = OnDrop(dropped, "stubborn is gone");
            std::future::pending::<()>().await;
            stubborn.note("never");
            Ok(())
        })
        .with_runnable_in(Group::Servers, "polite", journal.runnable("polite"));
    let running = manager.start();
    running.ready().await.unwrap();
    cluster.advance(Duration::from_secs(1)).await; // what has begun has also had its turn
    journal.take();
    let start = Instant::now();
    running.stop().await;
    assert_eq!(start.elapsed(), Duration::from_secs(7));
    assert_eq!(journal.take(), ["stubborn is gone"], "there was no time left for the others");
}

#[steersman::test]
async fn without_grace_everything_is_aborted_at_once(cluster: Cluster) {
    let journal = Journal::default();
    let dropped = journal.clone();
    let running = manager(&cluster)
        .graceful_timeout(Duration::ZERO)
        .with_runnable("stubborn", move |_, _| async move {
            let _guard = OnDrop(dropped, "stubborn is gone");
            std::future::pending().await
        })
        .with_runnable_in(Group::Servers, "polite", journal.runnable("polite"))
        .start();
    running.ready().await.unwrap();
    cluster.advance(Duration::from_secs(1)).await; // what has begun has also had its turn
    journal.take();
    let start = Instant::now();
    running.stop().await;
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(journal.take(), ["stubborn is gone"]);
}

#[steersman::test]
async fn what_may_take_for_ever_is_waited_for(cluster: Cluster) {
    let journal = Journal::default();
    let slow = journal.clone();
    let running = manager(&cluster)
        .graceful_timeout(Duration::MAX)
        .with_runnable("slow", move |_, stop: CancellationToken| async move {
            stop.cancelled().await;
            waited(Duration::from_secs(3600)).await;
            slow.note("ended");
            Ok(())
        })
        .start();
    running.ready().await.unwrap();
    cluster.advance(Duration::from_secs(1)).await; // what has begun has also had its turn
    running.stop().await;
    assert_eq!(journal.take(), ["ended"]);
}

#[steersman::test]
async fn dropping_the_manager_stops_everything_at_once(cluster: Cluster) -> Result<()> {
    let (journal, start) = (Journal::default(), Instant::now());
    let dropped = journal.clone();
    let running = manager(&cluster)
        .with_runnable("busy", move |_, _| async move {
            let _guard = OnDrop(dropped, "gone");
            std::future::pending().await
        })
        .start();
    running.ready().await?;
    cluster.settle().await; // what has begun has also had its turn
    drop(running);
    cluster.settle().await;
    assert_eq!(journal.take(), ["gone"]);
    assert_eq!(start.elapsed(), Duration::ZERO);
    Ok(())
}

#[steersman::test]
async fn a_failing_part_stops_the_manager_with_its_error(cluster: Cluster) {
    let journal = Journal::default();
    let manager = manager(&cluster)
        .with_runnable("steady", journal.runnable("steady"))
        .with_runnable("broken", |_, _| async {
            waited(Duration::from_secs(3)).await;
            Err(Error::message("no more paper"))
        });
    let ended = manager.run_until(std::future::pending()).await;
    assert_eq!(ended.unwrap_err().to_string(), "broken: no more paper");
    assert_eq!(journal.take(), ["+steady", "-steady"]);
}

#[steersman::test]
async fn a_panicking_part_stops_the_manager_and_nothing_else(cluster: Cluster) {
    let manager = manager(&cluster).with_runnable("broken", |_, _| async { panic!("boom") });
    let ended = manager.run_until(std::future::pending()).await;
    assert_eq!(ended.unwrap_err().to_string(), "broken panicked: boom");
}

#[steersman::test]
async fn after_a_failure_later_groups_do_not_start(cluster: Cluster) {
    let journal = Journal::default();
    let running = manager(&cluster)
        .with_runnable_in(Group::Servers, "server", |_, _| async {
            Err(Error::message("the address is in use"))
        })
        .with_runnable("others", journal.runnable("others"))
        .start();
    assert_eq!(running.ready().await.unwrap_err().to_string(), "server: the address is in use");
    cluster.advance(Duration::from_secs(1)).await;
    assert!(journal.take().is_empty());
}

#[steersman::test]
async fn two_controllers_of_one_name_are_refused(cluster: Cluster) {
    let manager = manager(&cluster).with(idle("same")).with(idle("same"));
    let error = manager.run_until(std::future::pending()).await.unwrap_err().to_string();
    assert!(error.starts_with("two controllers are named \"same\""), "{error}");
    let running: Running = self::manager(&cluster).with(idle("same")).start();
    assert!(running.add(idle("same")).unwrap_err().to_string().contains(".named("));
}

#[steersman::test]
async fn the_manager_is_ready_when_every_cache_is_filled(cluster: Cluster) -> Result<()> {
    let two_kinds = Controller::of::<ConfigMap>()
        .reads::<Secret>()
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled));
    let running = manager(&cluster).with(two_kinds).start();
    assert_eq!(running.controllers(), [("configmap".into(), ControllerPhase::Syncing)]);
    running.ready().await?;
    let informers = running.metrics().informers();
    assert_eq!(informers.len(), 2);
    assert!(informers.iter().all(|informer| informer.synced));
    Ok(())
}

/// Tells when work is dropped.
struct OnDrop(Journal, &'static str);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}
