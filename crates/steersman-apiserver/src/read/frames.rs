//! How the events of a watch are written, and what all watches share of that.
//!
//! JSON events are a line each; protobuf events are frames that begin with their length. An event
//! is the same for everyone who watches a kind in the same form, so it is written once and kept
//! in [`SharedEvents`] until newer ones displace it.

use bytes::Bytes;
use serde_json::{Value, json};
use steersman_rules::protobuf::{self, Format, Sealed};
use steersman_rules::resource::Resource;
use steersman_store::{Key, Revision};

use crate::call::Call;
use crate::conversion;
use crate::document::{Growth, Stored, write_json};
use crate::negotiate::{Encoding, Shape};
use crate::reply::View;
use crate::state::events::{EventType, SharedEvents, Told};
use crate::status::{Result, Status};

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
        key: &Key,
        object: &Stored,
    ) -> Bytes {
        let write = || {
            let mut out = Vec::with_capacity(object.bytes.len() + 128);
            self.event(&mut out, kind, object);
            out
        };
        // A table tells ages, which are others at the next moment, and what is older than its
        // schema, or of a kind whose versions differ, reads as this watch's schema has it.
        let resource = &self.view.resource;
        let own =
            resource.schema.is_newer_than(object.revision.0) || conversion::is_needed(resource);
        if self.view.output.shape == Shape::Table || own {
            return write().into();
        }
        let api_version = &self.view.api_version;
        let revision = object.revision;
        let key = Key::clone(key);
        let output = self.view.output;
        shared.get_or_write(Told { revision, key, kind, output }, api_version, write)
    }

    /// Appends an event. One that cannot be written is an error of the server, told in its place.
    pub(super) fn event(&self, out: &mut Vec<u8>, kind: EventType, object: &Stored) {
        let object = object.clone();
        let object = &conversion::shown(&self.view.resource, object, &mut Growth::default());
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
        let Sealed { api_version, kind } = self.view.sealed();
        let mut bookmark = json!({"kind": kind, "apiVersion": api_version, "metadata": &version});
        if initial_end {
            let annotations = json!({"k8s.io/initial-events-end": "true"});
            bookmark["metadata"]["annotations"] = annotations;
        }
        if self.view.output.shape == Shape::Table {
            let table = |out: &mut Vec<u8>| {
                self.view.write_bookmark_table(out, bookmark, version, initial_end);
                Ok(())
            };
            return made(line(out, EventType::Bookmark, table));
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
        tracing::error!(message = %status.message, "cannot encode watch event");
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
