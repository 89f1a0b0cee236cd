//! How the events of a watch are written, and what all watches share of that.
//!
//! JSON events are a line each; protobuf events are frames that begin with their length. An event
//! is the same for everyone who watches a kind in the same form, so it is written once and kept
//! in [`SharedEvents`] until newer ones displace it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};
use steersman_store::Revision;

use crate::call::Call;
use crate::document::{Stored, write_json};
use crate::negotiate::{Encoding, Output, Shape};
use crate::protobuf::{self, Format, Sealed};
use crate::reply::View;
use crate::resource::Resource;
use crate::status::{Result, Status};

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EventType {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

impl EventType {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// How the events of one watch are written.
pub(super) struct Frames {
    view: View,
}

impl Frames {
    pub(super) fn of(call: &Call) -> Result<Self> {
        Ok(Self { view: View::of(call)? })
    }

    pub(super) fn resource(&self) -> &Resource {
        &self.view.resource
    }

    /// An event that others may have written already.
    pub(super) fn shared_event(
        &self,
        shared: &SharedEvents,
        kind: EventType,
        object: &Stored,
    ) -> Bytes {
        let write = || {
            let mut out = Vec::with_capacity(object.bytes.len() + 128);
            self.event(&mut out, kind, object);
            out.into()
        };
        // A table tells ages, which are others at the next moment, and what is older than its
        // schema reads as this watch's schema has it.
        let dated = self.view.resource.schema.is_newer_than(object.revision);
        if self.view.output.shape == Shape::Table || dated {
            return write();
        }
        let api_version = &self.view.api_version;
        let key = (object.revision, kind, self.view.output);
        shared.get_or_write(key, api_version, write)
    }

    /// Appends an event. One that cannot be written is an error of the server, told in its place.
    pub(super) fn event(&self, out: &mut Vec<u8>, kind: EventType, object: &Stored) {
        let object = &object.clone().refreshed(&self.view.resource.schema);
        let start = out.len();
        let written = match self.view.output.encoding {
            Encoding::Protobuf => {
                protobuf::event(out, kind.as_str(), |out| self.view.write_protobuf(out, object))
            }
            _ => line(out, kind, |out| self.view.write_json(out, object)),
        };
        if let Err(status) = written {
            out.truncate(start);
            self.error(out, &status);
        }
    }

    /// Tells the revision that the watch has reached.
    pub(super) fn bookmark(&self, out: &mut Vec<u8>, revision: Revision, initial_end: bool) {
        let version = json!({"resourceVersion": revision.to_string()});
        if self.view.output.shape == Shape::Table {
            let table = |out: &mut Vec<u8>| {
                self.view.write_table(out, &[], version);
                Ok(())
            };
            return made(line(out, EventType::Bookmark, table));
        }
        let Sealed { api_version, kind } = self.view.sealed();
        let mut bookmark = json!({"kind": kind, "apiVersion": api_version, "metadata": version});
        bookmark["metadata"]["creationTimestamp"] = Value::Null;
        if initial_end {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            bookmark["metadata"]["annotations"] = annotations;
        }
        self.document(out, EventType::Bookmark, &bookmark);
    }

    /// Tells what went wrong.
    pub(super) fn error(&self, out: &mut Vec<u8>, status: &Status) {
        self.document(out, EventType::Error, &status.to_value());
    }

    fn document(&self, out: &mut Vec<u8>, kind: EventType, value: &Value) {
        let mut json = Vec::new();
        write_json(&mut json, value);
        made(match self.view.output.encoding {
            Encoding::Protobuf => {
                protobuf::event(out, kind.as_str(), |out| seal(out, value, &json))
            }
            _ => line(out, kind, |out| {
                out.extend_from_slice(&json);
                Ok(())
            }),
        });
    }
}

/// What the server makes itself fits its type; if it did not, the log would say so.
fn made(written: Result<()>) {
    if let Err(status) = written {
        tracing::error!(message = %status.message, "an event is not writable");
    }
}

/// `{"type":"ADDED","object":…}` and the end of the line.
fn line(
    out: &mut Vec<u8>,
    kind: EventType,
    write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(kind.as_str().as_bytes());
    out.extend_from_slice(br#"","object":"#);
    write(out)?;
    out.extend_from_slice(b"}\n");
    Ok(())
}

/// Appends a document in its envelope.
fn seal(out: &mut Vec<u8>, value: &Value, json: &[u8]) -> Result<()> {
    let Some(sealed) = Sealed::of(value) else { return Ok(()) };
    let Some(format) = Format::of(sealed.api_version, sealed.kind) else { return Ok(()) };
    Ok(sealed.write(out, |out| format.write(out, json, None))?)
}

/// The events that were written last, for all who watch.
#[derive(Debug, Default)]
pub(crate) struct SharedEvents {
    written: Mutex<Written>,
}

/// How many bytes of events are kept.
const KEPT: usize = 4 * 1024 * 1024;

/// Which event, in which form. A revision changes one object, which is of one kind.
type Key = (Revision, EventType, Output);

#[derive(Debug, Default)]
struct Written {
    /// With the version of the kind, for two kinds are served in two.
    events: HashMap<Key, (String, Bytes)>,
    /// The keys, the oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

impl SharedEvents {
    /// The event as it was written before, or as it is written now. Nothing is locked meanwhile:
    /// that two write the same at once does no harm.
    fn get_or_write(&self, key: Key, api_version: &str, write: impl FnOnce() -> Bytes) -> Bytes {
        let kept = |written: &Written| {
            let (version, event) = written.events.get(&key)?;
            (version == api_version).then(|| event.clone())
        };
        if let Some(event) = kept(&self.lock()) {
            return event;
        }
        let event = write();
        self.lock().keep(key, api_version, &event);
        event
    }

    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Written {
    fn keep(&mut self, key: Key, api_version: &str, event: &Bytes) {
        if event.len() > KEPT / 4 || self.events.contains_key(&key) {
            return;
        }
        self.events.insert(key, (api_version.to_owned(), event.clone()));
        self.order.push_back(key);
        self.bytes += event.len();
        while self.bytes > KEPT {
            let Some(oldest) = self.order.pop_front() else { return };
            let gone = self.events.remove(&oldest).map_or(0, |(_, event)| event.len());
            self.bytes -= gone;
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use steersman_store::Revision;

    use super::{EventType, KEPT, SharedEvents};
    use crate::negotiate::{Encoding, Output};

    fn key(revision: u64, encoding: Encoding) -> super::Key {
        let output = Output { encoding, ..Output::default() };
        (Revision(revision), EventType::Added, output)
    }

    #[test]
    fn an_event_is_written_once_for_each_form() {
        let shared = SharedEvents::default();
        let first = shared.get_or_write(key(1, Encoding::Json), "v1", || "json".into());
        let again = shared.get_or_write(key(1, Encoding::Json), "v1", || panic!("written twice"));
        assert_eq!(first, again);
        let other = shared.get_or_write(key(1, Encoding::Protobuf), "v1", || "other".into());
        assert_eq!(other, "other");
        let version = shared.get_or_write(key(1, Encoding::Json), "v2", || "v2".into());
        assert_eq!(version, "v2");
    }

    #[test]
    fn old_events_are_forgotten_and_memory_is_bounded() {
        let shared = SharedEvents::default();
        let large = Bytes::from(vec![0; KEPT / 8]);
        for revision in 0..100 {
            shared.get_or_write(key(revision, Encoding::Json), "v1", || large.clone());
        }
        assert!(shared.lock().bytes <= KEPT);
        assert_eq!(shared.lock().events.len(), 8);
        let huge = Bytes::from(vec![0; KEPT]);
        shared.get_or_write(key(100, Encoding::Json), "v1", || huge);
        assert_eq!(shared.lock().events.len(), 8);
    }
}
