//! JSON seen through a shape, and values turned back into JSON.

use base64::Engine as _;
use serde_json::Value as Json;

use super::{List, Map, Text, Value};
use crate::effort::{COPY, Effort, spend};
use crate::error::Error;
use crate::shape::{DYN, Shape, ShapeKind};
use crate::time::{Duration, Timestamp};

impl<'a> Value<'a> {
    /// A JSON value without declared shape.
    #[must_use]
    pub fn json(json: &'a Json) -> Self {
        match json {
            Json::Null => Value::Null,
            Json::Bool(answer) => Value::Bool(*answer),
            Json::Number(number) => number_value(number),
            Json::String(text) => Value::String(Text::Borrowed(text)),
            Json::Array(items) => Value::List(List::Json(items, &DYN)),
            Json::Object(fields) => Value::Map(Map::Json(fields, &DYN)),
        }
    }

    /// A JSON value as its shape says that it is to be seen.
    pub fn shaped(json: &'a Json, shape: &'a Shape) -> Result<Self, Error> {
        let wrong = |expected: &str| {
            Err(Error::new(format!("invalid data, expected {expected}, got {}", go_type(json))))
        };
        match (&shape.kind, json) {
            (ShapeKind::Dyn, _) => Ok(Value::json(json)),
            (_, Json::Null) if shape.nullable => Ok(Value::Null),
            (_, Json::Null) => {
                Err(Error::new("invalid data, got null for schema with nullable=false"))
            }
            (ShapeKind::Bool, Json::Bool(answer)) => Ok(Value::Bool(*answer)),
            (ShapeKind::Bool, _) => wrong("bool"),
            (ShapeKind::Int, Json::Number(number)) => match number.as_i64() {
                Some(number) => Ok(Value::Int(number)),
                None => wrong("int"),
            },
            (ShapeKind::Int, _) => wrong("int"),
            (ShapeKind::Double, Json::Number(number)) => {
                number.as_f64().map_or_else(|| wrong("float"), |number| Ok(Value::Double(number)))
            }
            (ShapeKind::Double, _) => wrong("float"),
            (ShapeKind::IntOrString, Json::String(text)) => Ok(Value::String(Text::Borrowed(text))),
            (ShapeKind::IntOrString, Json::Number(number)) if number.is_i64() => {
                Ok(number_value(number))
            }
            (ShapeKind::IntOrString, _) => Err(Error::new(
                "invalid data, expected XIntOrString value to be either a string or integer",
            )),
            (ShapeKind::String, Json::String(text)) => Ok(Value::String(Text::Borrowed(text))),
            (ShapeKind::List(..), Json::Array(items)) => Ok(Value::List(List::Json(items, shape))),
            (ShapeKind::List(..), _) => Err(Error::new(
                "invalid data, expected an array for the provided schema with type=array",
            )),
            (ShapeKind::Map(_) | ShapeKind::Object(_), Json::Object(fields)) => {
                Ok(Value::Map(Map::Json(fields, shape)))
            }
            (ShapeKind::Map(_) | ShapeKind::Object(_), _) => Err(Error::new(
                "invalid data, expected a map for the provided schema with type=object",
            )),
            (kind, Json::String(text)) => formatted(kind, text),
            _ => wrong("string"),
        }
    }

    /// As JSON; `None` for what JSON cannot hold, such as a map with keys that are no text, or more
    /// than an evaluation may make.
    #[must_use]
    pub fn to_json(&self) -> Option<Json> {
        let _effort = Effort::begin();
        self.copied()
    }

    fn copied(&self) -> Option<Json> {
        spend(COPY + self.as_str().map_or(0, str::len)).ok()?;
        Some(match self {
            Value::Null | Value::Optional(None) => Json::Null,
            Value::Bool(answer) => Json::Bool(*answer),
            Value::Int(number) => Json::from(*number),
            Value::Uint(number) => Json::from(*number),
            Value::Double(number) => serde_json::Number::from_f64(*number).map(Json::Number)?,
            Value::String(text) => Json::from(text.as_str()),
            Value::Bytes(bytes) => {
                Json::from(base64::engine::general_purpose::STANDARD.encode(bytes))
            }
            Value::Timestamp(at) => Json::from(at.to_string()),
            Value::Duration(span) => Json::from(span.to_string()),
            Value::List(List::Json(items, _)) => {
                spend(items.iter().map(weight).sum()).ok()?;
                Json::Array(items.to_vec())
            }
            Value::List(list) => {
                Json::Array(list.iter().map(|item| item.ok()?.copied()).collect::<Option<_>>()?)
            }
            Value::Map(Map::Json(fields, _)) => {
                spend(fields.iter().map(|(key, value)| key.len() + weight(value)).sum()).ok()?;
                Json::Object((*fields).clone())
            }
            Value::Map(map) => {
                let mut fields = serde_json::Map::new();
                for (key, value) in map.entries() {
                    fields.insert(key.as_str()?.to_owned(), value.ok()?.copied()?);
                }
                Json::Object(fields)
            }
            Value::Struct(object) => {
                let mut fields = serde_json::Map::new();
                for (name, value) in &object.fields {
                    let json = object.shape.fields.get(name).map_or(name, |field| &field.json);
                    fields.insert(json.to_string(), value.copied()?);
                }
                Json::Object(fields)
            }
            Value::Optional(Some(value)) => value.copied()?,
            Value::Extension(extension) => Json::from(extension.to_string()),
            Value::Type(_) => return None,
        })
    }
}

fn number_value<'a>(number: &serde_json::Number) -> Value<'a> {
    if let Some(number) = number.as_i64() {
        return Value::Int(number);
    }
    Value::Double(number.as_f64().unwrap_or(f64::NAN))
}

/// Text that stands for something else.
fn formatted<'a>(kind: &ShapeKind, text: &str) -> Result<Value<'a>, Error> {
    match kind {
        ShapeKind::Timestamp => Timestamp::parse(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Error::new(format!("Invalid date-time formatted string {text}"))),
        ShapeKind::Date => Timestamp::parse_date(text)
            .map(Value::Timestamp)
            .ok_or_else(|| Error::new(format!("Invalid date formatted string {text}"))),
        ShapeKind::Duration => Duration::parse(text)
            .map(Value::Duration)
            .ok_or_else(|| Error::new(format!("Invalid duration {text}"))),
        ShapeKind::Bytes => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map(|bytes| Value::Bytes(bytes.into()))
            .map_err(|error| Error::new(format!("Invalid byte formatted string {text}: {error}"))),
        _ => Err(Error::new("invalid data, expected another type, got string")),
    }
}

/// How many steps it takes to copy a JSON value.
fn weight(json: &Json) -> usize {
    COPY + match json {
        Json::String(text) => text.len(),
        Json::Array(items) => items.iter().map(weight).sum(),
        Json::Object(fields) => fields.iter().map(|(key, value)| key.len() + weight(value)).sum(),
        _ => 0,
    }
}

/// What Go calls the type of a JSON value: messages name it.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}
