//! What stands around a message: its kind, a list's metadata, an event's frame.
//!
//! | form | bytes |
//! |---|---|
//! | object | `k8s\0`, then `runtime.Unknown { typeMeta = 1 { apiVersion = 1, kind = 2 }, raw = 2 }` |
//! | list | the same, with `raw` of `{ metadata = 1, items = 2… }` |
//! | event | length in four bytes, then `WatchEvent { type = 1, object = 2 { raw = 1 } }` |

use bytes::Bytes;
use serde_json::Value;

use super::layout::Message;
use super::table;
use super::wire::{close, open, put_bytes, put_varint};
use super::{MAGIC, ProtobufError, Result, document};
use crate::schema::Schema;

/// How the objects of a kind are written.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    message: &'static Message,
}

/// A kind's name, as it stands on an envelope.
#[derive(Clone, Copy, Debug)]
pub struct Sealed<'a> {
    /// Group and version.
    pub api_version: &'a str,
    /// The kind.
    pub kind: &'a str,
}

impl Format {
    /// The format of a kind; `None` if it has none, as custom resources have none.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        table::kind(api_version, kind).map(|message| Self { message })
    }

    /// The format that shows only the metadata of an object, whatever its kind.
    pub fn metadata() -> Option<Self> {
        table::partial_object_metadata().map(|message| Self { message })
    }

    /// Appends an object from its JSON text. A stored object lacks its `resourceVersion`, which
    /// is put in.
    pub fn write(
        self,
        out: &mut Vec<u8>,
        json: &[u8],
        resource_version: Option<&str>,
    ) -> Result<()> {
        document::object(out, self.message, json, resource_version)
    }
}

impl<'a> Sealed<'a> {
    /// What a document says that it is.
    pub fn of(document: &'a Value) -> Option<Self> {
        let api_version = document["apiVersion"].as_str()?;
        let kind = document["kind"].as_str()?;
        Some(Self { api_version, kind })
    }

    /// Appends the envelope of what `write` appends.
    pub fn write<E>(
        self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        out.extend_from_slice(MAGIC);
        self.write_type(out);
        let raw = open(out, 2);
        write(out)?;
        close(out, raw);
        Ok(())
    }

    /// The envelope of what `write` appends, of about that many bytes. What is large is not moved:
    /// the head is put before it once its length is known.
    pub fn bytes<E>(
        self,
        capacity: usize,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<Bytes, E> {
        let mut head = Vec::with_capacity(128);
        head.extend_from_slice(MAGIC);
        self.write_type(&mut head);
        put_varint(&mut head, 2 << 3 | 2);
        let room = head.len() + 10;
        let mut out = Vec::with_capacity(room + capacity);
        out.resize(room, 0);
        write(&mut out)?;
        put_varint(&mut head, (out.len() - room) as u64);
        let start = room - head.len();
        out[start..room].copy_from_slice(&head);
        Ok(Bytes::from(out).slice(start..))
    }

    fn write_type(self, out: &mut Vec<u8>) {
        let type_meta = open(out, 1);
        put_bytes(out, 1, self.api_version.as_bytes());
        put_bytes(out, 2, self.kind.as_bytes());
        close(out, type_meta);
    }
}

/// Whether objects of this schema have a protobuf form: the built-in kinds have.
pub fn writes(schema: &Schema) -> bool {
    schema.is_typed()
}

/// The numbers of a list's two fields.
#[derive(Clone, Copy, Debug)]
pub struct ListFields {
    metadata: u32,
    items: u32,
}

impl ListFields {
    /// Those of every list but one.
    pub const STANDARD: Self = Self { metadata: 1, items: 2 };

    /// Those of `meta.k8s.io/v1beta1` `PartialObjectMetadataList`.
    pub const ITEMS_FIRST: Self = Self { metadata: 2, items: 1 };

    /// Appends a list's metadata.
    pub fn write_metadata(self, out: &mut Vec<u8>, json: &[u8]) -> Result<()> {
        let Some(list_meta) = Format::of("v1", "ListMeta") else { return Ok(()) };
        let metadata = open(out, self.metadata);
        list_meta.write(out, json, None)?;
        close(out, metadata);
        Ok(())
    }

    /// Appends an item of a list.
    pub fn write_item(
        self,
        out: &mut Vec<u8>,
        format: Format,
        json: &[u8],
        resource_version: Option<&str>,
    ) -> Result<()> {
        let item = open(out, self.items);
        format.write(out, json, resource_version)?;
        close(out, item);
        Ok(())
    }
}

/// Appends the frame of a watch event; `write` appends its object, envelope included.
pub fn event<E: From<ProtobufError>>(
    out: &mut Vec<u8>,
    kind: &str,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    put_bytes(out, 1, kind.as_bytes());
    let object = open(out, 2);
    let raw = open(out, 1);
    write(out)?;
    close(out, raw);
    close(out, object);
    let length = u32::try_from(out.len() - start - 4).map_err(|_| ProtobufError::Overflow)?;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}
