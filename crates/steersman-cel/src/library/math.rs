//! cel-go's extension for numbers.

use std::cmp::Ordering;

use super::operators::list;
use super::{Row, no_overload};
use crate::error::Error;
use crate::value::{Value, compare};

/// The overloads of a pick among numbers.
macro_rules! pick {
    ($name:ident, $prefix:literal) => {
        const $name: &[(&str, &str)] = &[
            (concat!($prefix, "double"), "(double) double"),
            (concat!($prefix, "int"), "(int) int"),
            (concat!($prefix, "uint"), "(uint) uint"),
            (concat!($prefix, "double_double"), "(double, double) double"),
            (concat!($prefix, "int_int"), "(int, int) int"),
            (concat!($prefix, "uint_uint"), "(uint, uint) uint"),
            (concat!($prefix, "int_uint"), "(int, uint) dyn"),
            (concat!($prefix, "int_double"), "(int, double) dyn"),
            (concat!($prefix, "double_int"), "(double, int) dyn"),
            (concat!($prefix, "double_uint"), "(double, uint) dyn"),
            (concat!($prefix, "uint_int"), "(uint, int) dyn"),
            (concat!($prefix, "uint_double"), "(uint, double) dyn"),
            (concat!($prefix, "list_double"), "(list(double)) double"),
            (concat!($prefix, "list_int"), "(list(int)) int"),
            (concat!($prefix, "list_uint"), "(list(uint)) uint"),
        ];
    };
}

pick!(MIN, "math_@min_");
pick!(MAX, "math_@max_");

pub(super) const ROWS: &[Row] = &[
    ("math.@min", MIN, min),
    ("math.@max", MAX, max),
    ("math.ceil", &[("math_ceil_double", "(double) double")], ceil),
    ("math.floor", &[("math_floor_double", "(double) double")], floor),
    ("math.round", &[("math_round_double", "(double) double")], round),
    ("math.trunc", &[("math_trunc_double", "(double) double")], trunc),
    ("math.isInf", &[("math_isInf_double", "(double) bool")], is_inf),
    ("math.isNaN", &[("math_isNaN_double", "(double) bool")], is_nan),
    ("math.isFinite", &[("math_isFinite_double", "(double) bool")], is_finite),
    (
        "math.abs",
        &[
            ("math_abs_double", "(double) double"),
            ("math_abs_int", "(int) int"),
            ("math_abs_uint", "(uint) uint"),
        ],
        abs,
    ),
    (
        "math.sign",
        &[
            ("math_sign_double", "(double) double"),
            ("math_sign_int", "(int) int"),
            ("math_sign_uint", "(uint) uint"),
        ],
        sign,
    ),
    (
        "math.sqrt",
        &[
            ("math_sqrt_double", "(double) double"),
            ("math_sqrt_int", "(int) double"),
            ("math_sqrt_uint", "(uint) double"),
        ],
        sqrt,
    ),
    (
        "math.bitAnd",
        &[
            ("math_bitAnd_int_int", "(int, int) int"),
            ("math_bitAnd_uint_uint", "(uint, uint) uint"),
        ],
        bit_and,
    ),
    (
        "math.bitOr",
        &[("math_bitOr_int_int", "(int, int) int"), ("math_bitOr_uint_uint", "(uint, uint) uint")],
        bit_or,
    ),
    (
        "math.bitXor",
        &[
            ("math_bitXor_int_int", "(int, int) int"),
            ("math_bitXor_uint_uint", "(uint, uint) uint"),
        ],
        bit_xor,
    ),
    (
        "math.bitNot",
        &[("math_bitNot_int_int", "(int) int"), ("math_bitNot_uint_uint", "(uint) uint")],
        bit_not,
    ),
    (
        "math.bitShiftLeft",
        &[
            ("math_bitShiftLeft_int_int", "(int, int) int"),
            ("math_bitShiftLeft_uint_int", "(uint, int) uint"),
        ],
        shift_left,
    ),
    (
        "math.bitShiftRight",
        &[
            ("math_bitShiftRight_int_int", "(int, int) int"),
            ("math_bitShiftRight_uint_int", "(uint, int) uint"),
        ],
        shift_right,
    ),
];

fn numeric(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

fn picked<'a>(args: &[Value<'a>], name: &str, worse: Ordering) -> Result<Value<'a>, Error> {
    let items = match args {
        [items @ Value::List(_)] => list(items)?.to_vec()?,
        _ => args.to_vec(),
    };
    let mut best: Option<Value<'a>> = None;
    for item in items {
        if !numeric(&item) {
            return Err(Error::new(format!("no such overload: {name}")));
        }
        let better = match &best {
            Some(best) => compare(best, &item)? == worse,
            None => true,
        };
        if better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| Error::new(format!("{name}(list) argument must not be empty")))
}

fn min<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    picked(args, "math.@min", Ordering::Greater)
}

fn max<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    picked(args, "math.@max", Ordering::Less)
}

fn double<'a, T>(args: &[Value<'a>], made: impl Fn(f64) -> T) -> Result<T, Error> {
    match args {
        [Value::Double(number)] => Ok(made(*number)),
        _ => Err(Error::no_such_overload()),
    }
}

fn ceil<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    double(args, |number| Value::Double(number.ceil()))
}

fn floor<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    double(args, |number| Value::Double(number.floor()))
}

fn round<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    double(args, |number| Value::Double(number.round()))
}

fn trunc<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    double(args, |number| Value::Double(number.trunc()))
}

fn is_inf<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    double(args, |number| Value::Bool(number.is_infinite()))
}

fn is_nan<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    double(args, |number| Value::Bool(number.is_nan()))
}

fn is_finite<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    double(args, |number| Value::Bool(number.is_finite()))
}

fn abs<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Double(number)] => Ok(Value::Double(number.abs())),
        [Value::Int(number)] => {
            number.checked_abs().map(Value::Int).ok_or_else(|| Error::new("integer overflow"))
        }
        [Value::Uint(number)] => Ok(Value::Uint(*number)),
        _ => no_overload(),
    }
}

fn sign<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Double(number)] if number.is_nan() || *number == 0.0 => {
            Ok(Value::Double(if number.is_nan() { *number } else { 0.0 }))
        }
        [Value::Double(number)] => Ok(Value::Double(number.signum())),
        [Value::Int(number)] => Ok(Value::Int(number.signum())),
        [Value::Uint(number)] => Ok(Value::Uint((*number).min(1))),
        _ => no_overload(),
    }
}

fn sqrt<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Double(number)] => Ok(Value::Double(number.sqrt())),
        [Value::Int(number)] => Ok(Value::Double((*number as f64).sqrt())),
        [Value::Uint(number)] => Ok(Value::Double((*number as f64).sqrt())),
        _ => no_overload(),
    }
}

fn bit_and<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(a), Value::Int(b)] => Ok(Value::Int(a & b)),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a & b)),
        _ => no_overload(),
    }
}

fn bit_or<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(a), Value::Int(b)] => Ok(Value::Int(a | b)),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a | b)),
        _ => no_overload(),
    }
}

fn bit_xor<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(a), Value::Int(b)] => Ok(Value::Int(a ^ b)),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(a ^ b)),
        _ => no_overload(),
    }
}

fn bit_not<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(a)] => Ok(Value::Int(!a)),
        [Value::Uint(a)] => Ok(Value::Uint(!a)),
        _ => no_overload(),
    }
}

/// How far to shift; 64 and more empties the number.
fn distance(by: i64, name: &str) -> Result<u32, Error> {
    u32::try_from(by.min(64))
        .map_err(|_| Error::new(format!("math.{name}() negative offset: {by}")))
}

fn shift_left<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(a), Value::Int(by)] => {
            Ok(Value::Int(a.checked_shl(distance(*by, "bitShiftLeft")?).unwrap_or(0)))
        }
        [Value::Uint(a), Value::Int(by)] => {
            Ok(Value::Uint(a.checked_shl(distance(*by, "bitShiftLeft")?).unwrap_or(0)))
        }
        _ => no_overload(),
    }
}

fn shift_right<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Int(a), Value::Int(by)] => {
            let bits = a.cast_unsigned().checked_shr(distance(*by, "bitShiftRight")?).unwrap_or(0);
            Ok(Value::Int(bits.cast_signed()))
        }
        [Value::Uint(a), Value::Int(by)] => {
            Ok(Value::Uint(a.checked_shr(distance(*by, "bitShiftRight")?).unwrap_or(0)))
        }
        _ => no_overload(),
    }
}
