//! A manager at work.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::controllers::{ControllerPhase, Controllers, Starting};
use super::group::{Failure, Groups};
use super::part::{Group, Part};
use super::{Manager, Runnable};
use crate::caches::Caches;
use crate::client::Client;
use crate::controller::{Controller, ControllerHistory, Environment, Queues, ReconcileRecord};
use crate::error::{Error, Result};
use crate::metrics::Metrics;
use crate::object::ObjectKey;
use crate::workqueue::Dump;

/// A manager at work. Dropping it stops everything at once.
pub struct Running {
    client: Client,
    caches: Caches,
    metrics: Metrics,
    queues: Queues,
    records: broadcast::Sender<Arc<ReconcileRecord>>,
    controllers: Controllers,
    groups: Groups,
    graceful_timeout: Duration,
    /// Starts the groups, one after the other.
    starter: Option<AbortOnDropHandle<()>>,
}

impl Running {
    pub(super) fn start(manager: Manager) -> Self {
        let mut running = Self {
            client: manager.client,
            caches: manager.caches,
            metrics: manager.metrics,
            queues: Queues::default(),
            records: manager.records,
            controllers: Controllers::default(),
            groups: Groups::new(),
            graceful_timeout: manager.graceful_timeout,
            starter: None,
        };
        for controller in manager.controllers {
            if let Err(error) = running.add(controller) {
                running.groups.fail(Failure { text: error.to_string(), lost_lease: false });
            }
        }
        for runnable in manager.runnables {
            running.add_part(runnable);
        }
        let starting = running.groups.start(std::future::ready(()));
        running.starter = Some(AbortOnDropHandle::new(tokio::spawn(starting)));
        running
    }

    /// Starts one more controller. Its name must be its own.
    pub fn add(&self, controller: Controller) -> Result<()> {
        let name: Arc<str> = controller.name().into();
        self.controllers.register(&name)?;
        let starting = Starting {
            name: Arc::clone(&name),
            controllers: self.controllers.clone(),
            stage: self.groups.stage(),
            group: Group::LeaderElected,
        };
        let environment = Environment {
            client: self.client.clone(),
            caches: self.caches.clone(),
            metrics: self.metrics.clone(),
            queues: self.queues.clone(),
            shutdown: CancellationToken::new(),
            records: self.records.clone(),
            starting,
        };
        let part = Part::new(name, Group::LeaderElected, move |shutdown| async move {
            controller.run(Environment { shutdown, ..environment }).await;
            Ok(())
        });
        self.groups.add(part.starting_with(Group::Caches));
        Ok(())
    }

    /// Starts more work, in a group. It is given a token that tells when to stop; if it fails,
    /// the manager stops.
    pub fn add_runnable<F, Fut>(&self, group: Group, name: impl Into<String>, run: F)
    where
        F: FnOnce(Client, CancellationToken) -> Fut + Send + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_part(Runnable::new(group, name, run));
    }

    fn add_part(&self, Runnable { name, group, run }: Runnable) {
        let client = self.client.clone();
        self.groups.add(Part::new(name, group, move |token| run(client, token)));
    }

    /// Waits until everything has started and the caches of all controllers are filled. Workers
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

    /// How far each controller has come, by name.
    pub fn controllers(&self) -> Vec<(Arc<str>, ControllerPhase)> {
        self.controllers.phases().into_iter().collect()
    }

    /// The client that controllers share.
    pub fn client(&self) -> &Client {
        &self.client
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

    /// Waits until some work fails or panics, and tells how.
    pub fn failed(&self) -> impl Future<Output = Error> + Send + 'static {
        let mut failure = self.groups.failure();
        async move {
            let first = failure.wait_for(Option::is_some).await.ok().and_then(|it| it.clone());
            match first {
                Some(failure) => Error::message(failure.text),
                None => std::future::pending().await, // stopped without a failure
            }
        }
    }

    /// Stops everything, group by group: no new work begins, running work may end within the
    /// graceful timeout. After a lost lease, everything is aborted.
    pub async fn stop(mut self) {
        self.starter = None;
        let lost_lease = self.groups.failure().borrow().as_ref().is_some_and(|it| it.lost_lease);
        let grace = if lost_lease { Duration::ZERO } else { self.graceful_timeout };
        self.groups.stop(grace).await;
    }
}
