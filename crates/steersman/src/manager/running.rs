//! A manager at work.

use std::collections::BTreeMap;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::group::{Failure, Groups};
use super::leadership::Leadership;
use super::part::{Group, Part};
use super::{Addition, Clients, Manager, Runnable};
use crate::caches::Caches;
use crate::client::Client;
use crate::controller::{
    Controller, ControllerHistory, ControllerPhase, Controllers, Environment, Queues,
    ReconcileRecord, Starting,
};
use crate::error::{Error, Result};
use crate::events::Recorder;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::object::ObjectKey;
use crate::remote::RemoteCluster;
use crate::workqueue::Dump;

/// How long the last events may take to be written.
const EVENTS_GRACE: Duration = Duration::from_secs(1);

/// A manager at work. Dropping it stops everything at once.
pub struct Running {
    pub(super) client: Client,
    /// Clients of controllers and runnables that have their own.
    clients: Option<Clients>,
    caches: Caches,
    pub(super) metrics: Metrics,
    pub(super) health: Health,
    recorder: Recorder,
    pub(super) queues: Queues,
    records: broadcast::Sender<Arc<ReconcileRecord>>,
    pub(super) controllers: Controllers,
    graceful_timeout: Duration,
    pub(super) addresses: watch::Sender<BTreeMap<usize, SocketAddr>>,
    /// Cancelled when stopping begins.
    pub(super) stopping: CancellationToken,
    pub(super) groups: Groups,
    pub(super) leadership: Leadership,
    /// Starts the groups, one after the other.
    starter: Option<AbortOnDropHandle<()>>,
    /// Writes events until everything else has ended.
    broadcaster: Option<(CancellationToken, AbortOnDropHandle<()>)>,
}

impl Running {
    pub(super) fn start(manager: Manager) -> Self {
        let groups = Groups::new();
        let mut failure = None;
        let leadership = match manager.election.map(|it| it.elector(&manager.metrics)) {
            Some(Ok(elector)) => Leadership::stand(elector.telling(&manager.recorder), &groups),
            Some(Err(error)) => {
                failure = Some(error);
                Leadership::default()
            }
            None => Leadership::default(),
        };
        let stop = CancellationToken::new();
        let broadcaster = tokio::spawn(manager.broadcaster.run(stop.clone()));
        let mut running = Self {
            clients: manager.clients,
            client: manager.client,
            caches: manager.caches,
            metrics: manager.metrics,
            health: manager.health,
            recorder: manager.recorder,
            queues: Queues::default(),
            records: manager.records,
            controllers: Controllers::default(),
            graceful_timeout: manager.graceful_timeout,
            addresses: watch::Sender::default(),
            stopping: CancellationToken::new(),
            groups,
            leadership,
            starter: None,
            broadcaster: Some((stop, AbortOnDropHandle::new(broadcaster))),
        };
        running.add_checks(manager.liveness);
        for (number, site) in manager.sites.into_iter().enumerate() {
            running.serve(number, site);
        }
        for addition in manager.additions {
            failure = running.add_addition(addition).err().or(failure);
        }
        if let Some(error) = failure {
            let text = error.to_string();
            running.groups.failures().fail(Failure { text });
        }
        let starting = running.groups.start(running.leadership.elected());
        running.starter = Some(AbortOnDropHandle::new(tokio::spawn(starting)));
        running
    }

    fn add_addition(&self, addition: Addition) -> Result<()> {
        match addition {
            Addition::Controller(controller) => self.add(controller)?,
            Addition::Remote(cluster, controller) => self.add_in(&cluster, controller)?,
            Addition::Runnable(runnable) => self.add_part(runnable),
        }
        Ok(())
    }

    /// Starts one more controller. Its name must be its own.
    pub fn add(&self, controller: Controller) -> Result<()> {
        let own = self.own_client_of(controller.name());
        // Its Events are written also when this replica is the leader no more: what happened is told
        // all the same.
        let recorder = match &own {
            Some(own) => self.recorder.through(own.clone()),
            None => self.recorder.clone(),
        };
        let client = self.guarded(own.as_ref(), !controller.runs_everywhere());
        self.run_controller(controller, client, self.caches.clone(), recorder)
    }

    /// The client of a runnable.
    fn client_of(&self, name: &str, elected: bool) -> Client {
        self.guarded(self.own_client_of(name).as_ref(), elected)
    }

    /// A client of its own, or the manager's; of who is elected, one that writes only while this
    /// replica is the leader.
    fn guarded(&self, own: Option<&Client>, elected: bool) -> Client {
        let client = own.unwrap_or(&self.client);
        if elected { self.leadership.guard(client) } else { client.clone() }
    }

    fn own_client_of(&self, name: &str) -> Option<Client> {
        let own = self.clients.as_ref().and_then(|clients| clients(name));
        own.map(|own| Client::new(own, self.client.field_manager()))
    }

    /// Starts one more controller, whose objects are in another cluster.
    pub fn add_in(&self, cluster: &RemoteCluster, controller: Controller) -> Result<()> {
        let client = match controller.runs_everywhere() {
            true => cluster.client().clone(),
            false => self.leadership.guard(cluster.client()),
        };
        let caches = cluster.caches().clone();
        self.run_controller(controller, client, caches, self.recorder.clone())
    }

    fn run_controller(
        &self,
        controller: Controller,
        client: Client,
        caches: Caches,
        recorder: Recorder,
    ) -> Result<()> {
        controller.check()?;
        let name: Arc<str> = controller.name().into();
        self.controllers.register(&name)?;
        let everywhere = controller.runs_everywhere();
        let group = if everywhere { Group::Others } else { Group::LeaderElected };
        let starting = Starting {
            name: Arc::clone(&name),
            controllers: self.controllers.clone(),
            workers_may_begin: self.groups.started(group).boxed(),
        };
        let environment = Environment {
            client,
            caches,
            metrics: self.metrics.clone(),
            recorder,
            queues: self.queues.clone(),
            shutdown: CancellationToken::new(),
            records: self.records.clone(),
            starting,
        };
        let part = Part::new(name, group, move |shutdown| async move {
            controller.run(Environment { shutdown, ..environment }).await;
            Ok(())
        });
        self.groups.add(part.starting_with(Group::Caches));
        Ok(())
    }

    /// Starts more work, in a group. It is given a token that is cancelled when it is to stop; if it fails,
    /// the manager stops.
    pub fn add_runnable<F, Fut>(&self, group: Group, name: impl Into<String>, run: F)
    where
        F: FnOnce(Client, CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_part(Runnable::new(group, name, run));
    }

    fn add_part(&self, Runnable { name, group, run }: Runnable) {
        let client = self.client_of(&name, group == Group::LeaderElected);
        self.groups.add(Part::new(name, group, move |token| run(client, token)));
    }

    /// Waits until everything has started and the caches of all controllers are synced. Workers
    /// may still wait to be elected. Fails if some work does before that.
    pub async fn ready(&self) -> Result<()> {
        let mut stage = self.groups.stage();
        let ready = async {
            let _ = stage.wait_for(|stage| *stage >= Some(Group::Others)).await; // we hold the sender
            self.controllers.synced().await;
        };
        tokio::select! {
            biased;
            error = self.failed() => Err(error),
            () = ready => Ok(()),
        }
    }

    /// Waits until this replica becomes leader; at once if there is no leader election.
    pub fn elected(&self) -> impl Future<Output = ()> + Send + 'static {
        self.leadership.elected()
    }

    /// Whether this replica is the leader, or there is no leader election.
    pub fn is_leader(&self) -> bool {
        self.leadership.replica(self.groups.stage()).is_leader()
    }

    /// How far each controller has come, by name.
    pub fn controllers(&self) -> Vec<(Arc<str>, ControllerPhase)> {
        self.controllers.phases().into_iter().collect()
    }

    /// The client that controllers share, unless they have
    /// [clients of their own](super::Manager::client_for).
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Records events.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The checks behind `/healthz` and `/readyz`; more can be added at any time.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// What queues and caches count.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What waits, runs and backs off in the queue of each controller, and why.
    pub fn queues(&self) -> Vec<Dump<ObjectKey>> {
        self.queues.dump()
    }

    /// What each controller did lately, does now and fails at.
    pub fn history(&self) -> Vec<ControllerHistory> {
        self.queues.history()
    }

    /// The caches that controllers share.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// Hears of every reconcile from now on.
    pub fn reconciles(&self) -> broadcast::Receiver<Arc<ReconcileRecord>> {
        self.records.subscribe()
    }

    /// Waits until some work fails or panics; gives the error.
    pub fn failed(&self) -> impl Future<Output = Error> + Send + 'static {
        let mut failure = self.groups.failures().subscribe();
        async move {
            let first = failure.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
            match first {
                Some(failure) => Error::message(failure.text),
                None => std::future::pending().await, // stopped without a failure
            }
        }
    }

    /// Stops everything, group by group: no new work begins, running work may end within the
    /// graceful timeout. Then gives the lease back, if this replica is the leader, and writes the last
    /// events. If the lease is lost, now or meanwhile, everything is aborted.
    pub async fn stop(mut self) {
        self.stopping.cancel();
        self.starter = None;
        self.leadership.withdraw();
        let stopped = self.groups.stop(self.graceful_timeout, self.leadership.lost()).await;
        self.leadership.resign(stopped).await;
        if let Some((stop, broadcaster)) = self.broadcaster.take() {
            stop.cancel();
            let _ = tokio::time::timeout(EVENTS_GRACE, broadcaster).await;
        }
    }
}
