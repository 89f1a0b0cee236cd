//! `steersman up --demo`: an AppService becomes running Pods, before your eyes.
//!
//! [`writes`] tells who wrote what to the API server, the controllers tell why they looked at an
//! object, and a [`story`] brings both into the order in which they began.

mod story;
mod writes;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use steersman::controller::ReconcileRecord;
use steersman::informer::Informer;
use steersman::reflector::Selection;
use steersman::{Client, Error, Manager, Object, ObjectKey, Result};
use steersman_cluster::{Cluster, User};
use steersman_examples::app_service::{AppService, app_service, app_services, manifests};
use tokio::sync::broadcast;
use tokio::time::Instant;

use story::Story;

/// How many Pods the demo asks for.
const REPLICAS: i32 = 3;
/// How long the demo may take before something must be wrong.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who waits for whom. Nobody calls anybody: each watches the API server, and writes to it.
const PICTURE: &str = "\
  admin                  writes the AppService, as kubectl would
  app-services           sees it, and writes a Deployment
  deployment-controller  sees that, and writes a ReplicaSet
  replicaset-controller  sees that, and writes Pods
  kube-scheduler         sees those, and binds each to a node
  kubelet                sees those of its node, and writes that they run
                         and back: ReplicaSet, Deployment and AppService get their status
";

/// Runs the demo. The controller goes on after it, for as long as the cluster does.
pub(crate) async fn run(cluster: &Cluster) -> Result<()> {
    say!("\nThe demo: AppService shop asks for a Deployment with {REPLICAS} Pods.\n");
    say!("{PICTURE}");
    let client = Client::new(cluster.client(), "demo");
    let manifests = manifests();
    manifests.apply(&cluster.client()).await?;
    let ObjectKey { namespace, name } = manifests.account();
    let account = User::service_account(&namespace.unwrap_or_default(), &name);
    let manager = Manager::new(cluster.client_as(account)).with(app_services());
    let mut screen = Screen::new(cluster, manager.reconciles());
    writes::tell(cluster.api(), &screen.story).map_err(Error::message)?;
    let apps = screen.follow::<AppService>(cluster).await;
    let deployments = screen.follow::<Deployment>(cluster).await;
    let sets = screen.follow::<ReplicaSet>(cluster).await;
    let pods = screen.follow::<Pod>(cluster).await;
    let shop = || [count(&apps), count(&deployments), count(&sets), count(&pods)];
    if shop() != [0; 4] {
        say!("The shop of an earlier demo goes first.\n");
        client.delete::<AppService>("shop", &DeleteParams::default()).await?;
        timely(screen.run_until(|| shop() == [0; 4])).await?;
        say!();
    }
    let controller = manager.start();
    controller.caches().informer::<AppService>().cache().synced().await;
    screen.start = Instant::now();
    client.create(&app_service("shop", REPLICAS)).await?;
    let done = screen.run_until(|| {
        let shop = apps.cache().get(&ObjectKey::namespaced("default", "shop"));
        shop.is_some_and(|app| app.available() == REPLICAS)
    });
    timely(done).await?;
    let [apps, deployments, sets, pods] = shop();
    screen.summary(&format!(
        "{REPLICAS} of {REPLICAS} replicas available: {apps} AppService, {deployments} Deployment, \
         {sets} ReplicaSet, {pods} Pods"
    ));
    say!("Try: kubectl get appservices,deployments,replicasets,pods");
    say!("     kubectl patch appservice shop --type=merge -p '{{\"spec\":{{\"replicas\":5}}}}'");
    say!("     kubectl delete appservice shop\n");
    screen.run_until(|| false).await;
    Ok(())
}

/// How many objects belong to the shop.
fn count<K: Object>(informer: &Informer<K>) -> usize {
    let objects = informer.cache().list();
    let names = objects.iter().filter_map(|object| object.meta().name.as_deref());
    names.filter(|name| *name == "shop" || name.starts_with("shop-")).count()
}

/// What must not take long.
async fn timely(done: impl Future<Output = ()>) -> Result<()> {
    tokio::time::timeout(PATIENCE, done).await.map_err(|_| Error::message("timed out"))
}

/// Shows what happens, line by line, with the time since the start.
struct Screen {
    start: Instant,
    story: Arc<Story>,
    built_in: broadcast::Receiver<Arc<ReconcileRecord>>,
    own: broadcast::Receiver<Arc<ReconcileRecord>>,
    reconciles: usize,
}

impl Screen {
    fn new(cluster: &Cluster, own: broadcast::Receiver<Arc<ReconcileRecord>>) -> Self {
        let built_in = cluster.reconciles();
        Self { start: Instant::now(), story: Arc::default(), built_in, own, reconciles: 0 }
    }

    /// Follows a kind in the default namespace, and looks again whenever something of it changes.
    async fn follow<K: Object>(&self, cluster: &Cluster) -> Informer<K> {
        let selection = Selection { namespace: Some("default".into()), ..Selection::default() };
        let informer = Informer::<K>::builder(cluster.client()).selection(selection).start();
        let story = Arc::clone(&self.story);
        informer.add_handler(move |_: &_| story.wake()).await.synced().await;
        informer
    }

    /// Prints what comes until the condition holds and all that led to it is told.
    async fn run_until(&mut self, done: impl Fn() -> bool) {
        loop {
            let is_done = done() && self.story.is_whole();
            for (began, line) in self.story.take() {
                self.print(began, &line);
            }
            if is_done {
                return;
            }
            tokio::select! {
                () = self.story.news() => {}
                Ok(record) = self.built_in.recv() => self.reconciled(&record),
                Ok(record) = self.own.recv() => self.reconciled(&record),
            }
        }
    }

    fn reconciled(&mut self, record: &ReconcileRecord) {
        if record.key.namespace.as_deref() != Some("default") {
            return;
        }
        self.reconciles += 1;
        let ReconcileRecord { controller, key, causes, outcome, .. } = record;
        self.story.tell(format!("reconcile {controller} {key}  because {causes} → {outcome}"));
    }

    fn print(&self, began: Instant, line: &str) {
        let since = began.saturating_duration_since(self.start);
        say!("  {:>7.1} ms  {line}", since.as_secs_f64() * 1000.0);
    }

    fn summary(&self, text: &str) {
        let took = self.start.elapsed().as_secs_f64() * 1000.0;
        say!("\n{text}\nafter {took:.1} ms and {} reconciles.\n", self.reconciles);
    }
}
