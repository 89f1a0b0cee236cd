//! Groups of parts: what starts before what, and what outlives what.
//!
//! Every part runs in a task of its own; what it says when it fails is kept, and its panics go
//! no further. A part can be added at any time: it begins once its group has started.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::part::{Begun, Group, Part};
use crate::error::{Result, panic_text};

/// How long work that was aborted may take to be gone. Only what blocks its thread needs more.
const ABORT_PATIENCE: Duration = Duration::from_secs(1);

/// The last group that has started, if any has.
pub(super) type Stage = Option<Group>;

/// What ended and should not have.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) text: String,
}

/// Where failures are reported. The first one stays. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Failures(watch::Sender<Option<Failure>>);

impl Failures {
    pub(super) fn fail(&self, failure: Failure) {
        self.0.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(failure);
            is_first
        });
    }

    /// What failed first, if anything has.
    pub(super) fn first(&self) -> Option<Failure> {
        self.0.borrow().clone()
    }

    /// Hears of the first failure.
    pub(super) fn subscribe(&self) -> watch::Receiver<Option<Failure>> {
        self.0.subscribe()
    }
}

/// How stopping went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// Everything ended by itself.
    Gracefully,
    /// Something had to be aborted, and is gone.
    Aborted,
    /// Something blocks its thread and is still there.
    Stuck,
}

/// The groups of a manager. Dropping them aborts everything in them.
pub(super) struct Groups {
    members: Mutex<BTreeMap<Group, Members>>,
    stage: watch::Sender<Stage>,
    failures: Failures,
}

/// What runs in one group.
#[derive(Default)]
struct Members {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    names: HashMap<Id, Arc<str>>,
    /// How many have yet to begin when this group starts.
    beginning: watch::Sender<usize>,
}

impl Groups {
    pub(super) fn new() -> Self {
        let members = Group::START_ORDER.map(|group| (group, Members::default()));
        Self {
            members: Mutex::new(members.into()),
            stage: watch::Sender::new(None),
            failures: Failures::default(),
        }
    }

    /// How far the start has come.
    pub(super) fn stage(&self) -> watch::Receiver<Stage> {
        self.stage.subscribe()
    }

    /// Ready when this group has started; never, if the manager is gone before.
    pub(super) fn started(&self, group: Group) -> impl Future<Output = ()> + Send + 'static {
        let mut stage = self.stage();
        async move {
            if stage.wait_for(|stage| *stage >= Some(group)).await.is_err() {
                std::future::pending::<()>().await; // the manager is gone, and soon so are we
            }
        }
    }

    /// Where failures are reported.
    pub(super) fn failures(&self) -> Failures {
        self.failures.clone()
    }

    /// Is cancelled when a group is to stop.
    pub(super) fn stop_token(&self, group: Group) -> CancellationToken {
        self.lock().entry(group).or_default().stop.clone()
    }

    /// Adds a part. It begins as soon as its group has started.
    pub(super) fn add(&self, part: Part) {
        let mut members = self.lock();
        let beginning = members.entry(part.starts_with).or_default().beginning.clone();
        let members = members.entry(part.group).or_default();
        members.forget_ended();
        let name = Arc::clone(&part.name);
        let begins = begins(part, members.stop.clone(), self.stage(), Begun::awaited(&beginning));
        let watched = watched(Arc::clone(&name), begins, self.failures());
        let task = members.tasks.spawn(watched);
        members.names.insert(task.id(), name);
    }

    /// Starts one group after the other, the last one when `elected` is ready. Ends early if
    /// something fails.
    pub(super) fn start(
        &self,
        elected: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send + 'static {
        let members = self.lock();
        let beginning = members.iter().map(|(group, members)| (*group, members.beginning.clone()));
        let beginning: BTreeMap<Group, watch::Sender<usize>> = beginning.collect();
        let stage = self.stage.clone();
        let failures = self.failures();
        async move {
            let mut elected = Some(elected);
            for (group, beginning) in beginning {
                if group == Group::LeaderElected
                    && let Some(elected) = elected.take()
                {
                    elected.await;
                }
                stage.send_replace(Some(group));
                let _ = beginning.subscribe().wait_for(|count| *count == 0).await;
                if failures.first().is_some() {
                    return;
                }
            }
        }
    }

    /// Stops one group after the other. What has not ended when `grace` is over, or `lost` is
    /// ready, is aborted.
    pub(super) async fn stop(&self, grace: Duration, lost: impl Future<Output = ()>) -> Stopped {
        let mut members = std::mem::take(&mut *self.lock());
        // What is so far away that no clock gets there never comes.
        let deadline = Instant::now().checked_add(grace);
        let ended = async {
            if !grace.is_zero() {
                end(&mut members, deadline).await;
            }
        };
        tokio::select! {
            biased;
            () = lost => tracing::warn!("lost leader lease, aborting all work"),
            () = ended => {}
        }
        abort(members.into_values().collect()).await
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Group, Members>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Groups {
    /// Work that a part has spawned elsewhere is cancelled as well.
    fn drop(&mut self) {
        for members in self.lock().values() {
            members.stop.cancel();
        }
    }
}

impl Members {
    async fn ended(&mut self) {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            self.forget(&ended);
        }
    }

    fn forget_ended(&mut self) {
        while let Some(ended) = self.tasks.try_join_next_with_id() {
            self.forget(&ended);
        }
    }

    fn forget(&mut self, ended: &Result<(Id, ()), JoinError>) {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, ())| *id);
        self.names.remove(&id);
    }
}

/// Ends one group after the other, until the deadline if there is one.
async fn end(members: &mut BTreeMap<Group, Members>, deadline: Option<Instant>) {
    for group in Group::STOP_ORDER {
        let Some(members) = members.get_mut(&group) else {
            continue;
        };
        members.stop.cancel();
        if !is_done_by(deadline, members.ended()).await {
            let parts: Vec<_> = members.names.values().map(|name| &**name).collect();
            tracing::warn!(%group, ?parts, "work did not end in time and is aborted");
            return;
        }
    }
}

/// Whether something is done before the deadline; without one it is waited for.
async fn is_done_by(deadline: Option<Instant>, done: impl Future<Output = ()>) -> bool {
    match deadline {
        Some(deadline) => timeout_at(deadline, done).await.is_ok(),
        None => {
            done.await;
            true
        }
    }
}

/// Aborts whatever is left, all at once.
async fn abort(mut groups: Vec<Members>) -> Stopped {
    for members in &mut groups {
        members.forget_ended();
        members.stop.cancel();
        members.tasks.abort_all();
    }
    if groups.iter().all(|members| members.tasks.is_empty()) {
        return Stopped::Gracefully;
    }
    let gone = async {
        for members in &mut groups {
            members.ended().await;
        }
    };
    match timeout(ABORT_PATIENCE, gone).await {
        Ok(()) => Stopped::Aborted,
        Err(_) => {
            tracing::error!("work that blocks its thread cannot be aborted");
            Stopped::Stuck
        }
    }
}

/// Runs a part once its group has started.
async fn begins(
    part: Part,
    stop: CancellationToken,
    mut stage: watch::Receiver<Stage>,
    begun: Begun,
) -> Result<()> {
    tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        started = stage.wait_for(|stage| *stage >= Some(part.starts_with)) => {
            if started.is_err() {
                return Ok(()); // the manager is gone
            }
        }
    }
    (part.run)(stop, begun).await
}

/// Reports the failure of a part. It has not begun before that is reported.
async fn watched(
    name: Arc<str>,
    work: impl Future<Output = Result<()>> + Send,
    failures: Failures,
) {
    let text = match AssertUnwindSafe(work).catch_unwind().await {
        Ok(Ok(())) => return,
        Ok(Err(error)) => format!("{name}: {error}"),
        Err(panic) => format!("{name} panicked: {}", panic_text(&*panic)),
    };
    tracing::error!(failure = text, "part of the manager has failed");
    failures.fail(Failure { text });
}
