//! Values that may be absent, and what comprehensions build maps with.

use std::sync::Arc;

use super::operators::{list, map};
use super::{Row, no_overload};
use crate::error::Error;
use crate::value::{Map, Value};

pub(super) const ROWS: &[Row] = &[
    ("optional.of", &[("optional_of", "(V) optional(V)")], of),
    ("optional.ofNonZeroValue", &[("optional_ofNonZeroValue", "(V) optional(V)")], of_non_zero),
    ("optional.none", &[("optional_none", "() optional(V)")], none),
    ("value", &[("optional_value", ".(optional(V)) V")], value),
    ("hasValue", &[("optional_hasValue", ".(optional(V)) bool")], has_value),
    ("or", &[("optional_or_optional", ".(optional(V), optional(V)) optional(V)")], or),
    ("orValue", &[("optional_orValue_value", ".(optional(V), V) V")], or_value),
    ("_?._", &[("select_optional_field", "(dyn, string) optional(V)")], unused),
    (
        "_[?_]",
        &[
            ("list_optindex_optional_int", "(list(V), int) optional(V)"),
            ("optional_list_optindex_optional_int", "(optional(list(V)), int) optional(V)"),
            ("map_optindex_optional_value", "(map(K, V), K) optional(V)"),
            ("optional_map_optindex_optional_value", "(optional(map(K, V)), K) optional(V)"),
        ],
        unused,
    ),
    (
        "_[_]",
        &[
            ("optional_list_index_int", "(optional(list(V)), int) optional(V)"),
            ("optional_map_index_value", "(optional(map(K, V)), K) optional(V)"),
        ],
        unused,
    ),
    ("last", &[("list_last", ".(list(V)) optional(V)")], last),
    ("first", &[("list_first", ".(list(V)) optional(V)")], first),
    ("optional.unwrap", &[("optional_unwrap", "(list(optional(V))) list(V)")], unwrap),
    ("unwrapOpt", &[("optional_unwrapOpt", ".(list(optional(V))) list(V)")], unwrap),
];

pub(super) const MAP_INSERT: &[Row] = &[(
    "cel.@mapInsert",
    &[
        ("@mapInsert_map_key_value", "(map(K, V), K, V) map(K, V)"),
        ("@mapInsert_map_map", "(map(K, V), map(K, V)) map(K, V)"),
    ],
    insert,
)];

fn unused<'a>(_: &[Value<'a>]) -> Result<Value<'a>, Error> {
    no_overload()
}

fn of<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::some(value.clone())),
        _ => no_overload(),
    }
}

fn of_non_zero<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] if value.is_zero() => Ok(Value::Optional(None)),
        [value] => Ok(Value::some(value.clone())),
        _ => no_overload(),
    }
}

fn none<'a>(_: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Optional(None))
}

fn value<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Optional(Some(value))] => Ok((**value).clone()),
        [Value::Optional(None)] => Err(Error::new("optional.none() dereference")),
        _ => no_overload(),
    }
}

fn has_value<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => no_overload(),
    }
}

fn or<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Optional(None), other @ Value::Optional(_)] => Ok(other.clone()),
        [value @ Value::Optional(Some(_)), _] => Ok(value.clone()),
        _ => no_overload(),
    }
}

fn or_value<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Optional(None), other] => Ok(other.clone()),
        [Value::Optional(Some(value)), _] => Ok((**value).clone()),
        _ => no_overload(),
    }
}

fn first<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items] = args else { return no_overload() };
    list(items)?.get(0).transpose().map(|value| Value::Optional(value.map(Arc::new)))
}

fn last<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items] = args else { return no_overload() };
    let items = list(items)?;
    let value = items.len().checked_sub(1).and_then(|at| items.get(at)).transpose();
    value.map(|value| Value::Optional(value.map(Arc::new)))
}

fn unwrap<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items] = args else { return no_overload() };
    let mut out = Vec::new();
    for item in list(items)?.iter() {
        match item? {
            Value::Optional(Some(value)) => out.push((*value).clone()),
            Value::Optional(None) => {}
            other => return Err(Error::new(format!("value {other} is not optional"))),
        }
    }
    Ok(Value::list(out))
}

fn insert<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let (into, added) = match args {
        [into, key, value] => (map(into)?, vec![(key.clone(), Ok(value.clone()))]),
        [into, other] => (map(into)?, map(other)?.entries().collect()),
        _ => return no_overload(),
    };
    let mut entries = Vec::new();
    for (key, value) in into.entries() {
        entries.push((key, value?));
    }
    for (key, value) in added {
        if into.contains(&key) {
            return Err(Error::new(format!("insert failed: key {key} already exists")));
        }
        entries.push((key, value?));
    }
    Map::new(entries).map(Value::Map)
}
