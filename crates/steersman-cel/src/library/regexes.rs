//! What patterns find.

use super::operators::{int, text};
use super::{Row, no_overload};
use crate::error::Error;
use crate::pattern::{Pattern, compile};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("find", &[("string_find_string", ".(string, string) string")], find_text),
    (
        "findAll",
        &[
            ("string_find_all_string", ".(string, string) list(string)"),
            ("string_find_all_string_int", ".(string, string, int) list(string)"),
        ],
        find_all_text,
    ),
];

/// The first match, or nothing.
pub(crate) fn find<'a>(pattern: &Pattern, text: &str) -> Value<'a> {
    Value::from(pattern.find(text).map_or("", |found| found.as_str()))
}

/// Every match, or so many.
pub(crate) fn find_all<'a>(pattern: &Pattern, text: &str, limit: i64) -> Value<'a> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = pattern.find_iter(text).take(limit).map(|found| Value::from(found.as_str()));
    Value::list(found.collect())
}

fn legal(pattern: &str) -> Result<Pattern, Error> {
    compile(pattern).map_err(|why| Error::new(format!("Illegal regex: {why}")))
}

fn find_text<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value, pattern] = args else { return no_overload() };
    Ok(find(&legal(text(pattern)?)?, text(value)?))
}

fn find_all_text<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value, pattern, rest @ ..] = args else { return no_overload() };
    let limit = rest.first().map_or(Ok(-1), int)?;
    Ok(find_all(&legal(text(pattern)?)?, text(value)?, limit))
}
