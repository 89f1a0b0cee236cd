//! Types whose JSON is not the shape of their message.

use jiff::Timestamp;
use serde_json::Value;

use super::wire::{Part, Reader, bytes};
use super::{malformed, message_fields};
use crate::metadata;
use crate::status::Result;

/// A type with a JSON form of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Special {
    /// A moment in whole seconds; null when there is none.
    Time,
    /// A moment in microseconds.
    MicroTime,
    /// A span, such as `90s`.
    Duration,
    /// A text such as `500m`.
    Quantity,
    /// A number or a text.
    IntOrString,
    /// JSON inside protobuf.
    Raw,
    /// A schema or a list of them.
    SchemaOrArray,
    /// A schema or a truth.
    SchemaOrBool,
    /// A schema or a list of texts.
    SchemaOrStrings,
}

const SCHEMA: &str = "apiextensions.v1.JSONSchemaProps";

impl Special {
    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "Time" => Self::Time,
            "MicroTime" => Self::MicroTime,
            "Duration" => Self::Duration,
            "Quantity" => Self::Quantity,
            "IntOrString" => Self::IntOrString,
            "Raw" => Self::Raw,
            "SchemaOrArray" => Self::SchemaOrArray,
            "SchemaOrBool" => Self::SchemaOrBool,
            "SchemaOrStrings" => Self::SchemaOrStrings,
            _ => return None,
        })
    }

    /// The JSON of a message.
    pub(super) fn value(self, message: &[u8], depth: usize) -> Result<Value> {
        let parts = Reader::new(message).parts()?;
        let number = |field: u32| {
            let found = parts.iter().find(|(n, _)| *n == field);
            found.map_or(Ok(0), |(_, part)| part.varint()).map(u64::cast_signed)
        };
        let text = |field: u32| text(bytes(&parts, field).unwrap_or(&[]));
        let schema = |field: u32| {
            let schema = bytes(&parts, field).unwrap_or(&[]);
            message_fields(SCHEMA, schema, depth + 1).map(Value::Object)
        };
        Ok(match self {
            Self::Time | Self::MicroTime if parts.is_empty() => Value::Null,
            Self::Time => metadata::time(moment(number(1)?, 0)?).into(),
            Self::MicroTime => {
                let moment = moment(number(1)?, number(2)?)?;
                moment.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string().into()
            }
            Self::Duration => format!("{}s", number(1)? / 1_000_000_000).into(),
            Self::Quantity => text(1)?,
            Self::IntOrString if number(1)? == 0 => number(2)?.into(),
            Self::IntOrString => text(3)?,
            Self::Raw => match bytes(&parts, 1).unwrap_or(&[]) {
                [] => Value::Null,
                json => {
                    serde_json::from_slice(json).map_err(|_| malformed("raw json is broken"))?
                }
            },
            Self::SchemaOrArray => match items(&parts, 2, |part| {
                message_fields(SCHEMA, part, depth + 1).map(Value::Object)
            })? {
                Value::Array(schemas) if schemas.is_empty() => schema(1)?,
                schemas => schemas,
            },
            Self::SchemaOrBool if bytes(&parts, 2).is_some() => schema(2)?,
            Self::SchemaOrBool => (number(1)? != 0).into(),
            Self::SchemaOrStrings if bytes(&parts, 1).is_some() => schema(1)?,
            Self::SchemaOrStrings => items(&parts, 2, self::text)?,
        })
    }
}

/// A number as Go writes it: without a point where there is nothing behind it.
pub(super) fn number(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() < EXACT {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "whole, and small enough to be exact"
        )]
        return (number as i64).into();
    }
    number.into()
}

fn items(
    parts: &[(u32, Part<'_>)],
    number: u32,
    read: impl Fn(&[u8]) -> Result<Value>,
) -> Result<Value> {
    let items = parts.iter().filter(|(n, _)| *n == number);
    items.map(|(_, part)| read(part.bytes()?)).collect()
}

fn text(bytes: &[u8]) -> Result<Value> {
    let text = std::str::from_utf8(bytes).map_err(|_| malformed("a text is not utf-8"))?;
    Ok(text.into())
}

fn moment(seconds: i64, nanoseconds: i64) -> Result<Timestamp> {
    let nanoseconds = i32::try_from(nanoseconds).unwrap_or(0);
    Timestamp::new(seconds, nanoseconds).map_err(|_| malformed("a time is out of range"))
}
