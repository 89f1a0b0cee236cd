//! Protobuf, which kubectl and client-go speak for the kinds that Kubernetes defines.
//!
//! A body is read into the document that JSON would have given, so that nobody
//! after it can tell the difference ([`message`], [`value`]). An answer is written
//! from the JSON text of stored objects straight into the message ([`document`]) and put into its
//! [`envelope`]. Both directions go by one [`table`] of [layouts](layout): types come from [`crate::schema`], numbers
//! from `fields.txt` and `meta.txt`.

mod document;
mod envelope;
mod join;
mod layout;
mod message;
mod scan;
mod table;
#[cfg(test)]
mod tests;
mod value;
mod wire;

use bytes::Bytes;
use serde_json::{Map, Value};

use message::Place;
use wire::Payload;

pub use envelope::{Format, ListFields, Sealed, event, writes};

/// The media type of such bodies.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every body begins with.
const MAGIC: &[u8] = b"k8s\0";

/// How deep messages may be nested; a schema in a CustomResourceDefinition has no depth of its own.
const MAX_DEPTH: usize = 100;

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtobufError {
    /// The body is something else.
    #[error("the body does not appear to be a protobuf message, expected prefix \"k8s\\x00\"")]
    Prefix,
    /// The body ends within a value.
    #[error("unexpected end of the protobuf message")]
    Truncated,
    /// A number has more than 64 bits.
    #[error("integer overflow in the protobuf message")]
    Overflow,
    /// A value is written in a way that no field uses.
    #[error("illegal wire type {0} in the protobuf message")]
    WireType(u8),
    /// Messages in messages, without end.
    #[error("the protobuf message is nested more than {MAX_DEPTH} levels deep")]
    Depth,
    /// The text of a document to write is broken.
    #[error("the document is not valid JSON")]
    Json,
    /// The body is compressed or otherwise transformed.
    #[error("the content encoding {0:?} is not supported")]
    ContentEncoding(String),
    /// The kind is not one that Kubernetes defines.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    UnknownKind {
        /// The group and version that the body names.
        api_version: String,
        /// The kind that the body names.
        kind: String,
    },
    /// A field's value does not fit its type.
    #[error("field {field:?} of the protobuf message is not {expected}")]
    Invalid {
        /// The field's name.
        field: &'static str,
        /// What it should have been.
        expected: &'static str,
    },
}

type Result<T, E = ProtobufError> = std::result::Result<T, E>;

/// Whether a body looks like one of Kubernetes' protobuf messages.
pub fn is_framed(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// Reads a body into a document.
pub fn decode(body: &[u8]) -> Result<Value> {
    let envelope = Envelope::read(body.strip_prefix(MAGIC).ok_or(ProtobufError::Prefix)?)?;
    if !envelope.content_encoding.is_empty() {
        return Err(ProtobufError::ContentEncoding(envelope.content_encoding));
    }
    let TypeMeta { api_version, kind } = envelope.type_meta;
    let Some(message) = table::kind(&api_version, &kind) else {
        return Err(ProtobufError::UnknownKind { api_version, kind });
    };
    let mut document = Map::new();
    document.insert("apiVersion".to_owned(), api_version.into());
    document.insert("kind".to_owned(), kind.into());
    message::fill(message, envelope.raw, &mut document, Place::ROOT)?;
    Ok(Value::Object(document))
}

/// Writes a document of a built-in kind as a body.
pub fn encode(document: &Value) -> Result<Bytes> {
    let unknown = || {
        let text = |field: &str| document[field].as_str().unwrap_or_default().to_owned();
        ProtobufError::UnknownKind { api_version: text("apiVersion"), kind: text("kind") }
    };
    let sealed = Sealed::of(document).ok_or_else(unknown)?;
    let format = Format::of(sealed.api_version, sealed.kind).ok_or_else(unknown)?;
    let json = document.to_string();
    sealed.bytes(json.len(), |out| format.write(out, json.as_bytes(), None))
}

/// `runtime.Unknown`: what the message is, and the message.
#[derive(Default)]
struct Envelope<'a> {
    type_meta: TypeMeta,
    raw: &'a [u8],
    content_encoding: String,
}

#[derive(Default)]
struct TypeMeta {
    api_version: String,
    kind: String,
}

impl<'a> Envelope<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut envelope = Self::default();
        for field in wire::fields(bytes) {
            match field? {
                (1, Payload::Bytes(bytes)) => envelope.type_meta = TypeMeta::read(bytes)?,
                (2, Payload::Bytes(bytes)) => envelope.raw = bytes,
                (3, payload) => {
                    envelope.content_encoding = Place::at("contentEncoding").text(payload)?;
                }
                _ => {}
            }
        }
        Ok(envelope)
    }
}

impl TypeMeta {
    fn read(bytes: &[u8]) -> Result<Self> {
        let mut type_meta = Self::default();
        for field in wire::fields(bytes) {
            match field? {
                (1, payload) => type_meta.api_version = Place::at("apiVersion").text(payload)?,
                (2, payload) => type_meta.kind = Place::at("kind").text(payload)?,
                _ => {}
            }
        }
        Ok(type_meta)
    }
}
