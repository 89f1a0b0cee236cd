//! Single values: scalars, and the messages that JSON shows as something other than an object.
//!
//! Each is written the way Kubernetes' own types write themselves into JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Number, Value};

use super::Result;
use super::layout::Kind;
use super::message::{self, Place};
use super::table;
use super::wire::{self, Payload};
use crate::schema::Scalar;

/// The years that RFC 3339 can write, as seconds: 0000 up to 9999.
const WRITABLE_SECONDS: std::ops::Range<i64> = -62_167_219_200..253_402_300_800;

/// Integers up to here are exact in a double.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads a value; null where it is not set, as a zero time is.
pub(super) fn read(kind: Kind, payload: Payload<'_>, place: Place) -> Result<Value> {
    match kind {
        Kind::Scalar(scalar) => read_scalar(scalar, payload, place),
        Kind::Message(index) => object(index, place.bytes(payload)?, place),
        Kind::Json => json(place.bytes(payload)?, place),
        Kind::Texts => texts(1, place.bytes(payload)?, place).map(Value::from),
        Kind::SchemaOrArray(schema) => schema_or_array(schema, place.bytes(payload)?, place),
        Kind::SchemaOrBool(schema) => schema_or_bool(schema, place.bytes(payload)?, place),
        Kind::SchemaOrTexts(schema) => schema_or_texts(schema, place.bytes(payload)?, place),
    }
}

/// Whether lists of such values may be packed.
pub(super) fn is_varint(kind: Kind) -> bool {
    matches!(kind, Kind::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Integer | Scalar::Bool))
}

fn read_scalar(scalar: Scalar, payload: Payload<'_>, place: Place) -> Result<Value> {
    match scalar {
        Scalar::String => place.text(payload).map(Value::from),
        // A negative number is written with 64 bits whatever its type; the low ones are the value.
        Scalar::Int32 => integer(payload, place).map(|value| Value::from(value as i32)),
        Scalar::Int64 | Scalar::Integer => integer(payload, place).map(Value::from),
        Scalar::Number => double(payload, place),
        Scalar::Bool => integer(payload, place).map(|value| Value::from(value != 0)),
        Scalar::Bytes => Ok(BASE64_STANDARD.encode(place.bytes(payload)?).into()),
        Scalar::Time => time(place.bytes(payload)?, 0, place),
        Scalar::MicroTime => time(place.bytes(payload)?, 6, place),
        Scalar::Quantity => quantity(place.bytes(payload)?, place),
        Scalar::IntOrString => int_or_string(place.bytes(payload)?, place),
    }
}

fn integer(payload: Payload<'_>, place: Place) -> Result<i64> {
    match payload {
        Payload::Varint(bits) => Ok(bits.cast_signed()),
        // The value that a map's entry leaves out.
        Payload::Bytes([]) => Ok(0),
        _ => Err(place.invalid("an integer")),
    }
}

/// A whole number is written without a fraction.
fn double(payload: Payload<'_>, place: Place) -> Result<Value> {
    let Payload::Fixed64(bits) = payload else { return Err(place.invalid("a number")) };
    let number = f64::from_bits(bits);
    if number.fract() == 0.0 && number.abs() < EXACT {
        return Ok(Value::from(number as i64));
    }
    Number::from_f64(number).map(Value::Number).ok_or_else(|| place.invalid("a finite number"))
}

/// A zero time is an empty message; the epoch is not.
fn time(bytes: &[u8], digits: usize, place: Place) -> Result<Value> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let (mut seconds, mut nanos) = (0, 0);
    for field in wire::fields(bytes) {
        match field? {
            (1, payload) => seconds = integer(payload, place)?,
            (2, payload) => nanos = integer(payload, place)? as i32,
            _ => {}
        }
    }
    let nanos = if digits == 0 { 0 } else { nanos };
    let time = Timestamp::new(seconds, nanos).ok();
    let time = time.filter(|time| WRITABLE_SECONDS.contains(&time.as_second()));
    let time = time.ok_or_else(|| place.invalid("a time"))?;
    Ok(format!("{time:.digits$}").into())
}

fn quantity(bytes: &[u8], place: Place) -> Result<Value> {
    let text = last(1, bytes)?.map_or(Ok(String::new()), |payload| place.text(payload))?;
    Ok(if text.is_empty() { "0".into() } else { text.into() })
}

/// `type = 1` says which of `intVal = 2` and `strVal = 3` counts.
fn int_or_string(bytes: &[u8], place: Place) -> Result<Value> {
    let is_text = last(1, bytes)?.map_or(Ok(0), |payload| integer(payload, place))? != 0;
    if is_text {
        last(3, bytes)?.map_or(Ok(String::new()), |payload| place.text(payload)).map(Value::from)
    } else {
        let number = last(2, bytes)?.map_or(Ok(0), |payload| integer(payload, place))?;
        Ok(Value::from(number as i32))
    }
}

/// `raw = 1` of a RawExtension, a FieldsV1 or a schema's JSON; nothing is null.
fn json(bytes: &[u8], place: Place) -> Result<Value> {
    let raw = last(1, bytes)?.map_or(Ok(&[][..]), |payload| place.bytes(payload))?;
    if raw.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(raw).map_err(|_| place.invalid("valid JSON"))
}

/// `schema = 1, jSONSchemas = 2`
fn schema_or_array(schema: usize, bytes: &[u8], place: Place) -> Result<Value> {
    let mut list = Vec::new();
    for field in wire::fields(bytes) {
        if let (2, payload) = field? {
            list.push(object(schema, place.bytes(payload)?, place)?);
        }
    }
    if list.is_empty() { schema_at(1, schema, bytes, place) } else { Ok(Value::Array(list)) }
}

/// `allows = 1, schema = 2`
fn schema_or_bool(schema: usize, bytes: &[u8], place: Place) -> Result<Value> {
    let value = schema_at(2, schema, bytes, place)?;
    if !value.is_null() {
        return Ok(value);
    }
    let allows = last(1, bytes)?.map_or(Ok(0), |payload| integer(payload, place))?;
    Ok(Value::from(allows != 0))
}

/// `schema = 1, property = 2`
fn schema_or_texts(schema: usize, bytes: &[u8], place: Place) -> Result<Value> {
    let properties = texts(2, bytes, place)?;
    if properties.is_empty() { schema_at(1, schema, bytes, place) } else { Ok(properties.into()) }
}

/// The schema in a field; null if there is none.
fn schema_at(number: u32, schema: usize, bytes: &[u8], place: Place) -> Result<Value> {
    let Some(payload) = last(number, bytes)? else { return Ok(Value::Null) };
    object(schema, place.bytes(payload)?, place)
}

fn object(index: usize, bytes: &[u8], place: Place) -> Result<Value> {
    let mut object = Map::new();
    message::fill(table::message(index), bytes, &mut object, place)?;
    Ok(Value::Object(object))
}

fn texts(number: u32, bytes: &[u8], place: Place) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for field in wire::fields(bytes) {
        let (found, payload) = field?;
        if found == number {
            texts.push(place.text(payload)?);
        }
    }
    Ok(texts)
}

/// A field that has one value; the last one counts.
fn last(number: u32, bytes: &[u8]) -> Result<Option<Payload<'_>>> {
    let mut last = None;
    for field in wire::fields(bytes) {
        let (found, payload) = field?;
        if found == number {
            last = Some(payload);
        }
    }
    Ok(last)
}
