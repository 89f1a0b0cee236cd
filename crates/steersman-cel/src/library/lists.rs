//! cel-go's extension for lists, and Kubernetes' own.

use std::cmp::Ordering;

use super::operators::{add, int, list};
use super::{Row, no_overload};
use crate::effort::{COPY, spend};
use crate::error::Error;
use crate::time::Duration;
use crate::value::{Value, compare, equal};

/// A row per type that has an order.
macro_rules! comparable {
    ($prefix:literal, $suffix:literal, $before:literal, $after:literal) => {
        &[
            (concat!($prefix, "int", $suffix), concat!($before, "int", $after)),
            (concat!($prefix, "uint", $suffix), concat!($before, "uint", $after)),
            (concat!($prefix, "double", $suffix), concat!($before, "double", $after)),
            (concat!($prefix, "bool", $suffix), concat!($before, "bool", $after)),
            (concat!($prefix, "duration", $suffix), concat!($before, "duration", $after)),
            (concat!($prefix, "timestamp", $suffix), concat!($before, "timestamp", $after)),
            (concat!($prefix, "string", $suffix), concat!($before, "string", $after)),
            (concat!($prefix, "bytes", $suffix), concat!($before, "bytes", $after)),
        ]
    };
}

pub(super) const ROWS: &[Row] = &[
    ("slice", &[("list_slice", ".(list(T), int, int) list(T)")], slice),
    (
        "flatten",
        &[
            ("list_flatten", ".(list(list(T))) list(T)"),
            ("list_flatten_int", ".(list(dyn), int) list(dyn)"),
        ],
        flatten,
    ),
    (
        "sort",
        &[
            ("list_int_sort", ".(list(int)) list(int)"),
            ("list_uint_sort", ".(list(uint)) list(uint)"),
            ("list_double_sort", ".(list(double)) list(double)"),
            ("list_bool_sort", ".(list(bool)) list(bool)"),
            ("list_google.protobuf.Duration_sort", ".(list(duration)) list(duration)"),
            ("list_google.protobuf.Timestamp_sort", ".(list(timestamp)) list(timestamp)"),
            ("list_string_sort", ".(list(string)) list(string)"),
            ("list_bytes_sort", ".(list(bytes)) list(bytes)"),
        ],
        sort,
    ),
    (
        "@sortByAssociatedKeys",
        comparable!("list_", "_sortByAssociatedKeys", ".(list(T), list(", ")) list(T)"),
        sort_by_keys,
    ),
    ("lists.range", &[("lists_range", "(int) list(int)")], range),
    ("reverse", &[("list_reverse", ".(list(T)) list(T)")], reverse),
    ("distinct", &[("list_distinct", ".(list(T)) list(T)")], distinct),
];

pub(super) const KUBERNETES: &[Row] = &[
    ("isSorted", comparable!("list_", "_is_sorted_bool", ".(list(", ")) bool"), is_sorted),
    (
        "sum",
        &[
            ("list_int_sum_int", ".(list(int)) int"),
            ("list_uint_sum_uint", ".(list(uint)) uint"),
            ("list_double_sum_double", ".(list(double)) double"),
            ("list_duration_sum_duration", ".(list(duration)) duration"),
        ],
        sum,
    ),
    ("max", MAX, max),
    ("min", MIN, min),
    ("indexOf", &[("list_a_index_of_int", ".(list(A), A) int")], index_of),
    ("lastIndexOf", &[("list_a_last_index_of_int", ".(list(A), A) int")], last_index_of),
];

/// The overloads of a pick from a list.
macro_rules! pick {
    ($name:ident, $word:literal) => {
        const $name: &[(&str, &str)] = &[
            (concat!("list_int_", $word, "_int"), ".(list(int)) int"),
            (concat!("list_uint_", $word, "_uint"), ".(list(uint)) uint"),
            (concat!("list_double_", $word, "_double"), ".(list(double)) double"),
            (concat!("list_bool_", $word, "_bool"), ".(list(bool)) bool"),
            (concat!("list_duration_", $word, "_duration"), ".(list(duration)) duration"),
            (concat!("list_timestamp_", $word, "_timestamp"), ".(list(timestamp)) timestamp"),
            (concat!("list_string_", $word, "_string"), ".(list(string)) string"),
            (concat!("list_bytes_", $word, "_bytes"), ".(list(bytes)) bytes"),
        ];
    };
}

pick!(MAX, "max");
pick!(MIN, "min");

fn slice<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items, start, end] = args else { return no_overload() };
    let (items, start, end) = (list(items)?, int(start)?, int(end)?);
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if start < 0 || end < 0 {
        let message = format!("cannot slice({start}, {end}), negative indexes not supported");
        return Err(Error::new(message));
    }
    if start > end {
        return Err(Error::new(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        )));
    }
    if length < end {
        return Err(Error::new(format!("cannot slice({start}, {end}), list is length {length}")));
    }
    let (start, end) = (usize::try_from(start).unwrap_or(0), usize::try_from(end).unwrap_or(0));
    let items = items.iter().skip(start).take(end - start).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::list(items))
}

fn flatten<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items, rest @ ..] = args else { return no_overload() };
    let depth = rest.first().map_or(Ok(1), int)?;
    if depth < 0 {
        return Err(Error::new("level must be non-negative"));
    }
    let mut flat = list(items)?.to_vec()?;
    // Level by level, so that depth is not the depth of the stack.
    for _ in 0..depth {
        if !flat.iter().any(|item| matches!(item, Value::List(_))) {
            break;
        }
        spend(COPY * flat.len())?;
        let mut next = Vec::with_capacity(flat.len());
        for item in flat {
            match item {
                Value::List(inner) => next.extend(inner.to_vec()?),
                other => next.push(other),
            }
        }
        flat = next;
    }
    Ok(Value::list(flat))
}

fn sort<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items] = args else { return no_overload() };
    let items = list(items)?.to_vec()?;
    let keys = items.clone();
    sorted(items, keys)
}

fn sort_by_keys<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items, keys] = args else { return no_overload() };
    sorted(list(items)?.to_vec()?, list(keys)?.to_vec()?)
}

fn sorted<'a>(items: Vec<Value<'a>>, keys: Vec<Value<'a>>) -> Result<Value<'a>, Error> {
    if items.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but \
             got {} and {} elements respectively",
            items.len(),
            keys.len()
        )));
    }
    let Some(first) = keys.first() else {
        return Ok(Value::list(items));
    };
    if matches!(first, Value::Null | Value::List(_) | Value::Map(_) | Value::Struct(_)) {
        return Err(Error::new("list elements must be comparable"));
    }
    if keys.iter().any(|key| std::mem::discriminant(key) != std::mem::discriminant(first)) {
        return Err(Error::new("list elements must have the same type"));
    }
    let mut pairs: Vec<(Value<'a>, Value<'a>)> = keys.into_iter().zip(items).collect();
    pairs.sort_by(|(a, _), (b, _)| compare(a, b).unwrap_or(Ordering::Equal));
    Ok(Value::list(pairs.into_iter().map(|(_, item)| item).collect()))
}

fn range<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [end] = args else { return no_overload() };
    let end = int(end)?;
    spend(COPY.saturating_mul(usize::try_from(end).unwrap_or(0)))?;
    Ok(Value::list((0..end).map(Value::Int).collect()))
}

fn reverse<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items] = args else { return no_overload() };
    let mut items = list(items)?.to_vec()?;
    items.reverse();
    Ok(Value::list(items))
}

fn distinct<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items] = args else { return no_overload() };
    let mut kept: Vec<Value<'a>> = Vec::new();
    'items: for item in list(items)?.iter() {
        let item = item?;
        for known in &kept {
            if equal(known, &item)? {
                continue 'items;
            }
        }
        kept.push(item);
    }
    Ok(Value::list(kept))
}

fn is_sorted<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items] = args else { return no_overload() };
    let items = list(items)?.to_vec()?;
    for pair in items.windows(2) {
        if compare(&pair[0], &pair[1])? == Ordering::Greater {
            return Ok(Value::Bool(false));
        }
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items] = args else { return no_overload() };
    let mut total: Option<Value<'a>> = None;
    for item in list(items)?.iter() {
        let item = item?;
        let start = match (&total, &item) {
            (Some(total), _) => total.clone(),
            (None, Value::Uint(_)) => Value::Uint(0),
            (None, Value::Double(_)) => Value::Double(0.0),
            (None, Value::Duration(_)) => Value::Duration(Duration { nanos: 0 }),
            (None, _) => Value::Int(0),
        };
        total = Some(add(&[start, item])?);
    }
    Ok(total.unwrap_or(Value::Int(0)))
}

fn max<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    picked(args, "max", Ordering::Less)
}

fn min<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    picked(args, "min", Ordering::Greater)
}

fn picked<'a>(args: &[Value<'a>], name: &str, worse: Ordering) -> Result<Value<'a>, Error> {
    let [items] = args else { return no_overload() };
    let mut best: Option<Value<'a>> = None;
    for item in list(items)?.iter() {
        let item = item?;
        let better = match &best {
            Some(best) => compare(best, &item)? == worse,
            None => true,
        };
        if better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn index_of<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items, wanted] = args else { return no_overload() };
    position(list(items)?.iter().enumerate(), wanted)
}

fn last_index_of<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [items, wanted] = args else { return no_overload() };
    let items: Vec<_> = list(items)?.iter().enumerate().collect();
    position(items.into_iter().rev(), wanted)
}

fn position<'a>(
    items: impl Iterator<Item = (usize, Result<Value<'a>, Error>)>,
    wanted: &Value<'a>,
) -> Result<Value<'a>, Error> {
    for (at, item) in items {
        if equal(&item?, wanted)? {
            return Ok(Value::Int(i64::try_from(at).unwrap_or(i64::MAX)));
        }
    }
    Ok(Value::Int(-1))
}
