//! The task that turns deltas into cache updates, and those into events for the handlers.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::cooling::Cooling;
use super::handler::{Joiner, Notification, Seat};
use super::status::{Observed, ObservedPart};
use crate::cache::{Cache, Event, Item, Replacement, Untyped, Writer};
use crate::delta_queue::Receiver;
use crate::random;
use crate::reflector::Delta;

/// Deltas taken at a time.
const BATCH: usize = 128;
/// Changes that wait for a handler together with their decoded objects. One that is further behind
/// decodes them again.
const DECODED_MAX: usize = 1024;
/// By how much of itself a resync period varies, so that handlers do not resync together.
const RESYNC_JITTER: f64 = 0.1;

/// Turns deltas into cache updates and events.
pub(super) struct Distributor {
    writer: Writer,
    cache: Cache<Untyped>,
    seats: Vec<(Seat, Option<Resync>)>,
    observed: Arc<Observed>,
    stop: CancellationToken,
}

/// What one reflector learned, on its way into the cache.
pub(super) struct Feed {
    /// The namespace that it watches, if it watches only one.
    pub(super) namespace: Option<Arc<str>>,
    pub(super) deltas: Receiver<Delta<Item<Untyped>>>,
    pub(super) observed: ObservedPart,
}

/// When a handler is to get every object again.
#[derive(Clone, Copy)]
struct Resync {
    every: Duration,
    due: Instant,
}

impl Resync {
    /// The next one; none if there is no such time, or if that would be always.
    fn next(every: Duration) -> Option<Self> {
        let due = Instant::now().checked_add(random::jitter(every, RESYNC_JITTER))?;
        (!every.is_zero()).then_some(Self { every, due })
    }
}

impl Distributor {
    pub(super) fn new(
        writer: Writer,
        cache: Cache<Untyped>,
        observed: Arc<Observed>,
        stop: CancellationToken,
    ) -> Self {
        Self { writer, cache, seats: Vec::new(), observed, stop }
    }

    pub(super) async fn run(
        mut self,
        mut feeds: Vec<Feed>,
        mut joiners: mpsc::Receiver<Joiner>,
        mut cooling: Cooling,
    ) {
        loop {
            let resync = self.seats.iter().filter_map(|(_, resync)| resync.map(|r| r.due)).min();
            tokio::select! {
                biased;
                Some(joiner) = joiners.recv() => self.join(joiner),
                () = until(resync) => self.resync(),
                (namespace, batch) = next_batch(&mut feeds) => {
                    if batch.is_empty() {
                        break;
                    }
                    self.writer.within(namespace.as_ref());
                    self.take(batch);
                    cooling.begin();
                    tokio::task::yield_now().await; // others want to run as well
                }
                () = until(cooling.due()) => {
                    cooling.step();
                    tokio::task::yield_now().await;
                }
            }
        }
        let kind = &*self.observed.kind;
        tracing::error!(kind, "reflector ended; the cache is not updated any more");
    }

    /// A handler that joins gets what is there first.
    fn join(&mut self, joiner: Joiner) {
        self.observed.joined(&joiner);
        self.seats.retain(|(seat, _)| !seat.leave.is_cancelled());
        let resync = joiner.options.resync.and_then(Resync::next);
        let seat = joiner.seat(&self.observed.kind, self.stop.clone());
        for object in self.cache.snapshot().iter() {
            notify(&seat, Notification::Event(Event::Added { object, initial: true }));
        }
        if self.cache.progress().synced {
            notify(&seat, Notification::Synced);
        }
        self.seats.push((seat, resync));
    }

    fn resync(&mut self) {
        let now = Instant::now();
        for (seat, resync) in &mut self.seats {
            let Some(due) = resync.filter(|resync| resync.due <= now) else { continue };
            *resync = Resync::next(due.every);
            for object in self.cache.snapshot().iter() {
                notify(seat, Notification::Event(Event::Resynced { object }));
            }
        }
    }

    /// Takes deltas in order. Objects that follow each other are put into the cache together.
    fn take(&mut self, batch: Vec<Delta<Item<Untyped>>>) {
        let mut applied = Vec::new();
        for delta in batch {
            if let Delta::Applied(item) = delta {
                applied.push(item);
                continue;
            }
            self.apply(std::mem::take(&mut applied));
            match delta {
                Delta::Applied(_) => {}
                Delta::Replaced { objects, skipped, version } => {
                    self.replace(Replacement { objects, skipped, version });
                }
                Delta::Reread(item) => {
                    let events = self.writer.refresh(item);
                    self.distribute(events);
                }
                Delta::Deleted(item) => {
                    let event = self.writer.delete(&item);
                    self.distribute(event);
                }
                Delta::DeletedKey { key, version } => {
                    let event = self.writer.delete_key(&key, version);
                    self.distribute(event);
                }
                Delta::Bookmark { version } => self.writer.bookmark(version),
            }
        }
        self.apply(applied);
    }

    fn apply(&mut self, items: Vec<Item<Untyped>>) {
        if !items.is_empty() {
            let events = self.writer.apply(items);
            self.distribute(events);
        }
    }

    fn replace(&mut self, replacement: Replacement) {
        let first = !self.cache.progress().synced;
        let events = self.writer.replace(replacement);
        self.distribute(events);
        if first && self.cache.progress().synced {
            for (seat, _) in &self.seats {
                notify(seat, Notification::Synced);
            }
        }
    }

    fn distribute(&mut self, events: impl IntoIterator<Item = Event<Untyped>>) {
        self.seats.retain(|(seat, _)| !seat.leave.is_cancelled());
        for event in events {
            let decoded = event.object().decoded_if_compact();
            for (seat, _) in &self.seats {
                let decoded = decoded.clone().filter(|_| seat.queue.len() < DECODED_MAX);
                notify(seat, Notification::of(event.clone(), decoded));
            }
        }
    }
}

/// What comes next, and of which namespace. Whoever gave last comes last. Cancel-safe.
async fn next_batch(feeds: &mut [Feed]) -> (Option<Arc<str>>, Vec<Delta<Item<Untyped>>>) {
    let (batch, place) = match &mut *feeds {
        [only] => (only.deltas.pop_batch(BATCH).await, 0),
        several => {
            let batches = several.iter_mut().map(|feed| Box::pin(feed.deltas.pop_batch(BATCH)));
            let (batch, place, _) = futures::future::select_all(batches).await;
            (batch, place)
        }
    };
    let namespace = feeds[place].namespace.clone();
    feeds[place..].rotate_left(1);
    (namespace, batch)
}

/// Never waits: a handler's queue merges what it cannot hold. A handler that has left is not
/// called, and leaves the list at the next change.
fn notify(seat: &Seat, notification: Notification) {
    let _ = seat.queue.try_push(notification);
}

/// Sleeps until then, or for ever.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
