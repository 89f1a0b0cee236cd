//! Who waits for the quotas of a namespace to be charged.
//!
//! The writes of one server into one namespace that come at once are charged at once, so that many
//! of them cost each quota one write. A task of its own does that for as long as somebody waits: a
//! client that goes away must not take with it who knows what was charged. What was charged for
//! nobody is given back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;

use super::batch;
use super::charge::Charges;
use super::wish::{Waiter, Wish};
use crate::state::Server;
use crate::status::{Result, Status};

/// How long a write waits for its quotas; as in Kubernetes.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The writes that wait, by namespace.
#[derive(Default)]
pub(super) struct Queue {
    /// A namespace is here while a task charges its quotas.
    waiting: Mutex<HashMap<String, Vec<Waiter>>>,
}

impl Queue {
    /// Charges every quota of a namespace that a write concerns, or none.
    pub(super) async fn charge(
        self: &Arc<Self>,
        server: &Arc<Server>,
        namespace: &str,
        wish: Wish,
    ) -> Result<Charges> {
        let (answer, answered) = oneshot::channel();
        if self.push(namespace, Waiter { wish, answer }) {
            let work = Arc::clone(self).work(Arc::clone(server), namespace.to_owned());
            tokio::spawn(work);
        }
        let late = |_| Status::internal("resource quota evaluation timed out");
        let answer = tokio::time::timeout(WAIT_MAX, answered).await.map_err(late)?;
        answer.unwrap_or_else(|_| Err(Status::internal("resource quota evaluation failed")))
    }

    /// Lets a write wait; says whether nobody works on its namespace.
    fn push(&self, namespace: &str, waiter: Waiter) -> bool {
        let mut all = self.waiting();
        if let Some(waiting) = all.get_mut(namespace) {
            // Those that have given up need no room if the store hangs for long.
            if waiting.len().is_power_of_two() {
                waiting.retain(|waiter| !waiter.answer.is_closed());
            }
            waiting.push(waiter);
            return false;
        }
        all.insert(namespace.to_owned(), vec![waiter]);
        true
    }

    /// Charges the quotas of a namespace until nobody waits for them.
    async fn work(self: Arc<Self>, server: Arc<Server>, namespace: String) {
        let _end = End { queue: &self, namespace: &namespace };
        while let Some(waiting) = self.next(&namespace) {
            batch::charge(&server, &namespace, waiting).await;
        }
    }

    /// All that wait for the quotas of a namespace, if any do.
    fn next(&self, namespace: &str) -> Option<Vec<Waiter>> {
        let mut all = self.waiting();
        let waiting = std::mem::take(all.get_mut(namespace)?);
        if waiting.is_empty() {
            all.remove(namespace);
            return None;
        }
        Some(waiting)
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<String, Vec<Waiter>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is done if the work on a namespace breaks off: whoever waits is told, and the next one
/// begins anew.
struct End<'a> {
    queue: &'a Queue,
    namespace: &'a str,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.queue.waiting().remove(self.namespace);
        }
    }
}
