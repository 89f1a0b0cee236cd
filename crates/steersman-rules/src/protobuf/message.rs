//! One message into one object: which of its fields exist, and which zeros are values.
//!
//! [`super::table`] says what the numbers mean; [`super::value`] reads what the fields hold.

use serde_json::{Map, Value};

use super::layout::{Entry, Field, Holding, Kind, Message};
use super::value;
use super::wire::{self, Payload};
use super::{MAX_DEPTH, ProtobufError, Result};

/// Where in the document a value is: the field, for mistakes, and how deep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    field: &'static str,
    depth: usize,
}

impl Place {
    pub(super) const ROOT: Self = Self::at("");

    /// A field outside of the document.
    pub(super) const fn at(field: &'static str) -> Self {
        Self { field, depth: 0 }
    }

    /// The mistake that the value here is something else.
    pub(super) fn invalid(self, expected: &'static str) -> ProtobufError {
        ProtobufError::Invalid { field: self.field, expected }
    }

    /// The bytes of a message or text here.
    pub(super) fn bytes(self, payload: Payload<'_>) -> Result<&[u8]> {
        match payload {
            Payload::Bytes(bytes) => Ok(bytes),
            _ => Err(self.invalid("a sequence of bytes")),
        }
    }

    /// The text here.
    pub(super) fn text(self, payload: Payload<'_>) -> Result<String> {
        let text = std::str::from_utf8(self.bytes(payload)?);
        text.map(str::to_owned).map_err(|_| self.invalid("valid UTF-8"))
    }

    fn deeper(self) -> Result<Self> {
        let depth = self.depth + 1;
        if depth > MAX_DEPTH { Err(ProtobufError::Depth) } else { Ok(Self { depth, ..self }) }
    }
}

/// Reads a message's fields into an object. Numbers that are not known are skipped: a newer client
/// may set fields that this server never heard of.
pub(super) fn fill(
    message: &Message,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    place: Place,
) -> Result<()> {
    let place = place.deeper()?;
    for field in wire::fields(bytes) {
        let (number, payload) = field?;
        match message.entry(number) {
            Some(Entry::Field(field)) => {
                put(field, payload, object, Place { field: field.name, ..place })?;
            }
            Some(Entry::Part(part)) => fill(part, place.bytes(payload)?, object, place)?,
            None => {}
        }
    }
    Ok(())
}

fn put(
    field: &Field,
    payload: Payload<'_>,
    object: &mut Map<String, Value>,
    place: Place,
) -> Result<()> {
    match field.holds {
        Holding::One(kind) => {
            let value = value::read(kind, payload, place)?;
            if !value.is_null() && (field.keeps_zero || !is_zero(&value)) {
                object.insert(field.name.to_owned(), value);
            }
        }
        Holding::List(kind) => {
            let list = object.entry(field.name).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(items) = list {
                append(kind, payload, items, place)?;
            }
        }
        Holding::Map(kind) => {
            let (key, value) = entry(kind, place.bytes(payload)?, place)?;
            let map = object.entry(field.name).or_insert_with(|| Value::Object(Map::new()));
            if let Value::Object(map) = map {
                map.insert(key, value);
            }
        }
    }
    Ok(())
}

/// Adds an item, or all the numbers of a packed list.
fn append(kind: Kind, payload: Payload<'_>, items: &mut Vec<Value>, place: Place) -> Result<()> {
    if let (Payload::Bytes(bytes), true) = (payload, value::is_varint(kind)) {
        for number in wire::packed(bytes) {
            items.push(value::read(kind, number?, place)?);
        }
    } else {
        items.push(value::read(kind, payload, place)?);
    }
    Ok(())
}

/// A map's entry is a message of a key and a value, of which either may be left out.
fn entry(kind: Kind, bytes: &[u8], place: Place) -> Result<(String, Value)> {
    let mut key = String::new();
    let mut payload = Payload::Bytes(&[]);
    for field in wire::fields(bytes) {
        match field? {
            (1, text) => key = place.text(text)?,
            (2, value) => payload = value,
            _ => {}
        }
    }
    Ok((key, value::read(kind, payload, place)?))
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
