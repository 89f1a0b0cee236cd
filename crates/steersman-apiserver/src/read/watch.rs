//! Watch: the state, if asked for, then every change, until someone ends it.
//!
//! A watch is a cursor into the store's history. It moves through [`Phase`]s, and each step
//! yields one chunk of newline-separated JSON events:
//!
//! `Initial` → (`initial-events-end` bookmark) → `Live` → `Ended`
//!
//! An object that begins to match a selector is ADDED, one that ceases to is DELETED, with the
//! body that matched last and the revision of the change.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use serde_json::json;
use steersman_store::{Entry, Event, RangeRequest, Revision, StoreError, Watch, WatchRequest};
use tokio::time::{Instant, MissedTickBehavior};

use super::list;
use super::options::ListOptions;
use crate::call::Call;
use crate::document::{Stored, write_json};
use crate::negotiate::{Output, Shape};
use crate::reply::Reply;
use crate::resource::Resource;
use crate::selector::Selector;
use crate::state::Server;
use crate::status::panic_text;
use crate::status::{Result, Status};
use crate::table::{self, IncludeObject};

/// How often a watch tells its revision.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// A chunk is sent once it is this large; what remains waits in the store.
const CHUNK: usize = 64 * 1024;

/// The shortest watch without a timeout, in seconds; the longest is twice as long.
const TIMEOUT_MIN: u64 = 1800;

/// The longest watch that a client can ask for.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Answers with a stream of events.
pub(crate) async fn watch(call: &Call) -> Result<Reply> {
    let options = ListOptions::of_watch(call)?;
    let frames = Frames {
        resource: Arc::clone(&call.resource),
        server: Arc::clone(&call.server),
        api_version: call.api_version.clone(),
        output: call.output,
        include: call.include_object()?,
    };
    let prefix = options.prefix(call);
    let begun = begin(&call.server, &options, prefix).await;
    let (phase, cursor) = match begun {
        Ok(begun) => begun,
        Err(Refused::Answer(status)) => return Err(status),
        // Once the request is understood, the client looks for errors among the events.
        Err(Refused::Event(status)) => {
            let event = frames.error(&status);
            return Ok(Reply::Watch(stream::iter([event]).boxed()));
        }
    };
    let timeout = options.timeout.unwrap_or_else(|| {
        Duration::from_secs(TIMEOUT_MIN + call.server.random.below(TIMEOUT_MIN))
    });
    let mut bookmark = tokio::time::interval_at(Instant::now() + BOOKMARK_PERIOD, BOOKMARK_PERIOD);
    bookmark.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let watching = Watching {
        frames,
        selector: options.selector,
        bookmarks: options.bookmarks,
        phase,
        cursor,
        deadline: Instant::now() + timeout.min(TIMEOUT_MAX),
        bookmark,
    };
    let steps = stream::unfold(watching, |mut watching| async move {
        watching.step().await.map(|chunk| (chunk, watching))
    });
    // A step that panics is the last: the client sees the stream end, and watches again.
    let steps = AssertUnwindSafe(steps).catch_unwind().filter_map(|chunk| async {
        chunk
            .inspect_err(|panic| tracing::error!(panic = panic_text(&**panic), "a watch panicked"))
            .ok()
    });
    Ok(Reply::Watch(steps.boxed()))
}

/// Why a watch does not begin: as an answer, or as its only event.
enum Refused {
    Answer(Status),
    Event(Status),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Compacted { requested, oldest } => Self::Event(too_old(requested, oldest)),
            // Only another life of the store can have told this revision: list again.
            StoreError::Future { requested, current } => Self::Event(too_old(requested, current)),
            error @ StoreError::Conflict { .. } => Self::Answer(error.into()),
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
    let phase = match (options.initial_events, from) {
        (Some(true), wanted) => {
            if let Some(wanted) = wanted {
                list::reach(server, wanted).await.map_err(Refused::Answer)?;
            }
            initial(server, &prefix, true).await?
        }
        (None, None) => initial(server, &prefix, false).await?,
        (Some(false), None) => Phase::Live(Vec::new().into_iter(), list::current(server).await?),
        (_, Some(from)) => Phase::Live(Vec::new().into_iter(), from),
    };
    let after = match &phase {
        Phase::Initial { revision, .. } | Phase::Live(_, revision) => *revision,
        Phase::Ended => Revision(0),
    };
    let cursor = server.store.watch(WatchRequest { prefix, after }).await?;
    Ok((phase, cursor))
}

async fn initial(server: &Server, prefix: &str, announce_end: bool) -> Result<Phase, StoreError> {
    let request = RangeRequest { prefix: prefix.to_owned(), ..RangeRequest::default() };
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
    frames: Frames,
    selector: Selector,
    bookmarks: bool,
    phase: Phase,
    cursor: Box<dyn Watch>,
    deadline: Instant,
    bookmark: tokio::time::Interval,
}

impl Watching {
    /// The next chunk; `None` ends the stream.
    async fn step(&mut self) -> Option<Bytes> {
        loop {
            let chunk = match &mut self.phase {
                Phase::Initial { .. } => self.give_state(),
                Phase::Live(changes, _) if changes.len() > 0 => self.give_changes(),
                Phase::Live(..) => self.wait().await,
                Phase::Ended => return None,
            };
            if !chunk.is_empty() {
                return Some(chunk.into());
            }
        }
    }

    fn give_state(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let Phase::Initial { entries, revision, announce_end } = &mut self.phase else {
            return out;
        };
        for entry in entries.by_ref() {
            let object = Stored::from(&entry);
            if self.selector.matches(&self.frames.resource, &entry.key, &object) {
                self.frames.event(&mut out, "ADDED", &object);
            }
            if out.len() >= CHUNK {
                return out;
            }
        }
        if *announce_end {
            self.frames.bookmark(&mut out, *revision, true);
        }
        self.phase = Phase::Live(Vec::new().into_iter(), *revision);
        out
    }

    fn give_changes(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let Phase::Live(changes, seen) = &mut self.phase else { return out };
        for change in changes.by_ref() {
            *seen = change.revision;
            give_change(&self.frames, &self.selector, &change, &mut out);
            if out.len() >= CHUNK {
                break;
            }
        }
        out
    }

    /// Waits for changes, the next bookmark or the end.
    async fn wait(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        tokio::select! {
            biased;
            () = self.frames.server.shutdown.cancelled() => self.phase = Phase::Ended,
            () = tokio::time::sleep_until(self.deadline) => {
                self.give_bookmark(&mut out);
                self.phase = Phase::Ended;
            }
            _ = self.bookmark.tick(), if self.bookmarks => self.give_bookmark(&mut out),
            changes = self.cursor.next() => self.receive(changes, &mut out),
        }
        out
    }

    fn receive(&mut self, changes: Result<Vec<Arc<Event>>, StoreError>, out: &mut Vec<u8>) {
        let seen = self.seen();
        match changes {
            Ok(changes) => self.phase = Phase::Live(changes.into_iter(), seen),
            Err(error) => {
                let status = match Refused::from(error) {
                    Refused::Answer(status) | Refused::Event(status) => status,
                };
                out.extend_from_slice(&self.frames.error(&status));
                self.phase = Phase::Ended;
            }
        }
    }

    fn give_bookmark(&mut self, out: &mut Vec<u8>) {
        if self.bookmarks {
            let revision = self.cursor.delivered().max(self.seen());
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

/// Says what a change means to someone who sees only what the selector matches.
fn give_change(frames: &Frames, selector: &Selector, change: &Event, out: &mut Vec<u8>) {
    let matching = |entry: &Option<Entry>| {
        let object = Stored::from(entry.as_ref()?);
        selector.matches(&frames.resource, &change.key, &object).then_some(object)
    };
    match (matching(&change.previous), matching(&change.current)) {
        (None, Some(new)) => frames.event(out, "ADDED", &new),
        (Some(_), Some(new)) => frames.event(out, "MODIFIED", &new),
        (Some(old), None) => {
            let last = Stored { bytes: old.bytes, revision: change.revision };
            frames.event(out, "DELETED", &last);
        }
        (None, None) => {}
    }
}

/// How events are written.
struct Frames {
    resource: Arc<Resource>,
    server: Arc<Server>,
    api_version: String,
    output: Output,
    include: IncludeObject,
}

impl Frames {
    fn event(&self, out: &mut Vec<u8>, kind: &str, object: &Stored) {
        out.extend_from_slice(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
        match self.output.shape {
            Shape::Table => {
                let objects: Vec<_> = object.decode(&self.api_version).into_iter().collect();
                self.table(out, &objects, object.revision);
            }
            Shape::Metadata => object.write_metadata_to(out),
            Shape::Object | Shape::Discovery => object.write_to(out, &self.api_version),
        }
        out.extend_from_slice(b"}\n");
    }

    /// Tells the revision that the watch has reached.
    fn bookmark(&self, out: &mut Vec<u8>, revision: Revision, initial_end: bool) {
        let mut metadata =
            json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        out.extend_from_slice(br#"{"type":"BOOKMARK","object":"#);
        match self.output.shape {
            Shape::Table => self.table(out, &[], revision),
            Shape::Metadata => write_json(
                out,
                &json!({
                    "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                    "metadata": metadata,
                }),
            ),
            Shape::Object | Shape::Discovery => write_json(
                out,
                &json!({
                    "kind": self.resource.kind, "apiVersion": self.api_version,
                    "metadata": metadata,
                }),
            ),
        }
        out.extend_from_slice(b"}\n");
    }

    fn table(&self, out: &mut Vec<u8>, objects: &[serde_json::Value], revision: Revision) {
        let metadata = json!({"resourceVersion": revision.to_string()});
        let now = (self.server.clock)();
        let table = table::render(&self.resource, objects, metadata, self.include, now);
        write_json(out, &table);
    }

    fn error(&self, status: &Status) -> Bytes {
        let event = json!({"type": "ERROR", "object": status.to_value()});
        let mut out = Vec::new();
        write_json(&mut out, &event);
        out.push(b'\n');
        out.into()
    }
}
