//! The cluster that a test holds.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use steersman::controller::ReconcileRecord;
use steersman::informer::{Event, Informer};
use steersman::manager::{Manager, Running};
use steersman::reflector::Selection;
use steersman::{Client, Controller, Error, Object, ObjectKey, Result};
use steersman_cluster::audit::{AuditRecord, Auditing, Level, Policy};
use steersman_cluster::{Controllers, Metrics, Outages, PodRule, Storage};
use tokio::sync::{broadcast, watch};

use crate::faults::Faults;
use crate::link::Link;
use crate::permissions::Refusals;
use crate::settings::Settings;
use crate::settle;
use crate::wire::Wire;

/// How much virtual time [`Cluster::eventually`] gives.
const PATIENCE: Duration = Duration::from_secs(600);
/// How much time it gives on a cluster that exists, whose clock is everybody's.
const REAL_PATIENCE: Duration = Duration::from_secs(60);

/// Records of reconciles kept for a slow listener; older ones are dropped.
const RECORDS_MAX: usize = 4096;

/// How many reconciles are shown when something does not come true.
const RECONCILES_SHOWN: usize = 10;

/// What failed first in a cluster or one of its forks.
type Failures = watch::Sender<Option<String>>;

/// What is done when a test on a cluster that exists has ended, last first.
pub(crate) type Leftovers = Arc<Mutex<Vec<BoxFuture<'static, Result<()>>>>>;

/// A whole cluster, and the controllers under test.
pub struct Cluster {
    /// Absent on a cluster that existed before the test.
    inner: Option<steersman_cluster::Cluster>,
    client: Client,
    /// The controllers under test that reach the cluster as the test does.
    controllers: Running,
    /// Those that reach it through faults or over a link, or as somebody else.
    apart: Mutex<Vec<Arc<Running>>>,
    records: broadcast::Sender<Arc<ReconcileRecord>>,
    /// Keeps the last reconciles, to be shown when something does not come true.
    history: Mutex<broadcast::Receiver<Arc<ReconcileRecord>>>,
    leftovers: Leftovers,
    failures: Failures,
    /// What deployed programs were refused here or in a fork.
    refusals: Refusals,
    /// How a cluster that exists is reached.
    config: Option<kube::Config>,
}

impl Cluster {
    /// Starts a cluster on what is in a store, or on nothing.
    pub(crate) async fn start(settings: Settings, storage: Storage) -> Result<Self> {
        let builder = steersman_cluster::Cluster::builder().seed(settings.seed).storage(storage);
        let controllers = if settings.controllers { settings.which } else { Controllers::NONE };
        let builder = builder.nodes(settings.nodes).pod_termination(settings.termination);
        let builder = builder.controllers(controllers);
        let builder = builder.runtime_config(settings.runtime_config.parse()?);
        Ok(Self::ours(builder.start().await?, Failures::default(), Refusals::default()))
    }

    /// Another cluster that holds all that this one does at this moment, with Pods that run, and
    /// on the same clock; from there on neither sees what happens in the other. The built-in
    /// controllers run there as well; those [under test](Self::run) do not unless they are told
    /// to. Other tests can have forks of one cluster, too: see [`Prepared`](crate::Prepared).
    ///
    /// # Panics
    ///
    /// If the test runs on a cluster that existed before it.
    pub async fn fork(&self) -> Result<Self> {
        let fork = self.inner().fork().await?;
        Ok(Self::ours(fork, self.failures.clone(), self.refusals.clone()))
    }

    /// A cluster made for a test, or a fork of it.
    fn ours(inner: steersman_cluster::Cluster, failures: Failures, refusals: Refusals) -> Self {
        let client = inner.client();
        let failed = inner.failed();
        let refused = inner.api().part_refused();
        let told = failures.clone();
        tokio::spawn(async move {
            let why = tokio::select! {
                error = failed => error.to_string(),
                why = refused => format!("a part of the cluster lacks a permission: {why}"),
            };
            told.send_replace(Some(why));
        });
        Self { failures, refusals, ..Self::new(client, Some(inner), Leftovers::default()) }
    }

    /// A cluster that exists already, as this client sees it.
    pub(crate) fn existing(
        client: kube::Client,
        config: kube::Config,
        leftovers: Leftovers,
    ) -> Self {
        Self { config: Some(config), ..Self::new(client, None, leftovers) }
    }

    fn new(
        client: kube::Client,
        inner: Option<steersman_cluster::Cluster>,
        leftovers: Leftovers,
    ) -> Self {
        let mut manager = Manager::new(client.clone());
        if inner.is_none() {
            // Others work on that cluster, too, such as other tests.
            manager = manager.namespaces([client.default_namespace()]);
        }
        let records = broadcast::Sender::new(RECORDS_MAX);
        let history = Mutex::new(records.subscribe());
        let controllers = manager.reconciles_to(records.clone()).start();
        Self {
            inner,
            client: Client::new(client, "test"),
            controllers,
            apart: Mutex::default(),
            records,
            history,
            leftovers,
            failures: Failures::default(),
            refusals: Refusals::default(),
            config: None,
        }
    }

    /// The namespace of this test, in which objects are that name none.
    pub fn namespace(&self) -> &str {
        self.client.kube().default_namespace()
    }

    /// Reads and writes objects as a user would.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// A client that reaches the cluster through these faults.
    pub fn client_with(&self, faults: &Faults) -> kube::Client {
        let namespace = self.client.kube().default_namespace().to_owned();
        kube::Client::new(faults.around(self.inner().api().clone()), namespace)
    }

    /// A client that reaches the cluster over this link.
    pub fn client_over(&self, link: &Link) -> kube::Client {
        let namespace = self.client.kube().default_namespace().to_owned();
        kube::Client::new(link.around(self.inner().api().clone()), namespace)
    }

    /// A client that reaches the cluster through a wire that can be cut.
    pub(crate) fn client_through(&self, wire: &Wire) -> kube::Client {
        let namespace = self.client.kube().default_namespace().to_owned();
        kube::Client::new(wire.around(self.inner().api().clone()), namespace)
    }

    /// Starts a manager that runs as long as it is kept, whose reconciles the test hears of.
    pub(crate) fn start_apart(&self, manager: Manager) -> Running {
        manager.reconciles_to(self.records.clone()).start()
    }

    /// The cluster underneath.
    ///
    /// # Panics
    ///
    /// If the test runs on a cluster that existed before it: such a test is marked
    /// `#[steersman::test(anywhere)]`, and can only do what any cluster offers.
    pub fn inner(&self) -> &steersman_cluster::Cluster {
        self.inner.as_ref().expect("a test marked `anywhere` cannot reach into the cluster")
    }

    /// Whether the cluster was made for this test.
    pub(crate) fn is_ours(&self) -> bool {
        self.inner.is_some()
    }

    /// How the cluster is reached, if it existed before the test.
    pub(crate) fn config(&self) -> Option<&kube::Config> {
        self.config.as_ref()
    }

    /// What deployed programs are refused.
    pub(crate) fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Does this when the test has ended, however it ends.
    pub(crate) fn clean_up_by(&self, cleaning: BoxFuture<'static, Result<()>>) {
        self.leftovers.lock().unwrap_or_else(PoisonError::into_inner).push(cleaning);
    }

    /// Waits until part of the cluster, or of a fork of it, fails.
    pub(crate) fn failed(&self) -> impl Future<Output = String> + 'static {
        let mut failures = self.failures.subscribe();
        async move {
            let failed = failures.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
            match failed {
                Some(failed) => failed,
                None => std::future::pending().await, // the test is over
            }
        }
    }

    /// Lets a handler answer the webhooks of an origin, such as `https://webhooks.test`, without a
    /// socket: webhook configurations and conversions whose URL begins with it ask the handler.
    pub fn serve_webhooks(&self, origin: &str, handler: steersman_cluster::WebhookHandler) {
        self.inner().serve_webhooks(origin, handler);
    }

    /// Begins a rule for what the Pods of this cluster do: `cluster.pods().named("migrate").exits(3)`,
    /// `cluster.pods().labelled("app", "web").never_ready()`. Unless anybody says otherwise, Pods run
    /// for ever and are ready at once. Annotations and names of images can say the same; see the
    /// guide's page on testing.
    ///
    /// # Panics
    ///
    /// If the test runs on a cluster that existed before it.
    pub fn pods(&self) -> PodRule {
        self.inner().pods()
    }

    /// The nodes of this cluster, any of which can be cut off and come back:
    /// `cluster.nodes().named("node-1").lost()`, and later `.back()`. Of a lost node nobody hears
    /// anything: after 50 seconds it is not ready, and after five minutes more its Pods are evicted.
    ///
    /// # Panics
    ///
    /// If the test runs on a cluster that existed before it.
    pub fn nodes(&self) -> Outages {
        self.inner().nodes()
    }

    /// Says what is measured of objects, or outside the cluster, for autoscalers to go by:
    ///
    /// - `cluster.metrics().pods().labelled("app", "web").set("requests_per_second", "30").await?`
    /// - `cluster.metrics().object("services", "web").set("hits", "2k").await?`
    /// - `cluster.metrics().external().series("queue", "mail").set("queue_length", "30").await?`
    ///
    /// What Pods use of CPU time and memory is a matter of [`pods`](Self::pods).
    ///
    /// # Panics
    ///
    /// If the test runs on a cluster that existed before it.
    pub fn metrics(&self) -> Metrics {
        self.inner().metrics()
    }

    /// Keeps what is audited of all requests from now on, with their bodies, for the test to look
    /// at: who asked for what, as whom, and what came of it.
    pub fn audit(&self) -> AuditRecord {
        let record = AuditRecord::default();
        let policy = Policy::of_all(Level::RequestResponse);
        self.inner().api().audit(Auditing::new(policy).recorded(&record));
        record
    }

    /// Installs the custom resource definition of a kind, and waits until the kind is served.
    pub async fn install<K: CustomResourceExt>(&self) -> Result<()> {
        self.define(&K::crd()).await
    }

    /// Installs a custom resource definition, and waits until its kind is served.
    pub async fn define(&self, definition: &CustomResourceDefinition) -> Result<()> {
        self.defined(definition).await
    }

    /// Boxed, so that it is compiled here and not in each crate that calls it.
    fn defined<'a>(
        &'a self,
        definition: &'a CustomResourceDefinition,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.client.apply(definition).await?;
            let name = definition.metadata.name.as_deref().unwrap_or_default();
            self.eventually(name, is_established).await
        })
    }

    /// Runs a controller until the test ends.
    ///
    /// # Panics
    ///
    /// If a controller of that name runs already.
    pub fn run(&self, controller: Controller) {
        let added = self.controllers.add(controller);
        added.expect("the controllers of a test have names of their own");
    }

    /// Runs a controller until the test ends, whose every request passes these faults. It has
    /// caches of its own, and may have the name of another: they are like two replicas.
    pub fn run_with(&self, faults: &Faults, controller: Controller) {
        self.run_apart(self.client_with(faults), controller);
    }

    /// Runs a controller until the test ends, whose every request passes this link. Otherwise as
    /// [`run_with`](Self::run_with).
    pub fn run_over(&self, link: &Link, controller: Controller) {
        self.run_apart(self.client_over(link), controller);
    }

    fn run_apart(&self, client: kube::Client, controller: Controller) {
        self.start_manager(Manager::new(client).with(controller));
    }

    /// Starts a manager until the test ends, whose reconciles the test hears of.
    pub(crate) fn start_manager(&self, manager: Manager) -> Arc<Running> {
        let running = Arc::new(manager.reconciles_to(self.records.clone()).start());
        let mut apart = self.apart.lock().unwrap_or_else(PoisonError::into_inner);
        apart.push(Arc::clone(&running));
        running
    }

    /// Hears of every reconcile of the controllers under test from now on.
    pub fn reconciles(&self) -> broadcast::Receiver<Arc<ReconcileRecord>> {
        self.records.subscribe()
    }

    /// Lets virtual time pass. Everything that is due meanwhile happens, to its end and up to the
    /// last moment: what a reconcile is to do after a minute is done when a minute has passed.
    pub async fn advance(&self, time: Duration) {
        tokio::time::sleep(time).await;
        self.settle().await;
    }

    /// Lets everything happen that can happen now, until all wait for something or for another
    /// time. No virtual time passes. On a cluster that existed before the test, whose parts are
    /// elsewhere, this does nothing.
    pub async fn settle(&self) {
        if self.is_ours() {
            settle::settled().await;
        }
    }

    /// Waits until the object of that name is as wanted. Fails after ten virtual minutes (one
    /// minute on a cluster that exists), and then shows the object as it was last seen and what the controllers did last.
    pub async fn eventually<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        wanted: impl Fn(&K) -> bool,
    ) -> Result<()> {
        self.wait_for(key.into(), |object| object.is_some_and(&wanted), "as wanted").await
    }

    /// Waits until there is no object of that name.
    pub async fn gone<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<()> {
        self.wait_for(key.into(), |object: Option<&K>| object.is_none(), "gone").await
    }

    async fn wait_for<K: Object>(
        &self,
        mut key: ObjectKey,
        fits: impl Fn(Option<&K>) -> bool,
        what: &str,
    ) -> Result<()> {
        if K::NAMESPACED && key.namespace.is_none() {
            key.namespace = Some(self.client.kube().default_namespace().into());
        }
        let selection = Selection {
            namespace: key.namespace.as_deref().map(str::to_owned),
            fields: Some(format!("metadata.name={}", key.name)),
            ..Selection::default()
        };
        let client = self.client.kube().clone();
        let informer = Informer::<K>::builder(client).selection(selection).start();
        let (changed, mut changes) = watch::channel(());
        let seen = async {
            let handler = informer.add_handler(move |_: &Event<K>| _ = changed.send(())).await;
            handler.synced().await;
            while !fits(informer.cache().get(&key).as_deref()) {
                if changes.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
        };
        let patience = if self.inner.is_some() { PATIENCE } else { REAL_PATIENCE };
        if tokio::time::timeout(patience, seen).await.is_ok() {
            return Ok(());
        }
        let kind = K::kind(&());
        let last = match (informer.cache().get(&key), self.client.get::<K>(&key).await) {
            (Some(object), _) => shown(&*object),
            (None, Err(error)) => format!("absent: {error}"), // such as a kind that nobody installed
            (None, Ok(_)) => "absent".into(),
        };
        let refused = self.refusals.complaint().map(|complaint| format!("\n{complaint}"));
        Err(Error::message(format!(
            "{kind} {key} is not {what} after {} seconds\nit was last seen as {last}\n{}{}",
            patience.as_secs(),
            self.last_reconciles(),
            refused.unwrap_or_default(),
        )))
    }

    /// What the controllers under test did last, and how it ended.
    fn last_reconciles(&self) -> String {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = VecDeque::new();
        loop {
            match history.try_recv() {
                Ok(record) => {
                    let ReconcileRecord { controller, key, causes, outcome, .. } = &*record;
                    lines.push_back(format!("  {controller} {key} because {causes} → {outcome}"));
                    if lines.len() > RECONCILES_SHOWN {
                        lines.pop_front();
                    }
                }
                Err(broadcast::error::TryRecvError::Lagged(_)) => {}
                Err(_) => break,
            }
        }
        if lines.is_empty() {
            return "the controllers under test reconciled nothing".into();
        }
        let lines: Vec<String> = lines.into();
        format!("the last reconciles of the controllers under test:\n{}", lines.join("\n"))
    }
}

/// Whether the kind that this defines is served.
fn is_established(definition: &CustomResourceDefinition) -> bool {
    let status = definition.status.as_ref();
    let mut conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Established" && condition.status == "True")
}

/// The object as a reader wants it: without the bookkeeping of field managers.
fn shown<K: Object>(object: &K) -> String {
    let mut object = object.clone();
    object.meta_mut().managed_fields = None;
    serde_json::to_string_pretty(&object).unwrap_or_else(|error| error.to_string())
}
