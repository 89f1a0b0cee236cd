//! When values are equal and which comes first. Numbers of different types compare by value.

use std::cmp::Ordering;

use super::list::same_keys;
use super::{List, Map, Value};
use crate::effort::{COMPARE, spend};
use crate::error::Error;
use crate::shape::ListKind;

/// Values of different types are unequal, numbers excepted.
pub(crate) fn equal(a: &Value<'_>, b: &Value<'_>) -> Result<bool, Error> {
    Ok(match (a, b) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::String(a), Value::String(b)) => a.as_str() == b.as_str(),
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::List(a), Value::List(b)) => return lists(a, b),
        (Value::Map(a), Value::Map(b)) => return maps(a, b),
        (Value::Struct(a), Value::Struct(b)) => {
            if a.shape.name != b.shape.name || a.fields.len() != b.fields.len() {
                return Ok(false);
            }
            spend(COMPARE * a.fields.len())?;
            for (name, value) in &a.fields {
                let Some(other) = b.fields.get(name) else {
                    return Ok(false);
                };
                if !equal(value, other)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => return equal(a, b),
            (None, None) => true,
            _ => false,
        },
        (Value::Type(a), Value::Type(b)) => a.name() == b.name(),
        (Value::Extension(a), Value::Extension(b)) => a.equals(b),
        (a, b) => numbers(a, b) == Some(Ordering::Equal),
    })
}

fn lists(a: &List<'_>, b: &List<'_>) -> Result<bool, Error> {
    if a.len() != b.len() {
        return Ok(false);
    }
    spend(COMPARE * a.len())?;
    match a.kind() {
        ListKind::Atomic => {
            for (a, b) in a.iter().zip(b.iter()) {
                if !equal(&a?, &b?)? {
                    return Ok(false);
                }
            }
        }
        ListKind::Set => {
            for item in a.iter() {
                let item = item?;
                if !find(b, |other| equal(&item, other))? {
                    return Ok(false);
                }
            }
        }
        ListKind::Map(keys) => {
            for item in a.iter() {
                let item = item?;
                if !find(b, |other| Ok(same_keys(&item, other, keys) && equal(&item, other)?))? {
                    return Ok(false);
                }
            }
        }
    }
    Ok(true)
}

fn find(
    list: &List<'_>,
    mut wanted: impl FnMut(&Value<'_>) -> Result<bool, Error>,
) -> Result<bool, Error> {
    spend(COMPARE * list.len())?;
    for item in list.iter() {
        if wanted(&item?)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn maps(a: &Map<'_>, b: &Map<'_>) -> Result<bool, Error> {
    if a.len() != b.len() {
        return Ok(false);
    }
    spend(COMPARE * a.len())?;
    for (key, value) in a.entries() {
        // The key of one map may live shorter than the other map.
        let other = match &key {
            Value::String(text) => b.field(text.as_str()),
            Value::Int(number) => b.get(&Value::Int(*number)),
            Value::Uint(number) => b.get(&Value::Uint(*number)),
            Value::Bool(answer) => b.get(&Value::Bool(*answer)),
            _ => None,
        };
        let Some(other) = other else {
            return Ok(false);
        };
        if !equal(&value?, &other?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Which of two numbers comes first; `None` if one is no number, or not a number.
fn numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Int(a), Value::Double(b)) => whole_and_double((*a).into(), *b),
        (Value::Double(a), Value::Int(b)) => {
            whole_and_double((*b).into(), *a).map(Ordering::reverse)
        }
        (Value::Uint(a), Value::Double(b)) => whole_and_double((*a).into(), *b),
        (Value::Double(a), Value::Uint(b)) => {
            whole_and_double((*b).into(), *a).map(Ordering::reverse)
        }
        _ => None,
    }
}

fn whole_and_double(whole: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.abs() >= 1e20 {
        return Some(if double > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    // cel-go compares as doubles, where an int beyond 53 bits loses its last digits.
    (whole as f64).partial_cmp(&double)
}

/// Which of two values comes first; an error if they have no order.
pub(crate) fn compare(a: &Value<'_>, b: &Value<'_>) -> Result<Ordering, Error> {
    Ok(match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.as_str().cmp(b.as_str()),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        (Value::Double(x), _) | (_, Value::Double(x)) if x.is_nan() => {
            return Err(Error::new("NaN values cannot be ordered"));
        }
        (a, b) => numbers(a, b).ok_or_else(Error::no_such_overload)?,
    })
}
