//! Seven defects that kube-runtime 5.0 was found to have, each as the behaviour that is right.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use kube::api::DeleteParams;
use steersman::informer::Event;
use steersman::workqueue::{ExponentialBackoff, WorkQueue};
use steersman::{Context, Controller, Manager, Next, ObjectKey, Result};
use steersman_testkit::{Cluster, Fault, Faults};

use crate::faults::config_maps;
use crate::gaps::forget_history;
use crate::reconcile::{config_map, of_the_test};

/// The requests that reached a client's network, in order: path and query.
#[derive(Clone, Default)]
struct Requests(Arc<Mutex<Vec<String>>>);

impl Requests {
    /// The same faults, with every request noted.
    fn noted_by(&self, faults: Faults) -> Faults {
        let requests = Arc::clone(&self.0);
        faults.only(move |uri| {
            requests.lock().unwrap().push(uri.to_string());
            true
        })
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Whether a request reads the whole state: a list, or a watch that begins with one.
fn reads_the_state(request: &str) -> bool {
    !request.contains("watch=true") || request.contains("sendInitialEvents=true")
}

/// Counts the reconciles of one object.
fn counted(records: &mut Records, name: &str) -> usize {
    let mut count = 0;
    while let Ok(record) = records.try_recv() {
        count += usize::from(&*record.key.name == name);
    }
    count
}

type Records = tokio::sync::broadcast::Receiver<Arc<steersman::controller::ReconcileRecord>>;

/// Changes an object ten times a second.
async fn keep_changing(cluster: &Cluster, name: &str, changes: usize) -> Result<()> {
    for change in 0..changes {
        let mut map = cluster.client().get::<ConfigMap>(name).await?.unwrap();
        map.data = Some([("change".to_owned(), change.to_string())].into());
        cluster.client().update(&map).await?;
        cluster.advance(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Does nothing, for the ConfigMaps of the test and the Secrets they own.
fn idle(name: &str) -> Controller {
    Controller::of::<ConfigMap>()
        .named(name)
        .only(of_the_test)
        .owns::<Secret>()
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled))
}

fn secrets_forbidden() -> Faults {
    let faults = Faults::seeded(1).with(Fault::Forbidden, 1.0).with(Fault::WatchEnded, 1.0);
    faults.only(|uri| uri.path().ends_with("/secrets"))
}

#[steersman::test]
async fn one_failing_watch_does_not_starve_the_controller(cluster: Cluster) -> Result<()> {
    let faults = secrets_forbidden();
    faults.heal();
    let manager = Manager::new(cluster.client_with(&faults));
    let mut records = manager.reconciles();
    let _running = manager.with(idle("idle")).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(1)).await;

    faults.resume();
    let mut secret = Secret::default();
    secret.metadata.name = Some("ends-the-watch".into());
    cluster.client().create(&secret).await?;
    keep_changing(&cluster, "a", 200).await?;
    let count = counted(&mut records, "a");
    assert!(count >= 200, "{count} reconciles of 200 changes");
    assert!(faults.injected(Fault::Forbidden) > 2, "{faults}");
    Ok(())
}

#[steersman::test]
async fn a_kind_that_cannot_be_read_holds_up_only_who_needs_it(cluster: Cluster) -> Result<()> {
    let faults = secrets_forbidden();
    let needless = Controller::of::<ConfigMap>()
        .named("needless")
        .only(of_the_test)
        .reconcile(async |_: Arc<ConfigMap>, _: Context<ConfigMap>| Ok(Next::Settled));
    let manager = Manager::new(cluster.client_with(&faults));
    let mut records = manager.reconciles();
    let _running = manager.with(idle("needy")).with(needless).start();
    cluster.client().create(&config_map("a")).await?;
    keep_changing(&cluster, "a", 100).await?;
    let count = counted(&mut records, "a");
    assert!(count >= 100, "{count} reconciles of 100 changes");

    faults.heal();
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(counted(&mut records, "a"), 1, "the needy one starts once it can read");
    Ok(())
}

#[steersman::test]
async fn deletes_during_a_gap_reach_owner_and_observers(cluster: Cluster) -> Result<()> {
    let network =
        Faults::seeded(1).with(Fault::ConnectionRefused, 1.0).with(Fault::WatchEnded, 1.0);
    network.heal();
    let gone = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&gone);
    let controller = Controller::of::<ConfigMap>()
        .only(of_the_test)
        .owns::<Secret>()
        .observes(move |event| {
            if let Event::Deleted { object, .. } = event {
                noted.lock().unwrap().push(object.key().name.to_string());
            }
        })
        .reconcile(async |map: Arc<ConfigMap>, ctx: Context<ConfigMap>| -> Result<Next> {
            if map.name_any() == "childless" {
                return Ok(Next::Settled);
            }
            let mut secret = Secret::default();
            secret.metadata.name = map.metadata.name.clone();
            ctx.apply(secret).await?;
            Ok(Next::Settled)
        });
    let manager = Manager::new(cluster.client_with(&network));
    let mut records = manager.reconciles();
    let _running = manager.with(controller).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.client().create(&config_map("childless")).await?;
    cluster.advance(Duration::from_secs(60)).await;
    assert_eq!(counted(&mut records, "a"), 2, "created, and its child was");

    network.resume();
    cluster.client().delete::<Secret>("a", &DeleteParams::default()).await?;
    cluster.client().delete::<ConfigMap>("childless", &DeleteParams::default()).await?;
    cluster.advance(Duration::from_secs(60)).await;
    forget_history(&cluster).await; // nobody will ever tell of these two
    network.heal();
    let woken = records.recv().await?;
    assert_eq!(woken.key.to_string(), "default/a");
    assert_eq!(woken.causes.to_string(), "Secret default/a deleted");
    cluster.eventually("a", |_: &Secret| true).await?;
    cluster.advance(Duration::from_secs(120)).await;
    assert_eq!(*gone.lock().unwrap(), ["childless"]);
    Ok(())
}

#[steersman::test]
async fn an_expired_version_as_http_status_leads_to_the_state_anew(cluster: Cluster) -> Result<()> {
    let requests = Requests::default();
    let faults = requests.noted_by(Faults::seeded(1).with(Fault::WatchExpired, 1.0));
    cluster.client().create(&config_map("a")).await?;
    let informer = config_maps(cluster.client_with(&faults));
    informer.cache().synced().await;
    cluster.client().delete::<ConfigMap>("a", &DeleteParams::default()).await?;
    cluster.client().create(&config_map("b")).await?;
    cluster.advance(Duration::from_secs(1800)).await;
    assert!(informer.cache().get(&ObjectKey::namespaced("default", "a")).is_none());
    assert!(informer.cache().get(&ObjectKey::namespaced("default", "b")).is_some());
    assert!(faults.injected(Fault::WatchExpired) > 0, "{faults}");
    for pair in requests.all().windows(2) {
        assert!(reads_the_state(&pair[0]) || reads_the_state(&pair[1]), "{pair:?}");
    }
    Ok(())
}

#[steersman::test]
async fn an_expired_page_leads_to_one_list_without_pages(cluster: Cluster) -> Result<()> {
    let requests = Requests::default();
    let faults = Faults::seeded(1)
        .with(Fault::ContinueExpired, 1.0)
        .with(Fault::StreamingRefused, 1.0)
        .pages_of(2);
    let faults = requests.noted_by(faults);
    for number in 0..10 {
        cluster.client().create(&config_map(&format!("m-{number}"))).await?;
    }
    let informer = config_maps(cluster.client_with(&faults));
    informer.cache().synced().await;
    assert_eq!(
        informer.cache().list().iter().filter(|map| map.name_any().starts_with("m-")).count(),
        10
    );
    let lists: Vec<String> =
        requests.all().into_iter().filter(|request| !request.contains("watch=true")).collect();
    let [first, next, whole] = lists.as_slice() else { panic!("{lists:?}") };
    assert!(first.contains("limit=") && !first.contains("continue="), "{first}");
    assert!(next.contains("limit=") && next.contains("continue="), "{next}");
    assert!(!whole.contains("limit=") && !whole.contains("continue="), "{whole}");
    Ok(())
}

#[steersman::test]
async fn a_version_that_must_not_be_undercut_is_really_sent(cluster: Cluster) -> Result<()> {
    let requests = Requests::default();
    let faults = requests.noted_by(Faults::seeded(1).with(Fault::ExpiredEvent, 1.0));
    faults.heal();
    let informer = config_maps(cluster.client_with(&faults));
    informer.cache().synced().await;
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(1)).await;
    let seen = informer.cache().progress().version;
    let before = requests.all().len();

    faults.resume();
    cluster.client().create(&config_map("b")).await?; // its event is 410 instead
    cluster.advance(Duration::from_secs(1)).await;
    faults.heal();
    cluster.advance(Duration::from_secs(60)).await;
    let after = requests.all().split_off(before);
    let again = after.iter().find(|request| reads_the_state(request)).unwrap();
    for parameter in [format!("resourceVersion={seen}"), "resourceVersionMatch=NotOlderThan".into()]
    {
        assert!(again.split(['?', '&']).any(|sent| sent == parameter), "{parameter} in {again}");
    }
    assert!(informer.cache().get(&ObjectKey::namespaced("default", "b")).is_some());
    Ok(())
}

#[steersman::test]
async fn a_panic_in_one_reconcile_harms_no_other(cluster: Cluster) -> Result<()> {
    let mut records = cluster.reconciles();
    cluster.run(Controller::of::<ConfigMap>().only(of_the_test).reconcile(
        |map: Arc<ConfigMap>, _: Context<ConfigMap>| {
            assert_ne!(map.name_any(), "panics-at-once", "on purpose");
            async move {
                assert_ne!(map.name_any(), "panics-later", "on purpose");
                Ok(Next::Settled)
            }
        },
    ));
    for name in ["panics-at-once", "panics-later", "a"] {
        cluster.client().create(&config_map(name)).await?;
    }
    keep_changing(&cluster, "a", 100).await?;
    let mut counts = [0, 0, 0];
    while let Ok(record) = records.try_recv() {
        match &*record.key.name {
            "panics-at-once" => counts[0] += 1,
            "panics-later" => counts[1] += 1,
            _ => counts[2] += 1,
        }
    }
    assert!(counts[0] > 5 && counts[1] > 5, "retried {counts:?} times");
    assert!(counts[2] >= 100, "{counts:?}");
    Ok(())
}

#[steersman::test]
async fn nobody_sleeps_over_objects_that_went_before_they_were_read(
    cluster: Cluster,
) -> Result<()> {
    let informer = Arc::new(config_maps(cluster.client().kube().clone()));
    let ended: Vec<_> =
        (0..4).map(|_| tokio::spawn(read_until_the_end(Arc::clone(&informer)))).collect();
    informer.cache().synced().await;
    cluster.advance(Duration::from_secs(1)).await;
    for number in 0..300 {
        let name = format!("m-{number}");
        cluster.client().create(&config_map(&name)).await?;
        cluster.client().delete::<ConfigMap>(name.as_str(), &DeleteParams::default()).await?;
    }
    cluster.client().create(&config_map("the-end")).await?;
    for reader in ended {
        let reader = tokio::time::timeout(Duration::from_secs(60), reader).await;
        let still_there = reader.expect("no reader sleeps").unwrap();
        assert!(still_there.iter().all(|key| !key.name.starts_with("m-")), "{still_there:?}");
    }
    Ok(())
}

/// Reads the objects that a handler enqueues, until the last; tells which were added and never
/// deleted.
async fn read_until_the_end(
    informer: Arc<steersman::informer::Informer<ConfigMap>>,
) -> BTreeSet<ObjectKey> {
    let queue = WorkQueue::new(ExponentialBackoff::default());
    let there = Arc::new(Mutex::new(BTreeSet::new()));
    let (keys, known) = (queue.clone(), Arc::clone(&there));
    informer
        .add_handler(move |event: &Event<ConfigMap>| {
            let key = event.object().key().clone();
            match event {
                Event::Deleted { .. } => known.lock().unwrap().remove(&key),
                _ => known.lock().unwrap().insert(key.clone()),
            };
            keys.add(key);
        })
        .await;
    while let Some(key) = queue.get().await {
        let read = informer.cache().get(&key);
        queue.done(&key);
        tokio::task::yield_now().await; // slower than the changes
        if read.is_some() && &*key.name == "the-end" {
            break;
        }
    }
    there.lock().unwrap().clone()
}
