//! Kubernetes' quantities.

use std::cmp::Ordering;
use std::sync::Arc;

use steersman_values::Quantity;

use super::operators::text;
use super::{Row, no_overload};
use crate::error::Error;
use crate::extension::Extension;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("quantity", &[("string_to_quantity", "(string) kubernetes.Quantity")], quantity),
    ("isQuantity", &[("is_quantity_string", "(string) bool")], is_quantity),
    ("sign", &[("quantity_sign", "(kubernetes.Quantity) int")], sign),
    (
        "isGreaterThan",
        &[("quantity_is_greater_than", ".(kubernetes.Quantity, kubernetes.Quantity) bool")],
        is_greater,
    ),
    (
        "isLessThan",
        &[("quantity_is_less_than", ".(kubernetes.Quantity, kubernetes.Quantity) bool")],
        is_less,
    ),
    (
        "compareTo",
        &[("quantity_compare_to", ".(kubernetes.Quantity, kubernetes.Quantity) int")],
        compare_to,
    ),
    ("asApproximateFloat", &[("quantity_get_float", ".(kubernetes.Quantity) double")], as_float),
    ("asInteger", &[("quantity_get_int", ".(kubernetes.Quantity) int")], as_integer),
    ("isInteger", &[("quantity_is_integer", ".(kubernetes.Quantity) bool")], is_integer),
    (
        "add",
        &[
            ("quantity_add", ".(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity"),
            ("quantity_add_int", ".(kubernetes.Quantity, int) kubernetes.Quantity"),
        ],
        add,
    ),
    (
        "sub",
        &[
            ("quantity_sub", ".(kubernetes.Quantity, kubernetes.Quantity) kubernetes.Quantity"),
            ("quantity_sub_int", ".(kubernetes.Quantity, int) kubernetes.Quantity"),
        ],
        sub,
    ),
];

fn of<'a>(quantity: Quantity) -> Value<'a> {
    Value::Extension(Extension::Quantity(Arc::new(quantity)))
}

fn amount(value: &Value<'_>) -> Result<Quantity, Error> {
    match value {
        Value::Extension(Extension::Quantity(quantity)) => Ok(**quantity),
        _ => Err(Error::no_such_overload()),
    }
}

fn quantity<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => {
            Quantity::parse(text(value)?).map(of).map_err(|error| Error::new(error.to_string()))
        }
        _ => no_overload(),
    }
}

fn is_quantity<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::Bool(Quantity::parse(text(value)?).is_ok())),
        _ => no_overload(),
    }
}

fn sign<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value] = args else { return no_overload() };
    let value = amount(value)?;
    Ok(Value::Int(i64::from(value.is_positive()) - i64::from(value.is_negative())))
}

fn order(args: &[Value<'_>]) -> Result<Ordering, Error> {
    match args {
        [a, b] => Ok(amount(a)?.cmp(&amount(b)?)),
        _ => Err(Error::no_such_overload()),
    }
}

fn is_greater<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    order(args).map(|order| Value::Bool(order.is_gt()))
}

fn is_less<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    order(args).map(|order| Value::Bool(order.is_lt()))
}

fn compare_to<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    order(args).map(|order| Value::Int(order as i64))
}

fn as_float<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value] = args else { return no_overload() };
    // Whole units and what is left of them in thousandths of a millionth.
    let text = amount(value)?.to_string();
    Ok(Value::Double(approximate(&text)))
}

/// The amount of a canonical quantity.
fn approximate(text: &str) -> f64 {
    let end =
        text.find(|c: char| !c.is_ascii_digit() && c != '-' && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let number: f64 = number.parse().unwrap_or(f64::NAN);
    let binary = |power: i32| 1024_f64.powi(power);
    let factor = match suffix {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => 10_f64.powi(exponent.trim_start_matches(['e', 'E']).parse().unwrap_or(0)),
    };
    number * factor
}

/// The whole number that it is, if an `int` holds it.
fn integer(value: Quantity) -> Option<i64> {
    let number = value.value();
    let fits = value.is_integer() && number != i64::MAX && number != i64::MIN;
    fits.then_some(number)
}

fn as_integer<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value] = args else { return no_overload() };
    integer(amount(value)?)
        .map(Value::Int)
        .ok_or_else(|| Error::new("cannot convert value to integer"))
}

fn is_integer<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::Bool(integer(amount(value)?).is_some())),
        _ => no_overload(),
    }
}

/// The second side of a sum: a quantity or an integer.
fn other(value: &Value<'_>) -> Result<Quantity, Error> {
    match value {
        Value::Int(number) => {
            Quantity::parse(&number.to_string()).map_err(|error| Error::new(error.to_string()))
        }
        value => amount(value),
    }
}

const TOO_LONG: &str = "a quantity of more than 38 digits";

fn add<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [a, b] = args else { return no_overload() };
    amount(a)?.checked_add(other(b)?).map(of).ok_or_else(|| Error::new(TOO_LONG))
}

fn sub<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [a, b] = args else { return no_overload() };
    amount(a)?.checked_sub(other(b)?).map(of).ok_or_else(|| Error::new(TOO_LONG))
}
