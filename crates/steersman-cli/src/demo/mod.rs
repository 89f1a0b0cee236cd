//! `steersman up --demo`: an AppService becomes running Pods, before your eyes.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::DeleteParams;
use steersman::controller::ReconcileRecord;
use steersman::informer::{Event, Informer};
use steersman::reflector::Selection;
use steersman::{Client, Error, Manager, Object, ObjectKey, Result};
use steersman_cluster::{Cluster, User};
use steersman_examples::app_service::{AppService, app_service, app_services, manifests};
use tokio::sync::{broadcast, mpsc};
use tokio::time::Instant;

/// How many Pods the demo asks for.
const REPLICAS: i32 = 3;
/// How long the demo may take before something must be wrong.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the demo. The controller goes on after it, for as long as the cluster does.
pub(crate) async fn run(cluster: &Cluster) -> Result<()> {
    say!("\nThe demo: AppService shop asks for a Deployment with {REPLICAS} Pods.\n");
    let client = Client::new(cluster.client(), "demo");
    let manifests = manifests();
    manifests.apply(&cluster.client()).await?;
    let ObjectKey { namespace, name } = manifests.account();
    let account = User::service_account(&namespace.unwrap_or_default(), &name);
    let manager = Manager::new(cluster.client_as(account)).with(app_services());
    let mut screen = Screen::new(cluster, manager.reconciles());
    let apps = screen.show(cluster, app).await;
    let deployments = screen.show(cluster, deployment).await;
    let sets = screen.show(cluster, replica_set).await;
    let pods = screen.show(cluster, pod).await;
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

fn app(app: &AppService) -> String {
    format!("available {} of {}", app.available(), app.spec.replicas)
}

fn deployment(deployment: &Deployment) -> String {
    let available = deployment.status.as_ref().and_then(|status| status.available_replicas);
    format!("available {}", available.unwrap_or(0))
}

fn replica_set(set: &ReplicaSet) -> String {
    let available = set.status.as_ref().and_then(|status| status.available_replicas);
    format!("available {}", available.unwrap_or(0))
}

fn pod(pod: &Pod) -> String {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    format!("{} on {}", phase.unwrap_or("Pending"), node.unwrap_or("no node yet"))
}

/// Shows what happens, line by line, with the time since the start.
struct Screen {
    start: Instant,
    lines: mpsc::Receiver<String>,
    sender: mpsc::Sender<String>,
    built_in: broadcast::Receiver<Arc<ReconcileRecord>>,
    own: broadcast::Receiver<Arc<ReconcileRecord>>,
    reconciles: usize,
}

impl Screen {
    fn new(cluster: &Cluster, own: broadcast::Receiver<Arc<ReconcileRecord>>) -> Self {
        let (sender, lines) = mpsc::channel(4096);
        let built_in = cluster.reconciles();
        Self { start: Instant::now(), lines, sender, built_in, own, reconciles: 0 }
    }

    /// Shows every change of a kind in the default namespace.
    async fn show<K: Object>(
        &self,
        cluster: &Cluster,
        describe: impl Fn(&K) -> String + Send + 'static,
    ) -> Informer<K> {
        let selection = Selection { namespace: Some("default".into()), ..Selection::default() };
        let informer = Informer::<K>::builder(cluster.client()).selection(selection).start();
        let sender = self.sender.clone();
        let kind = K::kind(&());
        informer
            .add_handler(move |event: &Event<K>| {
                let item = event.object();
                let Some(object) = item.object() else { return };
                let what = match event {
                    Event::Added { initial: true, .. }
                    | Event::Resynced { .. }
                    | Event::Generic { .. } => return,
                    Event::Added { .. } => "created",
                    Event::Updated { .. } => "updated",
                    Event::Deleted { .. } => "deleted",
                };
                let key = item.key();
                let line = format!("{what:<9} {kind} {key}  {}", describe(&object));
                let _ = sender.try_send(line); // a full screen drops lines, never the cluster's events
            })
            .await
            .synced()
            .await;
        informer
    }

    /// Prints what comes until the condition holds.
    async fn run_until(&mut self, done: impl Fn() -> bool) {
        while !done() {
            tokio::select! {
                Some(line) = self.lines.recv() => self.print(&line),
                Ok(record) = self.built_in.recv() => self.reconciled(&record),
                Ok(record) = self.own.recv() => self.reconciled(&record),
            }
        }
        while let Ok(line) = self.lines.try_recv() {
            self.print(&line);
        }
    }

    fn reconciled(&mut self, record: &ReconcileRecord) {
        if record.key.namespace.as_deref() != Some("default") {
            return;
        }
        self.reconciles += 1;
        let ReconcileRecord { controller, key, causes, outcome, .. } = record;
        self.print(&format!("reconcile {controller} {key}  because {causes} → {outcome}"));
    }

    fn print(&self, line: &str) {
        say!("  {:>7.1} ms  {line}", self.start.elapsed().as_secs_f64() * 1000.0);
    }

    fn summary(&self, text: &str) {
        let took = self.start.elapsed().as_secs_f64() * 1000.0;
        say!("\n{text}\nafter {took:.1} ms and {} reconciles.\n", self.reconciles);
    }
}
