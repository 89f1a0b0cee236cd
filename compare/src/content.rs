//! The body of an answer as documents: JSON, YAML, protobuf, a stream of events, or just text.

use serde_json::{Value, json};
use steersman_rules::protobuf;

use crate::side::Answer;

/// What a body holds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Document(Value),
    /// Watch events, in order.
    Events(Vec<Value>),
    Text(String),
}

impl Content {
    /// Reads a body by its media type; what cannot be read is text.
    pub(crate) fn of(answer: &Answer, is_watch: bool) -> Self {
        let media_type = answer.header("content-type");
        let body = &answer.body[..];
        if media_type.contains("protobuf") {
            if is_watch && answer.status == 200 {
                return Self::Events(frames(body).map(protobuf_event).collect());
            }
            return protobuf::decode(body).map_or_else(|_| Self::bytes(body), Self::Document);
        }
        if is_watch && answer.status == 200 {
            let events = serde_json::Deserializer::from_slice(body).into_iter();
            return Self::Events(events.map_while(Result::ok).collect());
        }
        if let Some(events) = stream(media_type, body) {
            return Self::Events(events);
        }
        let document = if media_type.contains("json") {
            serde_json::from_slice(body).ok()
        } else if media_type.contains("yaml") {
            serde_saphyr::from_slice(body).ok()
        } else {
            None
        };
        document.map_or_else(|| Self::bytes(body), Self::Document)
    }

    fn bytes(body: &[u8]) -> Self {
        Self::Text(String::from_utf8_lossy(body).into_owned())
    }
}

/// The events of a body that is a stream though nobody asked for one, or did so oddly.
fn stream(media_type: &str, body: &[u8]) -> Option<Vec<Value>> {
    if !media_type.contains("json") || !body.starts_with(b"{\"type\":") {
        return None;
    }
    let events = serde_json::Deserializer::from_slice(body).into_iter::<Value>();
    let events: Vec<Value> = events.map_while(Result::ok).collect();
    events.iter().all(|event| event["object"].is_object()).then_some(events)
}

/// What is lost by writing what was read and reading it again, if anything is. The bytes
/// themselves may differ: fields stand in another order, and empty ones are left out.
pub(crate) fn lost(body: &[u8]) -> Option<(Value, Value)> {
    let document = protobuf::decode(body).ok()?;
    let written = protobuf::encode(&document).ok()?;
    let again = protobuf::decode(&written).unwrap_or_default();
    (again != document).then_some((document, again))
}

/// The frames of a stream: each is preceded by its length.
fn frames(mut body: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = body.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (frame, rest) = rest.split_at_checked(length)?;
        body = rest;
        Some(frame)
    })
}

/// `WatchEvent { type = 1, object = 2: RawExtension { raw = 1 } }`, in or without its envelope.
fn protobuf_event(frame: &[u8]) -> Value {
    let kind = field(frame, 1).map(String::from_utf8_lossy).unwrap_or_default();
    let object = field(frame, 2).and_then(|object| field(object, 1)).unwrap_or_default();
    let decoded = protobuf::decode(object);
    let object = decoded.unwrap_or_else(|error| json!({"unreadable": error.to_string()}));
    json!({"type": kind, "object": object})
}

/// A field of a message that has only fields with lengths.
fn field(mut message: &[u8], wanted: u64) -> Option<&[u8]> {
    loop {
        let (key, rest) = varint(message)?;
        let (length, rest) = varint(rest)?;
        let (value, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        if key >> 3 == wanted {
            return Some(value);
        }
        message = rest;
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(media_type: &str, body: &[u8]) -> Answer {
        let headers = [("content-type".to_owned(), vec![media_type.to_owned()])].into();
        Answer { status: 200, headers, body: body.to_vec().into() }
    }

    #[test]
    fn bodies_are_read_by_their_media_type() {
        let document = Content::Document(json!({"a": 1}));
        assert_eq!(Content::of(&answer("application/json", b"{\"a\":1}"), false), document);
        assert_eq!(Content::of(&answer("application/yaml", b"a: 1\n"), false), document);
        let text = Content::Text("ok".into());
        assert_eq!(Content::of(&answer("text/plain; charset=utf-8", b"ok"), false), text);
    }

    #[test]
    fn a_stream_is_its_events() {
        let body = b"{\"type\":\"ADDED\"}\n{\"type\":\"DELETED\"}\n";
        let Content::Events(events) = Content::of(&answer("application/json", body), true) else {
            panic!("no events");
        };
        assert_eq!(events, [json!({"type": "ADDED"}), json!({"type": "DELETED"})]);
    }

    #[test]
    fn a_stream_of_protobuf_is_its_events() {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
        let object = protobuf::encode(&map).unwrap();
        let part = |number: u8, bytes: &[u8]| {
            [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
        };
        let event = [part(1, b"ADDED"), part(2, &part(1, &object))].concat();
        let length = u32::try_from(event.len()).unwrap().to_be_bytes();
        let body = [&length[..], &event].concat();
        let media_type = "application/vnd.kubernetes.protobuf;stream=watch";
        let Content::Events(events) = Content::of(&answer(media_type, &body), true) else {
            panic!("no events");
        };
        assert_eq!(events[0]["type"], "ADDED");
        assert_eq!(events[0]["object"]["metadata"]["name"], "a");
        assert_eq!(lost(&object), None);
    }
}
