//! The standard functions of text, lists and maps.

use super::operators::text;
use super::{Row, no_overload};
use crate::error::Error;
use crate::pattern::compile;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    (
        "size",
        &[
            ("size_bytes", "(bytes) int"),
            ("bytes_size", ".(bytes) int"),
            ("size_list", "(list(A)) int"),
            ("list_size", ".(list(A)) int"),
            ("size_map", "(map(A, B)) int"),
            ("map_size", ".(map(A, B)) int"),
            ("size_string", "(string) int"),
            ("string_size", ".(string) int"),
        ],
        size,
    ),
    ("contains", &[("contains_string", ".(string, string) bool")], contains),
    ("endsWith", &[("ends_with_string", ".(string, string) bool")], ends_with),
    ("startsWith", &[("starts_with_string", ".(string, string) bool")], starts_with),
    (
        "matches",
        &[("matches", "(string, string) bool"), ("matches_string", ".(string, string) bool")],
        matches,
    ),
];

fn size<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Extension(_)] => no_overload(),
        [value] => match value.size() {
            Some(size) => Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX))),
            None => no_overload(),
        },
        _ => no_overload(),
    }
}

fn contains<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [a, b] => Ok(Value::Bool(text(a)?.contains(text(b)?))),
        _ => no_overload(),
    }
}

fn starts_with<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [a, b] => Ok(Value::Bool(text(a)?.starts_with(text(b)?))),
        _ => no_overload(),
    }
}

fn ends_with<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [a, b] => Ok(Value::Bool(text(a)?.ends_with(text(b)?))),
        _ => no_overload(),
    }
}

fn matches<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [a, b] => {
            let pattern = compile(text(b)?).map_err(Error::new)?;
            Ok(Value::Bool(pattern.is_match(text(a)?)))
        }
        _ => no_overload(),
    }
}
