//! What one write of a service takes, and what it gives back.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

use super::holdings::Holdings;
use crate::state::Server;
use crate::state::effects::{Outcome, Taken};

/// What was taken for a write that has not happened yet. If nobody knows what became of the write,
/// nothing is given back, and [`super::repair()`] finds out. Dropped unsettled, for example because
/// the client went away, everything that was taken is given back.
pub(super) struct Reservation {
    pub(super) server: Arc<Server>,
    pub(super) dry_run: bool,
    pub(super) taken: Holdings,
    freed: Holdings,
}

impl Reservation {
    pub(super) fn new(server: &Arc<Server>, dry_run: bool) -> Self {
        let taken = Holdings::default();
        let freed = Holdings::default();
        Self { server: Arc::clone(server), dry_run, taken, freed }
    }

    /// What the removal of a service gives back.
    pub(super) fn of_removal(server: &Arc<Server>, service: &Value) -> Self {
        let mut reservation = Self::new(server, false);
        reservation.freed = Holdings::of(service);
        reservation
    }

    /// Lets success give back what the old version of a service holds and the new does not.
    pub(super) fn free_all_but(&mut self, old: &Value, new: &Value) {
        let mut held = Holdings::of(old);
        let kept = Holdings::of(new);
        held.addresses.retain(|address| !kept.addresses.contains(address));
        held.ports.retain(|port| !kept.ports.contains(port));
        self.freed = held;
    }

    /// Gives back what the outcome of the write says.
    pub(super) async fn give_back(mut self, outcome: Outcome) {
        let taken = std::mem::take(&mut self.taken);
        let freed = std::mem::take(&mut self.freed);
        if self.dry_run {
            return;
        }
        match outcome {
            Outcome::Written => freed.give_back(&self.server).await,
            Outcome::Failed => taken.give_back(&self.server).await,
            Outcome::Unknown => {}
        }
    }
}

impl Taken for Reservation {
    fn settle(self: Box<Self>, outcome: Outcome) -> BoxFuture<'static, ()> {
        Box::pin(self.give_back(outcome))
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        if self.dry_run || (taken.addresses.is_empty() && taken.ports.is_empty()) {
            return;
        }
        let server = Arc::clone(&self.server);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { taken.give_back(&server).await });
        }
    }
}
