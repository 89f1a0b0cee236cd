//! A document's JSON text as a message, in one pass and without anything in between.
//!
//! The counterpart of [`super::message`] and [`super::value`]: [`super::table`] says which number a
//! name has and how its value is written. Fields that are not known, and nulls, are left out.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;

use super::layout::{Holding, Kind, Message, Slot};
use super::scan::{Scanner, Text};
use super::table;
use super::wire::{close, open, put_bytes, put_double, put_int};
use super::{ProtobufError, Result};
use crate::schema::Scalar;

/// Where `metadata` is in every object, and `resourceVersion` in it.
const METADATA: u32 = 1;
const RESOURCE_VERSION: u32 = 6;

/// Appends the message of an object. Stored objects lack their `resourceVersion`; it is put in.
pub(super) fn object(
    out: &mut Vec<u8>,
    message: &Message,
    json: &[u8],
    resource_version: Option<&str>,
) -> Result<()> {
    let scan = &mut Scanner::new(json);
    let Some(version) = resource_version else { return fields(out, message, scan) };
    let (mut rest, mut behind) = (scan.object()?, 0);
    while let Some(key) = scan.key(&mut rest)? {
        match message.slot(&key.bytes()?, &mut behind) {
            Some(
                slot @ Slot { number: METADATA, holds: Holding::One(Kind::Message(meta)), .. },
            ) => {
                let metadata = open(out, slot.number);
                put_bytes(out, RESOURCE_VERSION, version.as_bytes());
                fields(out, table::message(*meta), scan)?;
                close(out, metadata);
                if message.is_only_metadata() {
                    return Ok(());
                }
            }
            Some(slot) => field(out, slot, scan)?,
            None => drop(scan.skip()?),
        }
    }
    Ok(())
}

/// Appends the fields of an object.
fn fields(out: &mut Vec<u8>, message: &Message, scan: &mut Scanner<'_>) -> Result<()> {
    let (mut rest, mut behind) = (scan.object()?, 0);
    while let Some(key) = scan.key(&mut rest)? {
        match message.slot(&key.bytes()?, &mut behind) {
            Some(slot) => field(out, slot, scan)?,
            None => drop(scan.skip()?),
        }
    }
    Ok(())
}

/// Appends a field; one that is in parts opens them for itself alone, since parts that come
/// several times are merged.
fn field(out: &mut Vec<u8>, slot: &Slot, scan: &mut Scanner<'_>) -> Result<()> {
    if scan.null()? {
        return Ok(());
    }
    let mut parts = Vec::new();
    for part in &slot.parts {
        parts.push(open(out, *part));
    }
    let place = Place { number: slot.number, name: slot.name };
    match slot.holds {
        Holding::One(kind) => value(out, kind, place, scan)?,
        Holding::List(kind) => {
            let mut rest = place.expect(scan, b'[', "a list").and_then(|()| scan.list())?;
            while scan.more(&mut rest)? {
                element(out, kind, place, scan)?;
            }
        }
        Holding::Map(kind) => {
            let mut rest = place.expect(scan, b'{', "an object").and_then(|()| scan.object())?;
            while let Some(key) = scan.key(&mut rest)? {
                let entry = open(out, place.number);
                put_bytes(out, 1, &key.bytes()?);
                element(out, kind, Place { number: 2, ..place }, scan)?;
                close(out, entry);
            }
        }
    }
    for part in parts.into_iter().rev() {
        close(out, part);
    }
    Ok(())
}

/// A field's number, and its name for mistakes.
#[derive(Clone, Copy)]
struct Place {
    number: u32,
    name: &'static str,
}

impl Place {
    fn invalid(self, expected: &'static str) -> ProtobufError {
        ProtobufError::Invalid { field: self.name, expected }
    }

    fn expect(self, scan: &mut Scanner<'_>, begins: u8, expected: &'static str) -> Result<()> {
        if scan.peek()? == begins { Ok(()) } else { Err(self.invalid(expected)) }
    }

    fn text<'a>(self, scan: &mut Scanner<'a>) -> Result<Text<'a>> {
        self.expect(scan, b'"', "a text")?;
        scan.string()
    }
}

/// Appends a value of a list or map, where null is the zero of its type.
fn element(out: &mut Vec<u8>, kind: Kind, place: Place, scan: &mut Scanner<'_>) -> Result<()> {
    if !scan.null()? {
        return value(out, kind, place, scan);
    }
    match kind {
        Kind::Scalar(Scalar::Int32 | Scalar::Int64 | Scalar::Integer | Scalar::Bool) => {
            put_int(out, place.number, 0);
        }
        Kind::Scalar(Scalar::Number) => put_double(out, place.number, 0.0),
        _ => put_bytes(out, place.number, &[]),
    }
    Ok(())
}

fn value(out: &mut Vec<u8>, kind: Kind, place: Place, scan: &mut Scanner<'_>) -> Result<()> {
    if let Kind::Scalar(scalar) = kind {
        return self::scalar(out, scalar, place, scan);
    }
    let message = open(out, place.number);
    match kind {
        Kind::Scalar(_) => {}
        Kind::Message(index) => {
            place.expect(scan, b'{', "an object")?;
            fields(out, table::message(index), scan)?;
        }
        Kind::Json => put_bytes(out, 1, scan.skip()?),
        Kind::Texts => texts(out, Place { number: 1, ..place }, scan)?,
        Kind::SchemaOrArray(schema) => {
            if scan.peek()? == b'[' {
                schemas(out, schema, scan)?;
            } else {
                value(out, Kind::Message(schema), Place { number: 1, ..place }, scan)?;
            }
        }
        Kind::SchemaOrBool(schema) => {
            if scan.peek()? == b'{' {
                put_int(out, 1, 1);
                value(out, Kind::Message(schema), Place { number: 2, ..place }, scan)?;
            } else {
                scalar(out, Scalar::Bool, Place { number: 1, ..place }, scan)?;
            }
        }
        Kind::SchemaOrTexts(schema) => {
            if scan.peek()? == b'{' {
                value(out, Kind::Message(schema), Place { number: 1, ..place }, scan)?;
            } else {
                texts(out, Place { number: 2, ..place }, scan)?;
            }
        }
    }
    close(out, message);
    Ok(())
}

fn texts(out: &mut Vec<u8>, place: Place, scan: &mut Scanner<'_>) -> Result<()> {
    place.expect(scan, b'[', "a list")?;
    let mut rest = scan.list()?;
    while scan.more(&mut rest)? {
        element(out, Kind::Scalar(Scalar::String), place, scan)?;
    }
    Ok(())
}

fn schemas(out: &mut Vec<u8>, schema: usize, scan: &mut Scanner<'_>) -> Result<()> {
    let mut rest = scan.list()?;
    while scan.more(&mut rest)? {
        element(out, Kind::Message(schema), Place { number: 2, name: "items" }, scan)?;
    }
    Ok(())
}

fn scalar(out: &mut Vec<u8>, scalar: Scalar, place: Place, scan: &mut Scanner<'_>) -> Result<()> {
    let number = place.number;
    match scalar {
        Scalar::String => put_bytes(out, number, &place.text(scan)?.bytes()?),
        Scalar::Int32 | Scalar::Int64 | Scalar::Integer => {
            put_int(out, number, integer(place, scan)?);
        }
        Scalar::Number => put_double(out, number, double(place, scan)?),
        Scalar::Bool => match scan.word()? {
            "true" => put_int(out, number, 1),
            "false" => put_int(out, number, 0),
            _ => return Err(place.invalid("true or false")),
        },
        Scalar::Bytes => bytes(out, place, scan)?,
        Scalar::Time | Scalar::MicroTime => time(out, place, scan)?,
        Scalar::Quantity => quantity(out, place, scan)?,
        Scalar::IntOrString => int_or_string(out, place, scan)?,
    }
    Ok(())
}

/// A number that is whole may be written with a fraction or an exponent.
fn integer(place: Place, scan: &mut Scanner<'_>) -> Result<i64> {
    let word = scan.word()?;
    let whole = || {
        let number: f64 = word.parse().ok()?;
        #[expect(clippy::cast_possible_truncation, reason = "it has no fraction")]
        (number.fract() == 0.0).then_some(number as i64)
    };
    word.parse().ok().or_else(whole).ok_or_else(|| place.invalid("an integer"))
}

fn double(place: Place, scan: &mut Scanner<'_>) -> Result<f64> {
    scan.word()?.parse().map_err(|_| place.invalid("a number"))
}

fn bytes(out: &mut Vec<u8>, place: Place, scan: &mut Scanner<'_>) -> Result<()> {
    let text = place.text(scan)?.bytes()?;
    let field = open(out, place.number);
    BASE64_STANDARD.decode_vec(&text, out).map_err(|_| place.invalid("base64"))?;
    close(out, field);
    Ok(())
}

/// `seconds = 1, nanos = 2`; both are there, for an empty message would be no time at all.
fn time(out: &mut Vec<u8>, place: Place, scan: &mut Scanner<'_>) -> Result<()> {
    let text = place.text(scan)?.bytes()?;
    let time = std::str::from_utf8(&text).ok().and_then(|text| text.parse::<Timestamp>().ok());
    let time = time.ok_or_else(|| place.invalid("a time"))?;
    // A time before 1970 counts its fraction forwards, too.
    let nanos = time.subsec_nanosecond();
    let (seconds, nanos) = match (time.as_second(), nanos) {
        (seconds, nanos) if nanos < 0 => (seconds - 1, nanos + 1_000_000_000),
        both => both,
    };
    let message = open(out, place.number);
    put_int(out, 1, seconds);
    put_int(out, 2, i64::from(nanos));
    close(out, message);
    Ok(())
}

/// `string = 1`
fn quantity(out: &mut Vec<u8>, place: Place, scan: &mut Scanner<'_>) -> Result<()> {
    let message = open(out, place.number);
    if scan.peek()? == b'"' {
        put_bytes(out, 1, &scan.string()?.bytes()?);
    } else {
        put_bytes(out, 1, scan.word()?.as_bytes());
    }
    close(out, message);
    Ok(())
}

/// `type = 1, intVal = 2, strVal = 3`
fn int_or_string(out: &mut Vec<u8>, place: Place, scan: &mut Scanner<'_>) -> Result<()> {
    let message = open(out, place.number);
    if scan.peek()? == b'"' {
        put_int(out, 1, 1);
        put_bytes(out, 3, &scan.string()?.bytes()?);
    } else {
        put_int(out, 1, 0);
        put_int(out, 2, integer(place, scan)?);
    }
    close(out, message);
    Ok(())
}
