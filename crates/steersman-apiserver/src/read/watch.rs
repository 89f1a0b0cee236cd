//! Watch: the state, if asked for, then every change, until someone ends it.
//!
//! A watch is a cursor into the store's history. It moves through [`Phase`]s, and each step
//! yields one chunk of events, as [`super::frames`] write them:
//!
//! `Initial` → (`initial-events-end` bookmark) → `Live` → `Ended`
//!
//! An object that begins to match a selector is ADDED, one that ceases to is DELETED, with the
//! body that matched last and the revision of the change.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, FuturesUnordered};
use futures::{FutureExt, Stream, StreamExt};
use steersman_rules::selector::Selector;
use steersman_store::{Entry, Event, RangeRequest, Revision, StoreError, Watch, WatchRequest};
use tokio::time::Instant;

use super::bookmarks::Bookmarks;
use super::frames::Frames;
use super::list;
use super::options::ListOptions;
use crate::apart::TURN;
use crate::call::Call;
use crate::conversion;
use crate::document::Stored;
use crate::metrics::Watched;
use crate::reply::Reply;
use crate::state::Server;
use crate::state::events::EventType;
use crate::status::panic_text;
use crate::status::{Result, Status};

/// A chunk is sent once it is this large; what remains waits in the store.
const CHUNK: usize = 64 * 1024;

/// The shortest watch without a timeout, in seconds; the longest is twice as long.
const TIMEOUT_MIN: u64 = 1800;

/// The longest watch that a client can ask for.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The same for a client with nothing in between: nothing is gained by its watches beginning anew,
/// and a cluster on virtual time has a hundred of them.
const DIRECT_TIMEOUT_MAX: Duration = Duration::from_secs(60 * 24 * 60 * 60);

/// Answers with a stream of events.
pub(crate) async fn watch(call: &Call) -> Result<Reply> {
    let options = ListOptions::of_watch(call)?;
    let frames = Frames::of(call)?;
    let prefix = options.prefix(call);
    let begun = begin(&call.server, &options, prefix).await;
    let begun = match begun {
        Ok(begun) => converted(call, begun).await.map_err(Refused::Answer),
        refused => refused,
    };
    let (phase, cursor) = match begun {
        Ok(begun) => begun,
        Err(Refused::Answer(status)) => return Err(status),
        // Once the request is understood, the client looks for errors among the events.
        Err(Refused::Event(status)) => {
            let mut event = Vec::new();
            frames.error(&mut event, &status);
            return Ok(Reply::Watch(stream::iter([event.into()]).boxed()));
        }
    };
    let lasts = lasts(call, &options);
    let watched = call.server.metrics.watches.of(&call.resource);
    if let Phase::Initial { entries, .. } = &phase {
        watched.begins_with(entries.len() as u64);
    }
    let watching = Watching {
        server: Arc::clone(&call.server),
        watched,
        frames,
        selector: options.selector,
        bookmarks: Bookmarks::of(call, options.bookmarks),
        told: match &phase {
            Phase::Live(_, revision) => *revision,
            _ => Revision(0),
        },
        phase,
        cursor,
        ends: ends(&call.server, Instant::now() + lasts),
        gone: gone(call),
    };
    let steps = stream::unfold(watching, |mut watching| async move {
        watching.step().await.map(|chunk| (chunk, watching))
    });
    Ok(events(steps))
}

/// How long a watch lasts.
pub(super) fn lasts(call: &Call, options: &ListOptions) -> Duration {
    let timeout = options.timeout.unwrap_or_else(|| {
        Duration::from_secs(TIMEOUT_MIN + call.server.random.below(TIMEOUT_MIN))
    });
    timeout.min(if call.caller.is_direct() { DIRECT_TIMEOUT_MAX } else { TIMEOUT_MAX })
}

/// The answer of a watch. A step that panics is the last: the client sees the stream end, and
/// watches again.
pub(super) fn events(steps: impl Stream<Item = Bytes> + Send + 'static) -> Reply {
    let steps = AssertUnwindSafe(steps).catch_unwind().filter_map(|chunk| async {
        chunk
            .inspect_err(|panic| tracing::error!(panic = panic_text(&**panic), "watch panicked"))
            .ok()
    });
    Reply::Watch(steps.boxed())
}

/// Why a watch does not begin: as an answer, or as its only event.
enum Refused {
    Answer(Status),
    Event(Status),
}

impl Refused {
    /// A revision was not reached: as in Kubernetes, that it did not come in time is an event.
    fn of_unreached(status: Status) -> Self {
        if status.code == 504 { Self::Event(status) } else { Self::Answer(status) }
    }
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Compacted { requested, oldest } => Self::Event(too_old(requested, oldest)),
            // Only another life of the store can have told this revision: list again.
            StoreError::Future { requested, current } => Self::Event(too_old(requested, current)),
            error => Self::Answer(error.into()),
        }
    }
}

fn too_old(requested: Revision, oldest: Revision) -> Status {
    Status::expired(format!("too old resource version: {requested} ({oldest})"))
}

type Begun = (Phase, Box<dyn Watch>);

/// Finds the state to begin with, if one is wanted, and the cursor right behind it.
async fn begin(server: &Server, options: &ListOptions, prefix: String) -> Result<Begun, Refused> {
    let from = options.revision.filter(|revision| revision.0 > 0);
    // Who names a revision, were it zero, is content with what is known here once it is reached.
    let stale = options.revision.is_some();
    let phase = match (options.initial_events, from) {
        (Some(true), wanted) => {
            if let Some(wanted) = wanted {
                list::reach(server, wanted).await.map_err(Refused::of_unreached)?;
            }
            // Like any other bookmark, the one at the end comes only to those who want it.
            initial(server, &prefix, stale, options.bookmarks).await?
        }
        (None, None) => initial(server, &prefix, stale, options.tells_end_of_state()).await?,
        (Some(false), None) => {
            Phase::Live(Vec::new().into_iter(), list::current(server, stale).await?)
        }
        (_, Some(from)) => Phase::Live(Vec::new().into_iter(), from),
    };
    let after = match &phase {
        Phase::Initial { revision, .. } | Phase::Live(_, revision) => *revision,
        Phase::Ended => Revision(0),
    };
    let request = WatchRequest { prefix, after };
    let cursor = match server.store.watch(request.clone()).await {
        // Another server may have told of it before this one has heard of it.
        Err(StoreError::Future { .. }) => {
            list::current(server, false).await?;
            server.store.watch(request).await?
        }
        cursor => cursor?,
    };
    Ok((phase, cursor))
}

/// The state to begin with in the version of the watch.
async fn converted(call: &Call, (phase, cursor): Begun) -> Result<Begun> {
    let Phase::Initial { entries, revision, announce_end } = phase else {
        return Ok((phase, cursor));
    };
    let entries = conversion::entries(&call.server, &call.resource, entries.collect()).await?;
    let entries = entries.into_iter();
    Ok((Phase::Initial { entries, revision, announce_end }, cursor))
}

async fn initial(
    server: &Server,
    prefix: &str,
    stale: bool,
    announce_end: bool,
) -> Result<Phase, StoreError> {
    let request = RangeRequest { prefix: prefix.to_owned(), stale, ..RangeRequest::default() };
    let state = server.store.range(request).await?;
    let entries = state.entries.into_iter();
    Ok(Phase::Initial { entries, revision: state.revision, announce_end })
}

/// Where a watch is.
enum Phase {
    /// Giving the state as ADDED events.
    Initial {
        entries: std::vec::IntoIter<Entry>,
        revision: Revision,
        /// Whether a bookmark says when the state is complete.
        announce_end: bool,
    },
    /// Giving changes; these have been read but not given yet. The revision is of the last
    /// change given or skipped.
    Live(std::vec::IntoIter<Arc<Event>>, Revision),
    /// Everything was said.
    Ended,
}

/// A running watch.
struct Watching {
    server: Arc<Server>,
    /// Counts what is told.
    watched: Watched,
    frames: Frames,
    selector: Selector,
    bookmarks: Bookmarks,
    /// The last revision that the client knows as such: it began there, or a bookmark told it.
    told: Revision,
    phase: Phase,
    cursor: Box<dyn Watch>,
    /// Ready when the server stops, or the watch has lasted as long as it may.
    ends: Rarely<()>,
    /// Ready when the resource is no longer served.
    gone: Rarely<()>,
}

/// Something that happens once at most. It is asked only when it has something to say, so that
/// hundreds of watches do not meet at the locks of timers and tokens at each event.
type Rarely<T> = FuturesUnordered<BoxFuture<'static, T>>;

fn ends(server: &Server, deadline: Instant) -> Rarely<()> {
    let shutdown = server.shutdown.clone().cancelled_owned().boxed();
    let timeout = tokio::time::sleep_until(deadline).boxed();
    FuturesUnordered::from_iter([shutdown, timeout])
}

fn gone(call: &Call) -> Rarely<()> {
    let gone = call.server.registry.until_gone(&call.resource);
    FuturesUnordered::from_iter([gone.cancelled_owned().boxed()])
}

impl Watching {
    /// The next chunk; `None` ends the stream.
    async fn step(&mut self) -> Option<Bytes> {
        loop {
            let chunk = match &mut self.phase {
                Phase::Initial { .. } => {
                    let chunk = self.give_state();
                    if chunk.is_empty() && matches!(self.phase, Phase::Initial { .. }) {
                        // Objects that nobody wants to see take their time as well.
                        tokio::task::yield_now().await;
                    }
                    chunk
                }
                Phase::Live(changes, _) if changes.len() > 0 => self.give_changes(),
                Phase::Live(..) => self.wait().await.into(),
                Phase::Ended => return None,
            };
            if !chunk.is_empty() {
                return Some(chunk);
            }
        }
    }

    fn give_state(&mut self) -> Bytes {
        let mut out = Vec::new();
        let Phase::Initial { entries, revision, announce_end } = &mut self.phase else {
            return Bytes::new();
        };
        for (index, entry) in entries.by_ref().enumerate() {
            let object = Stored::from(&entry);
            if self.selector.matches(self.frames.resource(), &entry.key, &object.bytes) {
                let before = out.len();
                self.frames.event(&mut out, EventType::Added, &object);
                self.watched.sends(out.len() - before);
            }
            if out.len() >= CHUNK || index == TURN {
                return out.into();
            }
        }
        if *announce_end {
            self.frames.bookmark(&mut out, *revision, true);
            self.told = *revision;
        }
        self.phase = Phase::Live(Vec::new().into_iter(), *revision);
        out.into()
    }

    /// Gives changes until they fill a chunk. One that is alone is sent as it was written for
    /// all watches; several are put together.
    fn give_changes(&mut self) -> Bytes {
        let mut out = Chunk::default();
        let Phase::Live(changes, seen) = &mut self.phase else { return Bytes::new() };
        while let Some(change) = changes.next() {
            *seen = change.revision;
            if let Some((kind, object)) = meaning(&self.frames, &self.selector, &change) {
                let events = &self.server.events;
                let event = self.frames.shared_event(events, kind, &change.key, &object);
                self.watched.sends(event.len());
                out.push(event);
            }
            // What changed at one revision stays together: who goes on after it has seen it all.
            let next = changes.as_slice().first();
            if out.len() >= CHUNK && next.is_none_or(|next| next.revision > *seen) {
                break;
            }
        }
        out.into()
    }

    /// Waits for changes, the next bookmark or the end.
    async fn wait(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut received = None;
        tokio::select! {
            biased;
            Some(()) = self.ends.next() => {
                self.give_bookmark(&mut out);
                self.phase = Phase::Ended;
            }
            () = self.bookmarks.due() => self.give_bookmark(&mut out),
            changes = self.cursor.next() => received = Some(changes),
            // Last, so that the end of its objects is told before the end of the resource.
            Some(()) = self.gone.next() => self.phase = Phase::Ended,
        }
        if let Some(changes) = received {
            self.receive(changes, &mut out).await;
        }
        out
    }

    async fn receive(&mut self, changes: Result<Vec<Arc<Event>>, StoreError>, out: &mut Vec<u8>) {
        let seen = self.seen();
        let changes = match changes {
            Ok(changes) => {
                let converted = conversion::events(&self.server, self.frames.resource(), changes);
                tokio::select! {
                    biased;
                    changes = converted => changes,
                    // Nothing of what is being converted was told, so no bookmark either.
                    Some(()) = self.ends.next() => {
                        self.phase = Phase::Ended;
                        return;
                    }
                }
            }
            Err(error) => match Refused::from(error) {
                Refused::Event(status) => Err(status),
                // The client has missed nothing. It goes on where it is, and if the store is not
                // back by then, that is what it is told.
                Refused::Answer(status) => {
                    tracing::warn!(message = %status.message, "watch of the store failed");
                    self.phase = Phase::Ended;
                    return;
                }
            },
        };
        match changes {
            Ok(changes) => self.phase = Phase::Live(changes.into_iter(), seen),
            Err(status) => {
                self.frames.error(out, &status);
                self.phase = Phase::Ended;
            }
        }
    }

    fn give_bookmark(&mut self, out: &mut Vec<u8>) {
        let revision = self.cursor.delivered().max(self.seen());
        let news = match self.bookmarks {
            Bookmarks::Unwanted => false,
            Bookmarks::Regular(_) => true,
            Bookmarks::AfterChanges(_) => revision > self.told,
        };
        if news {
            self.told = revision;
            self.frames.bookmark(out, revision, false);
        }
    }

    fn seen(&self) -> Revision {
        match &self.phase {
            Phase::Initial { revision, .. } | Phase::Live(_, revision) => *revision,
            Phase::Ended => Revision(0),
        }
    }
}

/// What a change means to someone who sees only what the selector matches.
fn meaning(frames: &Frames, selector: &Selector, change: &Event) -> Option<(EventType, Stored)> {
    let matching = |entry: &Option<Entry>| {
        let object = Stored::from(entry.as_ref()?);
        selector.matches(frames.resource(), &change.key, &object.bytes).then_some(object)
    };
    match (matching(&change.previous), matching(&change.current)) {
        (None, Some(new)) => Some((EventType::Added, new)),
        (Some(_), Some(new)) => Some((EventType::Modified, new)),
        (Some(old), None) => {
            Some((EventType::Deleted, Stored { bytes: old.bytes, revision: change.revision }))
        }
        (None, None) => None,
    }
}

/// Events on their way; a single one is not copied.
#[derive(Default)]
struct Chunk {
    first: Bytes,
    all: Vec<u8>,
}

impl Chunk {
    fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    fn push(&mut self, event: Bytes) {
        if self.len() == 0 {
            self.first = event;
            return;
        }
        self.all.extend_from_slice(&std::mem::take(&mut self.first));
        self.all.extend_from_slice(&event);
    }
}

impl From<Chunk> for Bytes {
    fn from(chunk: Chunk) -> Self {
        if chunk.all.is_empty() { chunk.first } else { chunk.all.into() }
    }
}
