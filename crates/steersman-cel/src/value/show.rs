//! Values in messages: as Go's `%v` prints them.

use std::fmt;

use super::{Text, Value};
use crate::effort::{COPY, spend};

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(answer) => write!(f, "{answer}"),
            Value::Int(number) => write!(f, "{number}"),
            Value::Uint(number) => write!(f, "{number}"),
            Value::Double(number) => f.write_str(&shortest(*number)),
            Value::String(text) => write!(f, "{text}"),
            Value::Bytes(bytes) => write!(f, "{}", String::from_utf8_lossy(bytes)),
            Value::Timestamp(at) => write!(f, "{at}"),
            Value::Duration(span) => write!(f, "{span}"),
            Value::List(list) => {
                f.write_str("[")?;
                if spend(COPY * list.len()).is_err() {
                    return f.write_str("…]");
                }
                for (at, item) in list.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    match item {
                        Ok(item) => write!(f, "{comma}{item}")?,
                        Err(error) => write!(f, "{comma}{error}")?,
                    }
                }
                f.write_str("]")
            }
            Value::Map(map) => {
                f.write_str("{")?;
                if spend(COPY * map.len()).is_err() {
                    return f.write_str("…}");
                }
                for (at, (key, value)) in map.entries().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    match value {
                        Ok(value) => write!(f, "{comma}{key}: {value}")?,
                        Err(error) => write!(f, "{comma}{key}: {error}")?,
                    }
                }
                f.write_str("}")
            }
            Value::Struct(object) => {
                write!(f, "{}{{", object.shape.name)?;
                for (at, (name, value)) in object.fields.iter().enumerate() {
                    let comma = if at > 0 { ", " } else { "" };
                    write!(f, "{comma}{name}: {value}")?;
                }
                f.write_str("}")
            }
            Value::Optional(None) => f.write_str("optional.none()"),
            Value::Optional(Some(value)) => write!(f, "optional({value})"),
            Value::Type(ty) => f.write_str(ty.name()),
            Value::Extension(extension) => write!(f, "{extension}"),
        }
    }
}

/// A double as Go's `%g` prints it: the shortest digits, with an exponent below -4 and from 6 on.
fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
