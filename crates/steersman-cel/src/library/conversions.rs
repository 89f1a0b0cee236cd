//! From one type to another.

use super::{Row, no_overload};
use crate::error::Error;
use crate::extension::Extension;
use crate::shape::Type;
use crate::time::{Duration, Timestamp};
use crate::value::{Text, Value};

pub(super) const ROWS: &[Row] = &[
    ("type", &[("type", "(A) type(A)")], type_of),
    ("dyn", &[("to_dyn", "(A) dyn")], to_dyn),
    ("bool", &[("bool_to_bool", "(bool) bool"), ("string_to_bool", "(string) bool")], to_bool),
    (
        "bytes",
        &[("bytes_to_bytes", "(bytes) bytes"), ("string_to_bytes", "(string) bytes")],
        to_bytes,
    ),
    (
        "double",
        &[
            ("double_to_double", "(double) double"),
            ("int64_to_double", "(int) double"),
            ("string_to_double", "(string) double"),
            ("uint64_to_double", "(uint) double"),
        ],
        to_double,
    ),
    (
        "duration",
        &[
            ("duration_to_duration", "(duration) duration"),
            ("int64_to_duration", "(int) duration"),
            ("string_to_duration", "(string) duration"),
        ],
        to_duration,
    ),
    (
        "int",
        &[
            ("int64_to_int64", "(int) int"),
            ("double_to_int64", "(double) int"),
            ("duration_to_int64", "(duration) int"),
            ("string_to_int64", "(string) int"),
            ("timestamp_to_int64", "(timestamp) int"),
            ("uint64_to_int64", "(uint) int"),
        ],
        to_int,
    ),
    (
        "string",
        &[
            ("string_to_string", "(string) string"),
            ("bool_to_string", "(bool) string"),
            ("bytes_to_string", "(bytes) string"),
            ("double_to_string", "(double) string"),
            ("duration_to_string", "(duration) string"),
            ("int64_to_string", "(int) string"),
            ("timestamp_to_string", "(timestamp) string"),
            ("uint64_to_string", "(uint) string"),
        ],
        to_string,
    ),
    (
        "timestamp",
        &[
            ("timestamp_to_timestamp", "(timestamp) timestamp"),
            ("int64_to_timestamp", "(int) timestamp"),
            ("string_to_timestamp", "(string) timestamp"),
        ],
        to_timestamp,
    ),
    (
        "uint",
        &[
            ("uint64_to_uint64", "(uint) uint"),
            ("double_to_uint64", "(double) uint"),
            ("int64_to_uint64", "(int) uint"),
            ("string_to_uint64", "(string) uint"),
        ],
        to_uint,
    ),
];

fn failed<'a>(from: &Value<'_>, to: &Type) -> Result<Value<'a>, Error> {
    Err(Error::new(format!(
        "type conversion error from '{}' to '{}'",
        from.type_of().name(),
        to.name()
    )))
}

fn overflow<'a>() -> Result<Value<'a>, Error> {
    Err(Error::new("integer overflow"))
}

fn type_of<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::Type(value.type_of())),
        _ => no_overload(),
    }
}

fn to_dyn<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(value.clone()),
        _ => no_overload(),
    }
}

fn to_bool<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value @ Value::Bool(_)] => Ok(value.clone()),
        [value @ Value::String(text)] => match text.as_str() {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
            _ => failed(value, &Type::Bool),
        },
        _ => no_overload(),
    }
}

fn to_bytes<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value @ Value::Bytes(_)] => Ok(value.clone()),
        [Value::String(text)] => Ok(Value::Bytes(text.as_str().as_bytes().into())),
        _ => no_overload(),
    }
}

fn to_double<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Double(number)] => Ok(Value::Double(*number)),
        [Value::Int(number)] => Ok(Value::Double(*number as f64)),
        [Value::Uint(number)] => Ok(Value::Double(*number as f64)),
        [value @ Value::String(text)] => match text.as_str().parse::<f64>() {
            Ok(number) => Ok(Value::Double(number)),
            Err(_) => failed(value, &Type::Double),
        },
        _ => no_overload(),
    }
}

fn to_duration<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value @ Value::Duration(_)] => Ok(value.clone()),
        [Value::Int(nanos)] => Ok(Value::Duration(Duration { nanos: *nanos })),
        [value @ Value::String(text)] => match Duration::parse(text.as_str()) {
            Some(span) => Ok(Value::Duration(span)),
            None => failed(value, &Type::Duration),
        },
        _ => no_overload(),
    }
}

fn to_int<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(number)] => Ok(Value::Int(*number)),
        // The ends of the range are excluded: a double cannot tell them from what lies beyond.
        [Value::Double(number)]
            if *number > -9.223_372_036_854_776e18 && *number < 9.223_372_036_854_776e18 =>
        {
            Ok(Value::Int(*number as i64))
        }
        [Value::Double(_)] => overflow(),
        [Value::Uint(number)] => {
            i64::try_from(*number).map_or_else(|_| overflow(), |n| Ok(Value::Int(n)))
        }
        [Value::Duration(span)] => Ok(Value::Int(span.nanos)),
        [Value::Timestamp(at)] => Ok(Value::Int(at.seconds)),
        [value @ Value::String(text)] => match go_integer(text.as_str()) {
            Some(number) => Ok(Value::Int(number)),
            None => failed(value, &Type::Int),
        },
        _ => no_overload(),
    }
}

/// Digits with an optional sign, nothing else.
fn go_integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn to_uint<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let overflow = || Err(Error::new("unsigned integer overflow"));
    match args {
        [Value::Uint(number)] => Ok(Value::Uint(*number)),
        [Value::Int(number)] => {
            u64::try_from(*number).map_or_else(|_| overflow(), |n| Ok(Value::Uint(n)))
        }
        [Value::Double(number)] if *number >= 0.0 && *number < 1.844_674_407_370_955_2e19 => {
            Ok(Value::Uint(*number as u64))
        }
        [Value::Double(_)] => overflow(),
        [value @ Value::String(text)] => {
            let digits = !text.as_str().starts_with('+');
            match text.as_str().parse::<u64>() {
                Ok(number) if digits => Ok(Value::Uint(number)),
                _ => failed(value, &Type::Uint),
            }
        }
        _ => no_overload(),
    }
}

pub(super) fn to_string<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::String(text)] => Ok(Value::String(text.clone())),
        [Value::Bytes(bytes)] => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::text(text)),
            Err(_) => Err(Error::new("invalid UTF-8 in bytes, cannot convert to string")),
        },
        [Value::Duration(span)] => Ok(Value::text(span.in_seconds())),
        [Value::Bool(answer)] => {
            Ok(Value::String(Text::Borrowed(if *answer { "true" } else { "false" })))
        }
        [value @ (Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Timestamp(_))] => {
            Ok(Value::text(value.to_string()))
        }
        [Value::Extension(extension @ (Extension::Ip(_) | Extension::Cidr(..)))] => {
            Ok(Value::text(extension.to_string()))
        }
        _ => no_overload(),
    }
}

fn to_timestamp<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let overflow = || Error::new("timestamp overflow");
    match args {
        [value @ Value::Timestamp(_)] => Ok(value.clone()),
        [Value::Int(seconds)] => {
            Timestamp::new(*seconds, 0).map(Value::Timestamp).ok_or_else(overflow)
        }
        [value @ Value::String(text)] => match Timestamp::parse(text.as_str()) {
            Some(at) => Ok(Value::Timestamp(at)),
            None if text.as_str().starts_with("0000-") => Err(overflow()),
            None => failed(value, &Type::Timestamp),
        },
        _ => no_overload(),
    }
}
