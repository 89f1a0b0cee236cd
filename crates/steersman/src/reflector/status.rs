//! What a reflector is doing, for whoever wants to know without asking it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;
use tokio::time::Instant;

/// What a reflector is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It reads the state as pages of a list.
    Listing,
    /// It reads the state as a stream.
    Streaming,
    /// It follows the changes.
    Watching,
    /// It follows the changes and has received nothing for minutes, not even a bookmark.
    Stalled,
    /// Something failed; it waits before it tries again.
    BackingOff {
        /// What failed last.
        error: Arc<str>,
        /// Since when it has been failing.
        since: Instant,
    },
    /// The server does not know the kind; it looks again now and then.
    NotServed {
        /// Since when.
        since: Instant,
    },
    /// It has stopped.
    Ended,
}

/// How often a reflector did what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Lists begun.
    pub lists: u64,
    /// Streaming lists begun.
    pub streams: u64,
    /// Watches begun.
    pub watches: u64,
    /// States delivered after the first one.
    pub relists: u64,
    /// Events and bookmarks received.
    pub events: u64,
    /// Objects that could not be decoded.
    pub undecodable: u64,
}

/// Shows what a reflector is doing. Cheap to clone; outlives the reflector.
#[derive(Clone, Debug)]
pub(crate) struct ReflectorStatus {
    phase: watch::Receiver<Phase>,
    tally: Arc<Tally>,
}

impl ReflectorStatus {
    /// What it is doing now.
    pub(crate) fn phase(&self) -> Phase {
        self.phase.borrow().clone()
    }

    /// Waits until it does what `wanted` describes; gives the phase, or the last one if the
    /// reflector ended before.
    #[cfg(test)]
    pub(crate) async fn reached(&self, wanted: impl FnMut(&Phase) -> bool) -> Phase {
        let mut phase = self.phase.clone();
        match phase.wait_for(wanted).await {
            Ok(phase) => phase.clone(),
            Err(_) => self.phase(),
        }
    }

    /// How long ago it last received an event or a bookmark, or read a page.
    pub(crate) fn silent_for(&self) -> Option<Duration> {
        let received = self.tally.received.load(Ordering::Relaxed).checked_sub(1)?;
        Some(self.tally.created.elapsed().saturating_sub(Duration::from_nanos(received)))
    }

    /// How often it did what.
    pub(crate) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let tally = &self.tally;
        Counts {
            lists: read(&tally.lists),
            streams: read(&tally.streams),
            watches: read(&tally.watches),
            relists: read(&tally.relists),
            events: read(&tally.events),
            undecodable: read(&tally.undecodable),
        }
    }
}

#[derive(Debug)]
pub(super) struct Tally {
    created: Instant,
    /// Nanoseconds from creation to what was received last, plus one; zero is never.
    received: AtomicU64,
    pub(super) lists: AtomicU64,
    pub(super) streams: AtomicU64,
    pub(super) watches: AtomicU64,
    pub(super) relists: AtomicU64,
    pub(super) events: AtomicU64,
    pub(super) undecodable: AtomicU64,
}

/// The reflector's side of its status.
pub(super) struct Reporter {
    phase: watch::Sender<Phase>,
    tally: Arc<Tally>,
    failing_since: Option<Instant>,
}

impl Reporter {
    pub(super) fn new() -> Self {
        let counter = || AtomicU64::new(0);
        let tally = Tally {
            created: Instant::now(),
            received: counter(),
            lists: counter(),
            streams: counter(),
            watches: counter(),
            relists: counter(),
            events: counter(),
            undecodable: counter(),
        };
        let phase = watch::Sender::new(Phase::Listing);
        Self { phase, tally: Arc::new(tally), failing_since: None }
    }

    pub(super) fn status(&self) -> ReflectorStatus {
        ReflectorStatus { phase: self.phase.subscribe(), tally: Arc::clone(&self.tally) }
    }

    pub(super) fn enter(&mut self, phase: Phase) {
        self.phase.send_if_modified(|now| {
            let changed = *now != phase;
            *now = phase;
            changed
        });
    }

    /// Something was received where nothing had been for long.
    pub(super) fn silence_is_over(&mut self) {
        self.phase.send_if_modified(|now| {
            let stalled = *now == Phase::Stalled;
            if stalled {
                *now = Phase::Watching;
            }
            stalled
        });
    }

    pub(super) fn backs_off(&mut self, error: &str) {
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        self.enter(Phase::BackingOff { error: error.into(), since });
    }

    pub(super) fn is_not_served(&mut self) {
        let since = *self.failing_since.get_or_insert_with(Instant::now);
        self.enter(Phase::NotServed { since });
    }

    /// The server answered well.
    pub(super) fn recovered(&mut self) {
        self.failing_since = None;
    }

    /// Something was received at `now`.
    pub(super) fn received(&self, now: Instant) {
        let nanos = now.saturating_duration_since(self.tally.created).as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX - 1);
        self.tally.received.store(nanos + 1, Ordering::Relaxed);
    }

    pub(super) fn count(&self, counter: impl FnOnce(&Tally) -> &AtomicU64) {
        counter(&self.tally).fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.enter(Phase::Ended);
    }
}
