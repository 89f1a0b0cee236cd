//! cel-go's extension for lists as sets.

use super::operators::list;
use super::{Row, no_overload};
use crate::error::Error;
use crate::value::{List, Value};

pub(super) const ROWS: &[Row] = &[
    ("sets.contains", &[("list_sets_contains_list", "(list(T), list(T)) bool")], contains),
    ("sets.equivalent", &[("list_sets_equivalent_list", "(list(T), list(T)) bool")], equivalent),
    ("sets.intersects", &[("list_sets_intersects_list", "(list(T), list(T)) bool")], intersects),
];

fn all<'a>(of: &List<'a>, within: &List<'a>) -> Result<bool, Error> {
    for item in of.iter() {
        if !within.contains(&item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn contains<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [whole, part] => all(list(part)?, list(whole)?).map(Value::Bool),
        _ => no_overload(),
    }
}

fn equivalent<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [a, b] => Ok(Value::Bool(all(list(a)?, list(b)?)? && all(list(b)?, list(a)?)?)),
        _ => no_overload(),
    }
}

fn intersects<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [a, b] = args else { return no_overload() };
    let b = list(b)?;
    for item in list(a)?.iter() {
        if b.contains(&item?)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}
