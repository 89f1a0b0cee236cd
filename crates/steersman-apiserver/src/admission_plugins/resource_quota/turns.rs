//! Whose turn it is to charge the quotas of a namespace, and what was charged in it.

use std::array;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::{Mutex, MutexGuard};

use super::charge::Charge;
use crate::state::Server;
use crate::state::effects::{Outcome, Taken};

/// Namespaces whose names fall together take turns together.
const TURNS: usize = 64;

/// The turns of all namespaces.
pub(super) struct Turns {
    all: [Mutex<()>; TURNS],
    hasher: RandomState,
}

impl Default for Turns {
    fn default() -> Self {
        Self { all: array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }
}

impl Turns {
    /// Waits for the turn to charge the quotas of a namespace. Writers of one server would only
    /// get into each other's way; those of several compare and swap.
    pub(super) async fn of(&self, namespace: &str) -> MutexGuard<'_, ()> {
        let index = self.hasher.hash_one(namespace) % TURNS as u64;
        self.all[usize::try_from(index).unwrap_or(0)].lock().await
    }
}

/// What quotas were charged for one write. Dropped unsettled, for example because the client went
/// away, it is given back.
pub(super) struct Charges {
    server: Arc<Server>,
    all: Vec<Charge>,
}

impl Charges {
    pub(super) fn new(server: &Arc<Server>) -> Self {
        Self { server: Arc::clone(server), all: Vec::new() }
    }

    pub(super) fn push(&mut self, charge: Charge) {
        self.all.push(charge);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Gives everything back.
    pub(super) async fn give_back(mut self) {
        while let Some(charge) = self.all.pop() {
            charge.give_back(&self.server).await;
        }
    }
}

impl Taken for Charges {
    fn settle(mut self: Box<Self>, outcome: Outcome) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            match outcome {
                Outcome::Failed => (*self).give_back().await,
                // What nobody knows of is counted when somebody counts.
                Outcome::Written | Outcome::Unknown => self.all.clear(),
            }
        })
    }
}

impl Drop for Charges {
    fn drop(&mut self) {
        let all = std::mem::take(&mut self.all);
        if all.is_empty() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let server = Arc::clone(&self.server);
            runtime.spawn(async move {
                for charge in all {
                    charge.give_back(&server).await;
                }
            });
        }
    }
}
