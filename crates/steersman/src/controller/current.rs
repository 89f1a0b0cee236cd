//! Which reconcile a task is in, for whoever looks at its requests from below.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use crate::object::ObjectKey;

tokio::task_local! {
    static CURRENT: Reconciling;
}

/// A reconcile that runs: of which controller, and for which object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reconciling {
    /// The controller's name.
    pub controller: Arc<str>,
    /// Which object.
    pub key: ObjectKey,
}

impl Reconciling {
    /// The reconcile that the current task is in. A layer of a client finds here why a request is
    /// made, when its answer is awaited; in what a reconcile spawned there is nothing to be found.
    pub fn current() -> Option<Self> {
        CURRENT.try_with(Clone::clone).ok()
    }

    /// Runs work as part of this reconcile.
    pub(super) fn run<F: Future>(self, work: F) -> impl Future<Output = F::Output> {
        CURRENT.scope(self, work)
    }
}

impl fmt::Display for Reconciling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.controller, self.key)
    }
}
