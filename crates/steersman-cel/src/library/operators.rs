//! Operators. `&&`, `||`, `?:`, indexing and equality are done by the evaluation itself; they stand
//! here for the checker.

use super::{Row, no_overload};
use crate::error::Error;
use crate::value::{List, Map, Text, Value, compare, equal};

pub(super) const ROWS: &[Row] = &[
    ("_?_:_", &[("conditional", "(bool, A, A) A")], unused),
    ("_&&_", &[("logical_and", "(bool, bool) bool")], unused),
    ("_||_", &[("logical_or", "(bool, bool) bool")], unused),
    ("!_", &[("logical_not", "(bool) bool")], not),
    ("@not_strictly_false", &[("not_strictly_false", "(bool) bool")], unused),
    ("_==_", &[("equals", "(A, A) bool")], equals),
    ("_!=_", &[("not_equals", "(A, A) bool")], not_equals),
    (
        "_+_",
        &[
            ("add_bytes", "(bytes, bytes) bytes"),
            ("add_double", "(double, double) double"),
            ("add_duration_duration", "(duration, duration) duration"),
            ("add_duration_timestamp", "(duration, timestamp) timestamp"),
            ("add_timestamp_duration", "(timestamp, duration) timestamp"),
            ("add_int64", "(int, int) int"),
            ("add_list", "(list(A), list(A)) list(A)"),
            ("add_string", "(string, string) string"),
            ("add_uint64", "(uint, uint) uint"),
        ],
        add,
    ),
    (
        "_/_",
        &[
            ("divide_double", "(double, double) double"),
            ("divide_int64", "(int, int) int"),
            ("divide_uint64", "(uint, uint) uint"),
        ],
        divide,
    ),
    ("_%_", &[("modulo_int64", "(int, int) int"), ("modulo_uint64", "(uint, uint) uint")], modulo),
    (
        "_*_",
        &[
            ("multiply_double", "(double, double) double"),
            ("multiply_int64", "(int, int) int"),
            ("multiply_uint64", "(uint, uint) uint"),
        ],
        multiply,
    ),
    ("-_", &[("negate_double", "(double) double"), ("negate_int64", "(int) int")], negate),
    (
        "_-_",
        &[
            ("subtract_double", "(double, double) double"),
            ("subtract_duration_duration", "(duration, duration) duration"),
            ("subtract_int64", "(int, int) int"),
            ("subtract_timestamp_duration", "(timestamp, duration) timestamp"),
            ("subtract_timestamp_timestamp", "(timestamp, timestamp) duration"),
            ("subtract_uint64", "(uint, uint) uint"),
        ],
        subtract,
    ),
    ("_<_", LESS, less),
    ("_<=_", LESS_EQUALS, less_equals),
    ("_>_", GREATER, greater),
    ("_>=_", GREATER_EQUALS, greater_equals),
    ("_[_]", &[("index_list", "(list(A), int) A"), ("index_map", "(map(A, B), A) B")], unused),
    ("@in", &[("in_list", "(A, list(A)) bool"), ("in_map", "(A, map(A, B)) bool")], contained),
];

/// The overloads of an order, by the start of their names.
macro_rules! order {
    ($name:ident, $prefix:literal) => {
        const $name: &[(&str, &str)] = &[
            (concat!($prefix, "_bool"), "(bool, bool) bool"),
            (concat!($prefix, "_int64"), "(int, int) bool"),
            (concat!($prefix, "_int64_double"), "(int, double) bool"),
            (concat!($prefix, "_int64_uint64"), "(int, uint) bool"),
            (concat!($prefix, "_uint64"), "(uint, uint) bool"),
            (concat!($prefix, "_uint64_double"), "(uint, double) bool"),
            (concat!($prefix, "_uint64_int64"), "(uint, int) bool"),
            (concat!($prefix, "_double"), "(double, double) bool"),
            (concat!($prefix, "_double_int64"), "(double, int) bool"),
            (concat!($prefix, "_double_uint64"), "(double, uint) bool"),
            (concat!($prefix, "_string"), "(string, string) bool"),
            (concat!($prefix, "_bytes"), "(bytes, bytes) bool"),
            (concat!($prefix, "_timestamp"), "(timestamp, timestamp) bool"),
            (concat!($prefix, "_duration"), "(duration, duration) bool"),
        ];
    };
}

order!(LESS, "less");
order!(LESS_EQUALS, "less_equals");
order!(GREATER, "greater");
order!(GREATER_EQUALS, "greater_equals");

fn unused<'a>(_: &[Value<'a>]) -> Result<Value<'a>, Error> {
    no_overload()
}

fn not<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Bool(answer)] => Ok(Value::Bool(!answer)),
        _ => no_overload(),
    }
}

fn equals<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [a, b] => equal(a, b).map(Value::Bool),
        _ => no_overload(),
    }
}

fn not_equals<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [a, b] => equal(a, b).map(|same| Value::Bool(!same)),
        _ => no_overload(),
    }
}

fn or_overflow<'a>(value: Option<Value<'a>>, message: &'static str) -> Result<Value<'a>, Error> {
    value.ok_or_else(|| Error::new(message))
}

const INT: &str = "integer overflow";
const UINT: &str = "unsigned integer overflow";
const DURATION: &str = "duration overflow";
const TIMESTAMP: &str = "timestamp overflow";

pub(super) fn add<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [a, b] = args else { return no_overload() };
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => or_overflow(a.checked_add(*b).map(Value::Int), INT),
        (Value::Uint(a), Value::Uint(b)) => or_overflow(a.checked_add(*b).map(Value::Uint), UINT),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => Ok(Value::text([a.as_str(), b.as_str()].concat())),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes([&a[..], &b[..]].concat().into())),
        (Value::List(a), Value::List(b)) => a.plus(b).map(Value::List),
        (Value::Duration(a), Value::Duration(b)) => {
            let sum = a.nanos.checked_add(b.nanos);
            or_overflow(sum.map(|nanos| Value::Duration(crate::time::Duration { nanos })), DURATION)
        }
        (Value::Timestamp(at), Value::Duration(span))
        | (Value::Duration(span), Value::Timestamp(at)) => {
            or_overflow(at.plus(*span).map(Value::Timestamp), TIMESTAMP)
        }
        _ => no_overload(),
    }
}

fn subtract<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [a, b] = args else { return no_overload() };
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => or_overflow(a.checked_sub(*b).map(Value::Int), INT),
        (Value::Uint(a), Value::Uint(b)) => or_overflow(a.checked_sub(*b).map(Value::Uint), UINT),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => {
            let rest = a.nanos.checked_sub(b.nanos);
            or_overflow(
                rest.map(|nanos| Value::Duration(crate::time::Duration { nanos })),
                DURATION,
            )
        }
        (Value::Timestamp(at), Value::Duration(span)) => {
            or_overflow(at.minus(*span).map(Value::Timestamp), TIMESTAMP)
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            or_overflow(a.since(*b).map(Value::Duration), DURATION)
        }
        _ => no_overload(),
    }
}

fn multiply<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(a), Value::Int(b)] => or_overflow(a.checked_mul(*b).map(Value::Int), INT),
        [Value::Uint(a), Value::Uint(b)] => or_overflow(a.checked_mul(*b).map(Value::Uint), UINT),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => no_overload(),
    }
}

fn divide<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Error::new("division by zero"))
        }
        [Value::Int(a), Value::Int(b)] => or_overflow(a.checked_div(*b).map(Value::Int), INT),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a / b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => no_overload(),
    }
}

fn modulo<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            Err(Error::new("modulus by zero"))
        }
        [Value::Int(a), Value::Int(b)] => or_overflow(a.checked_rem(*b).map(Value::Int), INT),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a % b)),
        _ => no_overload(),
    }
}

fn negate<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(a)] => or_overflow(a.checked_neg().map(Value::Int), INT),
        [Value::Double(a)] => Ok(Value::Double(-a)),
        _ => no_overload(),
    }
}

fn ordered<'a>(
    args: &[Value<'a>],
    holds: impl Fn(std::cmp::Ordering) -> bool,
) -> Result<Value<'a>, Error> {
    match args {
        [a, b] => compare(a, b).map(|order| Value::Bool(holds(order))),
        _ => no_overload(),
    }
}

fn less<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    ordered(args, std::cmp::Ordering::is_lt)
}

fn less_equals<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    ordered(args, std::cmp::Ordering::is_le)
}

fn greater<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    ordered(args, std::cmp::Ordering::is_gt)
}

fn greater_equals<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    ordered(args, std::cmp::Ordering::is_ge)
}

fn contained<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value, Value::List(list)] => list.contains(value).map(Value::Bool),
        [key, Value::Map(map)] => Ok(Value::Bool(map.contains(key))),
        _ => no_overload(),
    }
}

/// Text as its own value: what functions take that work on text.
pub(super) fn text<'v, 'a>(value: &'v Value<'a>) -> Result<&'v str, Error> {
    match value {
        Value::String(Text::Borrowed(text)) => Ok(text),
        Value::String(Text::Shared(text)) => Ok(text),
        _ => Err(Error::no_such_overload()),
    }
}

pub(super) fn int(value: &Value<'_>) -> Result<i64, Error> {
    value.as_int().ok_or_else(Error::no_such_overload)
}

pub(super) fn list<'v, 'a>(value: &'v Value<'a>) -> Result<&'v List<'a>, Error> {
    match value {
        Value::List(list) => Ok(list),
        _ => Err(Error::no_such_overload()),
    }
}

pub(super) fn map<'v, 'a>(value: &'v Value<'a>) -> Result<&'v Map<'a>, Error> {
    match value {
        Value::Map(map) => Ok(map),
        _ => Err(Error::no_such_overload()),
    }
}
