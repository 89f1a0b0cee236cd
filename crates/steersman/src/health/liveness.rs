//! The liveness of controllers: whether watches and workers still get ahead.
//!
//! A program whose watch or worker is stuck answers every ping and does nothing. Whether it is
//! stuck can be seen from outside of it, by how long nothing was received or finished.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::informer::InformerStatus;
use crate::object::ObjectKey;
use crate::workqueue::{Dump, KeyState};

/// How long watches and workers may take before they are taken for stuck, and the program for
/// one that should be restarted.
///
/// Trouble of the API server is no reason: a watch that tries again and fails is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// The longest silence of a watch. Servers send a bookmark every minute or so; kinds of
    /// aggregated API servers may be without them.
    pub watch_silence_max: Duration,
    /// The longest time that an event may wait for its handler.
    pub event_wait_max: Duration,
    /// The longest reconcile.
    pub reconcile_max: Duration,
}

impl Default for Liveness {
    /// A quarter of an hour for watches, five minutes for events, an hour for reconciles.
    fn default() -> Self {
        Self {
            watch_silence_max: Duration::from_secs(900),
            event_wait_max: Duration::from_secs(300),
            reconcile_max: Duration::from_secs(3600),
        }
    }
}

impl Liveness {
    /// Whether every watch and every handler gets ahead.
    pub(crate) fn of_watches(&self, informers: &[InformerStatus]) -> Result<()> {
        let stuck = informers.iter().filter_map(|informer| self.stuck_watch(informer));
        none(stuck)
    }

    fn stuck_watch(&self, informer: &InformerStatus) -> Option<String> {
        let kind = &informer.kind;
        let silence = informer.silent_for.filter(|_| informer.stalled);
        if let Some(silence) = silence.filter(|silence| *silence > self.watch_silence_max) {
            return Some(format!("the watch of {kind} has not progressed for {silence:.0?}"));
        }
        let waited = informer.handlers.iter().filter_map(|handler| handler.oldest).max()?;
        (waited > self.event_wait_max)
            .then(|| format!("an event of {kind} has waited for its handler for {waited:.0?}"))
    }

    /// Whether every worker gets ahead.
    pub(crate) fn of_workers(&self, queues: &[Dump<ObjectKey>]) -> Result<()> {
        let running =
            queues.iter().flat_map(|queue| queue.keys.iter().map(move |key| (queue, key)));
        let stuck = running.filter_map(|(queue, key)| {
            let seconds = key.seconds.filter(|_| key.state == KeyState::Running)?;
            (seconds > self.reconcile_max.as_secs_f64())
                .then(|| format!("{} has reconciled {} for {seconds:.0} s", queue.name, key.key))
        });
        none(stuck)
    }
}

/// An error with everything that is stuck.
fn none(troubles: impl Iterator<Item = String>) -> Result<()> {
    let troubles: Vec<String> = troubles.collect();
    if troubles.is_empty() { Ok(()) } else { Err(Error::message(troubles.join("; "))) }
}
