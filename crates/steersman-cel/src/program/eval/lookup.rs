//! What is found at a place.

use std::sync::Arc;

use crate::error::Error;
use crate::program::Fields;
use crate::program::node::By;
use crate::shape::{ObjectShape, ShapeKind};
use crate::value::{Map, Value, present as json_present};

/// Why there is nothing at a place.
pub(super) enum Missing {
    /// There could be something: `?` and `has` take it as an answer.
    Absent(Error),
    Failed(Error),
}

pub(super) fn present(found: Result<Value<'_>, Missing>) -> Result<bool, Error> {
    match found {
        Ok(_) => Ok(true),
        Err(Missing::Absent(_)) => Ok(false),
        Err(Missing::Failed(error)) => Err(error),
    }
}

fn no_such_key(key: &dyn std::fmt::Display) -> Missing {
    Missing::Absent(Error::new(format!("no such key: {key}")))
}

pub(super) fn field<'a>(
    value: &Value<'a>,
    name: &Arc<str>,
    expected: Option<&'a Arc<ObjectShape>>,
) -> Result<Value<'a>, Missing> {
    let found = match value {
        Value::Map(Map::Json(fields, shape)) => match (&shape.kind, expected) {
            // The checker knew the object: its declaration is at hand.
            (ShapeKind::Object(object), Some(expected)) if Arc::ptr_eq(object, expected) => {
                let declared = expected.field(name).ok_or_else(|| no_such_key(name))?;
                json_present(fields, &declared.json)
                    .map(|json| Value::shaped(json, &declared.shape))
            }
            _ => match value {
                Value::Map(map) => map.field(name),
                _ => None,
            },
        },
        Value::Map(map) => map.field(name),
        Value::Struct(object) => object.fields.get(name).cloned().map(Ok),
        Value::List(_) => {
            return Err(Missing::Failed(Error::new("unsupported index type 'string' in list")));
        }
        _ => None,
    };
    match found {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(Missing::Failed(error)),
        None => Err(no_such_key(name)),
    }
}

/// A field that is computed when it is asked for.
pub(super) fn computed<'a>(fields: &'a dyn Fields<'a>, by: &'a By) -> Result<Value<'a>, Missing> {
    let name = match by {
        By::Field(name, _) => name.as_ref(),
        By::Constant(key) => key.as_str().unwrap_or_default(),
        By::Computed(_) => return Err(Missing::Failed(Error::no_such_overload())),
    };
    match fields.field(name) {
        Some(found) => found.map_err(Missing::Failed),
        None => Err(no_such_key(&name)),
    }
}

pub(super) fn index<'a>(value: &Value<'a>, key: &Value<'a>) -> Result<Value<'a>, Missing> {
    let found = match value {
        Value::List(list) => {
            let at = position(key).map_err(Missing::Failed)?;
            let out = || Missing::Absent(Error::new(format!("index out of bounds: {key}")));
            let at = usize::try_from(at).map_err(|_| out())?;
            Some(list.get(at).ok_or_else(out)?)
        }
        Value::Map(map) => map.get(key),
        Value::Struct(object) => {
            key.as_str().and_then(|name| object.fields.get(name)).cloned().map(Ok)
        }
        _ => None,
    };
    match found {
        Some(Ok(value)) => Ok(value),
        Some(Err(error)) => Err(Missing::Failed(error)),
        None => Err(no_such_key(key)),
    }
}

/// The place in a list that a key means.
fn position(key: &Value<'_>) -> Result<i64, Error> {
    match key {
        Value::Int(at) => Ok(*at),
        Value::Uint(at) if i64::try_from(*at).is_ok() => Ok(i64::try_from(*at).unwrap_or(-1)),
        Value::Double(at) if at.fract() == 0.0 && at.abs() < 9e18 => Ok(*at as i64),
        Value::Uint(_) | Value::Double(_) => {
            Err(Error::new(format!("unsupported index value {key} in list")))
        }
        other => {
            let name = other.type_of();
            Err(Error::new(format!("unsupported index type '{}' in list", name.name())))
        }
    }
}
