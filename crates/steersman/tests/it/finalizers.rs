//! Finalizers: what must be undone before an object may go; and hearing of what is gone.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch};
use serde_json::json;
use steersman::controller::{Gone, Outcome};
use steersman::{Client, Context, Controller, Error, Manager, Next, Reconciler, Result};
use steersman_testkit::{Cluster, Fault, Faults};

use crate::reconcile::{config_map, of_the_test};

const OURS: &str = "example.com/ours";

/// What a controller did, in its order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn finalizers(map: &ConfigMap) -> Vec<String> {
    map.metadata.finalizers.clone().unwrap_or_default()
}

/// Says what it does; its cleanup fails this many times.
fn careful(name: &str, finalizer: &str, log: &Log, failures: u32) -> Controller {
    let (reconciled, cleaned) = (log.clone(), log.clone());
    let left = AtomicU32::new(failures);
    let own = finalizer.to_owned();
    Controller::of::<ConfigMap>()
        .named(name)
        .only(of_the_test)
        .cleanup(finalizer, move |map: Arc<ConfigMap>, _: Context<ConfigMap>| {
            assert!(map.metadata.deletion_timestamp.is_some());
            cleaned.say("clean up");
            let fails =
                left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            async move { if fails.is_ok() { Err(Error::message("not yet")) } else { Ok(()) } }
        })
        .reconcile(move |map: Arc<ConfigMap>, _: Context<ConfigMap>| {
            assert!(finalizers(&map).contains(&own), "reconciled before the finalizer was there");
            reconciled.say("reconcile");
            async { Ok(Next::Settled) }
        })
}

async fn delete(cluster: &Cluster, name: &str) -> Result<()> {
    cluster.client().delete::<ConfigMap>(name, &DeleteParams::default()).await.map(drop)
}

#[steersman::test]
async fn an_object_is_held_before_its_first_reconcile_and_let_go_after_its_cleanup(
    cluster: Cluster,
) -> Result<()> {
    let log = Log::default();
    cluster.run(careful("c", OURS, &log, 0));
    cluster.client().create(&config_map("a")).await?;
    cluster.eventually("a", |map: &ConfigMap| finalizers(map) == [OURS]).await?;
    cluster.advance(Duration::from_secs(1)).await;
    assert!(log.take().iter().all(|did| did == "reconcile"));
    delete(&cluster, "a").await?;
    cluster.gone::<ConfigMap>("a").await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(log.take(), ["clean up"]);
    Ok(())
}

#[steersman::test]
async fn a_cleanup_that_fails_is_tried_until_it_succeeds(cluster: Cluster) -> Result<()> {
    let log = Log::default();
    let mut records = cluster.reconciles();
    cluster.run(careful("c", OURS, &log, 5));
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    log.take();
    while records.try_recv().is_ok() {}
    delete(&cluster, "a").await?;
    cluster.gone::<ConfigMap>("a").await?;
    assert_eq!(log.take(), vec!["clean up"; 6]);
    for retry in 0..6 {
        let record = records.recv().await?;
        let failed = matches!(record.outcome, Outcome::Failed(_));
        assert_eq!(failed, retry < 5, "{}", record.outcome);
        let cause = if retry == 0 { "is being deleted".into() } else { format!("retry {retry}") };
        assert!(record.causes.to_string().contains(&cause), "{}", record.causes);
    }
    Ok(())
}

#[steersman::test]
async fn a_controller_that_restarts_midway_goes_on(cluster: Cluster) -> Result<()> {
    let log = Log::default();
    let kube = cluster.client().kube();
    let running = Manager::new(kube.clone()).with(careful("c", OURS, &log, u32::MAX)).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.eventually("a", |map: &ConfigMap| finalizers(map) == [OURS]).await?;
    delete(&cluster, "a").await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert!(log.take().contains(&"clean up".to_owned()));
    running.stop().await;

    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(log.take(), Vec::<String>::new());
    let still = cluster.client().get::<ConfigMap>("a").await?.unwrap();
    assert_eq!(finalizers(&still), [OURS]);
    let _running = Manager::new(kube.clone()).with(careful("c", OURS, &log, 0)).start();
    cluster.gone::<ConfigMap>("a").await?;
    assert_eq!(log.take(), ["clean up"]);
    Ok(())
}

#[steersman::test]
async fn two_controllers_hold_one_object_without_disturbing_each_other(
    cluster: Cluster,
) -> Result<()> {
    let (one, other) = (Log::default(), Log::default());
    cluster.run(careful("one", "example.com/one", &one, 2));
    cluster.run(careful("other", "example.com/other", &other, 0));
    let mut map = config_map("a");
    map.metadata.finalizers = Some(vec!["example.com/by-hand".into()]);
    cluster.client().create(&map).await?;
    cluster.eventually("a", |map: &ConfigMap| finalizers(map).len() == 3).await?;
    cluster.advance(Duration::from_secs(1)).await;
    one.take();
    other.take();
    delete(&cluster, "a").await?;
    let by_hand = |map: &ConfigMap| finalizers(map) == ["example.com/by-hand"];
    cluster.eventually("a", by_hand).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(one.take(), vec!["clean up"; 3], "no conflict made it clean up once more");
    assert_eq!(other.take(), ["clean up"]);
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.client().patch::<ConfigMap, _>("a", &release).await?;
    cluster.gone::<ConfigMap>("a").await
}

#[steersman::test]
async fn what_others_do_during_a_cleanup_is_kept_and_does_not_repeat_it(
    cluster: Cluster,
) -> Result<()> {
    let log = Log::default();
    let cleaned = log.clone();
    let controller = Controller::of::<ConfigMap>()
        .only(of_the_test)
        .cleanup(OURS, move |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| {
            cleaned.say("clean up");
            async move {
                // Another controller is done with it before we are.
                let left = finalizers(&map).into_iter().filter(|name| name != "example.com/first");
                let left = json!({"metadata": {"finalizers": left.collect::<Vec<_>>()}});
                ctx.live().patch::<ConfigMap, _>(ctx.key(), &Patch::Merge(left)).await.map(drop)
            }
        })
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled));
    cluster.run(controller);
    let mut map = config_map("a");
    let others = ["example.com/first", "example.com/second"].map(str::to_owned);
    map.metadata.finalizers = Some(others.to_vec());
    cluster.client().create(&map).await?;
    cluster.eventually("a", |map: &ConfigMap| finalizers(map).len() == 3).await?;
    delete(&cluster, "a").await?;
    cluster.eventually("a", |map: &ConfigMap| finalizers(map) == ["example.com/second"]).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(log.take(), ["clean up"]);
    Ok(())
}

#[steersman::test]
async fn what_was_being_deleted_before_gets_neither_finalizer_nor_effect(
    cluster: Cluster,
) -> Result<()> {
    let mut map = config_map("a");
    map.metadata.finalizers = Some(vec!["example.com/by-hand".into()]);
    cluster.client().create(&map).await?;
    delete(&cluster, "a").await?;
    let log = Log::default();
    cluster.run(careful("c", OURS, &log, 0));
    cluster.advance(Duration::from_secs(60)).await;
    let map = cluster.client().get::<ConfigMap>("a").await?.unwrap();
    assert_eq!(finalizers(&map), ["example.com/by-hand"]);
    assert_eq!(log.take(), Vec::<String>::new());
    Ok(())
}

#[steersman::test]
async fn several_cleanups_run_one_after_the_other_and_none_twice(cluster: Cluster) -> Result<()> {
    let log = Log::default();
    let (first, second) = (log.clone(), log.clone());
    let tries = AtomicU32::new(0);
    cluster.run(
        Controller::of::<ConfigMap>()
            .only(of_the_test)
            .cleanup("example.com/first", move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
                first.say("first");
                async { Ok(()) }
            })
            .cleanup("example.com/second", move |_: Arc<ConfigMap>, _: Context<ConfigMap>| {
                second.say("second");
                let done = tries.fetch_add(1, Ordering::SeqCst) > 1;
                let next = if done { Next::Settled } else { Next::After(Duration::from_secs(5)) };
                async move { Ok(next) }
            })
            .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled)),
    );
    cluster.client().create(&config_map("a")).await?;
    cluster.eventually("a", |map: &ConfigMap| finalizers(map).len() == 2).await?;
    delete(&cluster, "a").await?;
    cluster.gone::<ConfigMap>("a").await?;
    let said = log.take();
    assert_eq!(said.iter().filter(|said| *said == "first").count(), 1, "{said:?}");
    assert!(said.iter().filter(|said| *said == "second").count() >= 3, "{said:?}");
    Ok(())
}

/// Tells of what is gone, and fails this many times first.
fn mourner(log: &Log, failures: u32) -> Controller {
    let (gone, reconciled) = (log.clone(), log.clone());
    let left = AtomicU32::new(failures);
    Controller::of::<ConfigMap>()
        .only(of_the_test)
        .on_deleted(move |object: Gone<ConfigMap>, _: Client| {
            let last = object.last.and_then(|map| map.data.clone()?.remove("n"));
            gone.say(format!("{} gone with {}", object.key, last.unwrap_or_default()));
            let fails =
                left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            async move { if fails.is_ok() { Err(Error::message("not yet")) } else { Ok(()) } }
        })
        .reconcile(move |map: Arc<ConfigMap>, _: Context<ConfigMap>| {
            let n = map.data.clone().and_then(|mut data| data.remove("n")).unwrap_or_default();
            reconciled.say(format!("reconcile {n}"));
            async { Ok(Next::Settled) }
        })
}

fn numbered(name: &str, n: &str) -> ConfigMap {
    ConfigMap { data: Some([("n".to_owned(), n.to_owned())].into()), ..config_map(name) }
}

#[steersman::test]
async fn whoever_asked_hears_of_what_is_gone_until_it_succeeds(cluster: Cluster) -> Result<()> {
    let log = Log::default();
    cluster.run(mourner(&log, 2));
    cluster.client().create(&numbered("a", "1")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    delete(&cluster, "a").await?;
    cluster.advance(Duration::from_secs(60)).await;
    let gone = "default/a gone with 1";
    assert_eq!(log.take(), ["reconcile 1", gone, gone, gone]);
    Ok(())
}

#[steersman::test]
async fn an_object_of_the_same_name_waits_until_the_end_of_the_first_is_told(
    cluster: Cluster,
) -> Result<()> {
    let log = Log::default();
    cluster.run(mourner(&log, 1));
    cluster.client().create(&numbered("a", "1")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    delete(&cluster, "a").await?;
    cluster.client().create(&numbered("a", "2")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    let gone = "default/a gone with 1";
    assert_eq!(log.take(), ["reconcile 1", gone, gone, "reconcile 2"]);
    Ok(())
}

#[steersman::test]
async fn a_deletion_that_was_missed_is_told_when_it_is_found_out(cluster: Cluster) -> Result<()> {
    let network =
        Faults::seeded(1).with(Fault::ConnectionRefused, 1.0).with(Fault::WatchEnded, 1.0);
    network.heal();
    let log = Log::default();
    let _running = Manager::new(cluster.client_with(&network)).with(mourner(&log, 0)).start();
    cluster.client().create(&numbered("a", "1")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    network.resume();
    delete(&cluster, "a").await?;
    cluster.advance(Duration::from_secs(60)).await;
    crate::gaps::forget_history(&cluster).await;
    assert_eq!(log.take(), ["reconcile 1"]);
    network.heal();
    cluster.advance(Duration::from_secs(120)).await;
    assert_eq!(log.take(), ["default/a gone with 1"]);
    Ok(())
}

/// An operator with a state of its own.
struct Operator {
    log: Log,
}

impl Reconciler<ConfigMap> for Operator {
    const FINALIZER: Option<&'static str> = Some(OURS);

    async fn reconcile(&self, map: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Next> {
        self.log.say(format!("reconcile with {:?}", finalizers(&map)));
        Ok(Next::Settled)
    }

    async fn clean_up(&self, _: Arc<ConfigMap>, _: Context<ConfigMap>) -> Result<Next> {
        self.log.say("clean up");
        Ok(Next::Settled)
    }
}

#[steersman::test]
async fn a_reconciler_cleans_up_itself_and_its_finalizer_does_not_wake_it(
    cluster: Cluster,
) -> Result<()> {
    let log = Log::default();
    let operator = Arc::new(Operator { log: log.clone() });
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).reconcile(operator));
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(log.take(), [format!("reconcile with [{OURS:?}]")], "once, not once more");
    let patch = Patch::Merge(json!({"data": {"changed": "yes"}}));
    cluster.client().patch::<ConfigMap, _>("a", &patch).await?;
    cluster.advance(Duration::from_secs(10)).await;
    assert_eq!(log.take().len(), 1, "changes of others do");
    delete(&cluster, "a").await?;
    cluster.gone::<ConfigMap>("a").await?;
    assert_eq!(log.take(), ["clean up"]);
    Ok(())
}
