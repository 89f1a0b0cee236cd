//! How an informer is doing, for people and for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::watch;

use super::handler::{HandlerProgress, Joiner, Notification};
use crate::cache::{Cache, Form, Item, Untyped};
use crate::delta_queue::Observer;
use crate::reflector::{Counts, Delta, Phase, ReflectorStatus};

/// How an informer is doing.
#[derive(Clone, Debug, Serialize)]
pub struct InformerStatus {
    /// The kind.
    pub kind: String,
    /// The group of the kind.
    pub group: String,
    /// The cluster, if it is another than the manager's own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cluster: String,
    /// Whether the first list is complete.
    pub synced: bool,
    /// Everything up to this version is visible.
    pub version: u64,
    /// How many objects the cache holds.
    pub objects: usize,
    /// How many bytes they are, as they are held: compressed in the compact form, and in the
    /// typed form as JSON, of which the types take several times as much.
    pub bytes: u64,
    /// In which form it holds them.
    pub form: Form,
    /// How many objects could not be decoded so far. In the compact form those of a list are found
    /// out when they are read.
    pub undecodable: u64,
    /// Deltas that wait to be put into the cache.
    pub queued: usize,
    /// What listing and watching is at.
    pub phase: String,
    /// How long nothing came from the server, not even a bookmark.
    pub silent_for: Option<Duration>,
    /// The watch has been silent for longer than a server is.
    pub stalled: bool,
    /// How often listing and watching did what.
    #[serde(rename = "reflector")]
    pub counts: Counts,
    /// Events that were merged into others because a handler was slow.
    pub merged: u64,
    /// Its handlers.
    pub handlers: Vec<HandlerStatus>,
}

/// How a handler is doing.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HandlerStatus {
    /// Whether it has got the whole first list.
    pub synced: bool,
    /// Events that wait for it.
    pub queued: usize,
    /// Events that were merged into others because it was slow.
    pub merged: u64,
    /// How long the oldest event has waited.
    pub oldest: Option<Duration>,
}

/// What can be seen of a running informer.
pub(super) struct Observed {
    pub(super) kind: String,
    pub(super) group: String,
    pub(super) form: Form,
    pub(super) cache: Cache<Untyped>,
    /// One for each reflector; there is at least one.
    pub(super) parts: Vec<ObservedPart>,
    pub(super) handlers: Mutex<Vec<ObservedHandler>>,
    /// What was merged for handlers that have left.
    pub(super) merged_before: AtomicU64,
}

/// What can be seen of one reflector and of its way into the cache.
#[derive(Clone)]
pub(super) struct ObservedPart {
    pub(super) reflector: ReflectorStatus,
    pub(super) queue: Observer<Delta<Item<Untyped>>>,
    /// How many objects turned out to be undecodable when they were read.
    pub(super) undecodable: Arc<dyn Fn() -> u64 + Send + Sync>,
}

pub(super) struct ObservedHandler {
    queue: Observer<Notification>,
    progress: watch::Receiver<HandlerProgress>,
}

impl Observed {
    pub(super) fn joined(&self, joiner: &Joiner) {
        let mut handlers = self.handlers.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, stay) = handlers.drain(..).partition(ObservedHandler::has_left);
        let left: Vec<ObservedHandler> = left;
        *handlers = stay;
        let merged: u64 = left.iter().map(|handler| handler.status().merged).sum();
        self.merged_before.fetch_add(merged, Ordering::Relaxed);
        handlers.push(ObservedHandler { queue: joiner.observer(), progress: joiner.progress() });
    }

    pub(super) fn status(&self) -> InformerStatus {
        let progress = self.cache.progress();
        let counts = self.counts();
        let phase = self.phase();
        let unread: u64 = self.parts.iter().map(|part| (part.undecodable)()).sum();
        InformerStatus {
            kind: self.kind.clone(),
            group: self.group.clone(),
            cluster: String::new(),
            synced: progress.synced,
            version: progress.version,
            objects: self.cache.len(),
            bytes: self.cache.bytes(),
            form: self.form,
            undecodable: counts.undecodable + unread,
            queued: self.parts.iter().map(|part| part.queue.stats().len).sum(),
            phase: describe(&phase),
            silent_for: self.parts.iter().filter_map(|part| part.reflector.silent_for()).max(),
            stalled: phase == Phase::Stalled,
            counts,
            merged: self.merged(),
            handlers: self.handlers(),
        }
    }

    /// Of several reflectors, what the one does that is furthest from well.
    fn phase(&self) -> Phase {
        let mut phases: Vec<Phase> = self.parts.iter().map(|part| part.reflector.phase()).collect();
        let trouble = phases.iter().position(|phase| *phase != Phase::Watching);
        phases.swap_remove(trouble.unwrap_or(0))
    }

    fn counts(&self) -> Counts {
        let all = self.parts.iter().map(|part| part.reflector.counts());
        all.fold(Counts::default(), |sum, one| Counts {
            lists: sum.lists + one.lists,
            streams: sum.streams + one.streams,
            watches: sum.watches + one.watches,
            relists: sum.relists + one.relists,
            events: sum.events + one.events,
            undecodable: sum.undecodable + one.undecodable,
        })
    }

    /// Including those of handlers that have left.
    fn merged(&self) -> u64 {
        let handlers = self.handlers.lock().unwrap_or_else(PoisonError::into_inner);
        let present: u64 = handlers.iter().map(|handler| handler.status().merged).sum();
        self.merged_before.load(Ordering::Relaxed) + present
    }

    fn handlers(&self) -> Vec<HandlerStatus> {
        let handlers = self.handlers.lock().unwrap_or_else(PoisonError::into_inner);
        handlers.iter().filter(|handler| !handler.has_left()).map(ObservedHandler::status).collect()
    }
}

fn describe(phase: &Phase) -> String {
    match phase {
        Phase::Listing => "listing".into(),
        Phase::Streaming => "streaming the first list".into(),
        Phase::Watching => "watching".into(),
        Phase::Stalled => "watch stalled: nothing received".into(),
        Phase::BackingOff { error, since } => {
            format!("failing for {:.0?}: {error}", since.elapsed())
        }
        Phase::NotServed { since } => format!("not served for {:.0?}", since.elapsed()),
        Phase::Ended => "ended".into(),
    }
}

impl ObservedHandler {
    fn has_left(&self) -> bool {
        self.progress.borrow().ended
    }

    fn status(&self) -> HandlerStatus {
        let stats = self.queue.stats();
        let synced = self.progress.borrow().synced;
        HandlerStatus { synced, queued: stats.len, merged: stats.merged, oldest: stats.oldest }
    }
}
