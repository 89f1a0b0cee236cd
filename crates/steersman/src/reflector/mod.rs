//! The reflector: keeps telling what a kind's objects are, through every kind of trouble.
//!
//! It lists, then watches from the list's version, and resumes watches where they ended. A
//! version that is too old (410, in whatever form) leads to a new list; everything else leads
//! to the same watch again, with back-off. What it learns goes out as [`Delta`]s through a
//! bounded channel to the informer; when that is slow, the reflector stops reading, and the
//! pressure reaches the socket.

mod backoff;
mod wire;

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::object::{Cacheable, version_of};
use crate::random;
use backoff::Backoff;
pub use wire::Selection;
use wire::{Collection, ListError, Page, WatchError, WatchItem, WatchStream};

/// Objects per page of the first list.
const PAGE_SIZE: u32 = 500;
/// How long a watch is asked to last, before jitter.
const WATCH_MIN: Duration = Duration::from_secs(300);
/// A watch that ends sooner than this is treated as a failure.
const WATCH_TOO_SHORT: Duration = Duration::from_secs(1);

/// What the reflector learned.
#[derive(Debug)]
pub enum Delta<K> {
    /// The whole state at a version. What is not in it does not exist.
    Replaced {
        /// Every object.
        objects: Vec<K>,
        /// The version of the list.
        version: Option<u64>,
    },
    /// An object was created or changed.
    Applied(K),
    /// An object was deleted; this is its last state.
    Deleted(K),
    /// Everything up to this version has been told.
    Bookmark {
        /// The version.
        version: Option<u64>,
    },
}

/// Where the reflector is in the protocol.
enum State {
    /// Nothing is known, or what is known is too old to go on from.
    List {
        /// The list must not be older than this: time never goes back.
        not_older_than: Option<String>,
    },
    /// The state at `version` has been told; a watch from there is due.
    Watch { version: String },
    /// A watch is running; everything up to `version` has been told.
    Watching { version: String, stream: WatchStream, since: Instant },
    /// Nobody listens any more.
    Done,
}

/// Lists and watches one kind. [`Reflector::run`] drives it.
pub struct Reflector<K: Cacheable> {
    collection: Collection<K>,
    deltas: mpsc::Sender<Delta<K>>,
    backoff: Backoff,
}

impl<K: Cacheable> Reflector<K> {
    /// A reflector of the objects of a kind that `selection` selects.
    pub fn new(
        client: kube::Client,
        dynamic_type: &K::DynamicType,
        selection: Selection,
        deltas: mpsc::Sender<Delta<K>>,
    ) -> Self {
        let collection = Collection::new(client, dynamic_type, selection);
        Self { collection, deltas, backoff: Backoff::new() }
    }

    /// Runs until nobody receives the deltas any more.
    pub async fn run(mut self) {
        let mut state = State::List { not_older_than: None };
        while !matches!(state, State::Done) {
            state = self.step(state).await;
        }
    }

    /// The whole protocol: one state in, the next state out.
    async fn step(&mut self, state: State) -> State {
        match state {
            State::List { not_older_than } => self.list(not_older_than).await,
            State::Watch { version } => self.start_watch(version).await,
            State::Watching { version, stream, since } => {
                self.next_event(version, stream, since).await
            }
            State::Done => State::Done,
        }
    }

    async fn list(&mut self, not_older_than: Option<String>) -> State {
        match self.read_list(not_older_than.as_deref()).await {
            Ok(Page { objects, version, .. }) => {
                let delta = Delta::Replaced { objects, version: version_of(Some(&version)) };
                self.tell(delta, State::Watch { version }).await
            }
            Err(ListError::Expired) => {
                // The version we insisted on is unknown to this server: ask for its latest.
                self.pause("list expired").await;
                State::List { not_older_than: None }
            }
            Err(ListError::Failed(error)) => {
                tracing::warn!(kind = self.collection.kind(), %error, "list failed");
                self.pause("list failed").await;
                State::List { not_older_than }
            }
        }
    }

    /// Reads every page. A continue token that expires on the way is answered by one list
    /// without pages: restarting the pages could expire for ever.
    async fn read_list(&self, not_older_than: Option<&str>) -> Result<Page<K>, ListError> {
        if let Some(version) = not_older_than {
            return self.collection.list_not_older_than(version).await;
        }
        let mut all: Page<K> = self.collection.list_page(PAGE_SIZE, None).await?;
        while let Some(token) = all.next.take() {
            match self.collection.list_page(PAGE_SIZE, Some(&token)).await {
                Ok(mut page) => {
                    all.objects.append(&mut page.objects);
                    all.next = page.next;
                }
                Err(ListError::Expired) => return self.collection.list_page(0, None).await,
                Err(error) => return Err(error),
            }
        }
        Ok(all)
    }

    async fn start_watch(&mut self, version: String) -> State {
        let timeout = random::jitter(WATCH_MIN, 1.0);
        match self.collection.watch(&version, timeout).await {
            Ok(stream) => State::Watching { version, stream, since: Instant::now() },
            Err(WatchError::Expired) => {
                // A server that forgets faster than we list would otherwise keep us listing.
                self.pause("version expired").await;
                State::List { not_older_than: Some(version) }
            }
            Err(WatchError::Failed(error)) => {
                tracing::warn!(kind = self.collection.kind(), %error, "watch failed");
                self.pause("watch failed").await;
                State::Watch { version }
            }
        }
    }

    async fn next_event(
        &mut self,
        version: String,
        mut stream: WatchStream,
        since: Instant,
    ) -> State {
        let item = tokio::select! {
            item = self.collection.next(&mut stream) => item,
            () = self.deltas.closed() => return State::Done,
        };
        let watching = |version| State::Watching { version, stream, since };
        match item {
            WatchItem::Applied { object, version } => {
                self.tell(Delta::Applied(object), watching(version)).await
            }
            WatchItem::Deleted { object, version } => {
                self.tell(Delta::Deleted(object), watching(version)).await
            }
            WatchItem::Bookmark { version } => {
                let delta = Delta::Bookmark { version: version_of(Some(&version)) };
                self.tell(delta, watching(version)).await
            }
            WatchItem::Skipped { version: skipped } => {
                let version = skipped.unwrap_or(version);
                let delta = Delta::Bookmark { version: version_of(Some(&version)) };
                self.tell(delta, watching(version)).await
            }
            // An unreadable delete cannot be skipped: the object would stay for ever.
            WatchItem::UnreadableDelete => State::List { not_older_than: None },
            WatchItem::Ended(end) => self.after_watch(version, end, since).await,
        }
    }

    /// Decides how to go on after a watch has ended. One that ended at once is a failure,
    /// whatever it said: otherwise a server could keep us asking without pause.
    async fn after_watch(
        &mut self,
        version: String,
        end: Result<(), WatchError>,
        since: Instant,
    ) -> State {
        if let Err(WatchError::Failed(error)) = &end {
            tracing::warn!(kind = self.collection.kind(), %error, "watch broke");
        }
        let lasted = since.elapsed() >= WATCH_TOO_SHORT;
        if lasted {
            self.backoff.succeeded();
        }
        if !lasted || matches!(end, Err(WatchError::Failed(_))) {
            self.pause("watch ended").await;
        }
        match end {
            Err(WatchError::Expired) => State::List { not_older_than: Some(version) },
            _ => State::Watch { version },
        }
    }

    async fn tell(&mut self, delta: Delta<K>, next: State) -> State {
        match self.deltas.send(delta).await {
            Ok(()) => next,
            Err(_) => State::Done,
        }
    }

    /// Waits before the next try, longer each time, and no longer than anybody listens.
    async fn pause(&mut self, why: &'static str) {
        let delay = self.backoff.failed();
        tracing::debug!(kind = self.collection.kind(), why, ?delay, "backing off");
        tokio::select! {
            () = tokio::time::sleep(delay) => {}
            () = self.deltas.closed() => {}
        }
    }
}

#[cfg(test)]
mod tests;
