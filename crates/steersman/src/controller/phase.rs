//! How far each controller of a manager has come, and when its workers may begin. Each name is
//! taken once.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Serialize;
use tokio::sync::watch;

use crate::error::{Error, Result};

/// How far a controller has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ControllerPhase {
    /// It waits for its group to start, or for the first list of a kind that it watches.
    Syncing,
    /// Its caches are synced; it waits to become leader.
    Standby,
    /// Its workers run.
    Working,
}

/// The controllers of a manager. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Controllers(watch::Sender<BTreeMap<Arc<str>, ControllerPhase>>);

impl Controllers {
    /// Takes a name, which must be free: logs, metrics and Events call the controller by it, and so do
    /// its writes unless they have another field manager.
    pub(crate) fn register(&self, name: &str) -> Result<()> {
        let is_new = self.0.send_if_modified(|phases| {
            let is_new = !phases.contains_key(name);
            phases.entry(name.into()).or_insert(ControllerPhase::Syncing);
            is_new
        });
        if is_new {
            return Ok(());
        }
        Err(Error::terminal(format!(
            "two controllers are named {name:?}: give one of them another name with \
             `.named(…)`, since writes, logs and metrics tell controllers apart by it"
        )))
    }

    /// How far each controller has come.
    pub(crate) fn phases(&self) -> BTreeMap<Arc<str>, ControllerPhase> {
        self.0.borrow().clone()
    }

    /// Waits until the caches of all controllers are synced.
    pub(crate) async fn synced(&self) {
        let all =
            |phases: &BTreeMap<_, _>| phases.values().all(|it| *it > ControllerPhase::Syncing);
        let _ = self.0.subscribe().wait_for(all).await; // we hold the sender
    }

    /// Names the controllers whose caches are not synced yet, if any.
    pub(crate) fn check_synced(&self) -> Result<()> {
        let phases = self.0.borrow();
        let waiting = phases.iter().filter(|(_, phase)| **phase == ControllerPhase::Syncing);
        let waiting: Vec<&str> = waiting.map(|(name, _)| &**name).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        Err(Error::message(format!("caches are not synced yet of: {}", waiting.join(", "))))
    }

    fn enter(&self, name: &str, phase: ControllerPhase) {
        self.0.send_if_modified(|phases| {
            phases.get_mut(name).is_some_and(|current| std::mem::replace(current, phase) != phase)
        });
    }
}

/// How a controller reports that its caches are synced, and waits until its workers may begin.
pub(crate) struct Starting {
    pub(crate) name: Arc<str>,
    pub(crate) controllers: Controllers,
    /// Ready when the manager lets the workers begin; never, if it is gone before.
    pub(crate) workers_may_begin: BoxFuture<'static, ()>,
}

impl Starting {
    /// To be called when the caches are synced. Ready when workers may begin.
    pub(crate) async fn synced(self) {
        self.controllers.enter(&self.name, ControllerPhase::Standby);
        self.workers_may_begin.await;
        self.controllers.enter(&self.name, ControllerPhase::Working);
    }
}
