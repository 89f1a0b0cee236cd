//! What a schema says of numbers, computed as Kubernetes computes it: limits are floating point numbers
//! that lose their fraction where they are compared with whole ones.

use serde_json::{Number, Value};

use super::node::{Bound, Rules};
use super::way::Way;
use crate::field::{Errors, FieldError};
use crate::strconv::shown_float;

/// The largest whole number up to which floating point numbers have them all.
const WHOLE_MAX: f64 = 9_007_199_254_740_991.0;

/// Adds the mistakes in a number.
pub(super) fn check(
    rules: &Rules,
    types: &[&str],
    number: &Number,
    way: &Way<'_>,
    errors: &mut Errors,
) {
    let format = Format { name: rules.number, is_integer: types == ["integer"] };
    let given = Given::of(number);
    errors.extend(format.mistake("Checked", given, way));
    if let Some(factor) = rules.multiple_of {
        let odd = format.mistake("MultipleOf", Given::Float(factor), way);
        let given = if odd.is_some() { given.floating() } else { given };
        errors.extend(odd);
        multiple(given, factor, way, errors);
    }
    let limits = [
        (&rules.minimum, "Minimum boundary", Side::Least),
        (&rules.maximum, "Maximum boundary", Side::Most),
    ];
    for (bound, name, side) in limits {
        let Some((bound, limit)) = bound.as_ref().and_then(|it| Some((it, it.value.as_f64()?)))
        else {
            continue;
        };
        let odd = format.mistake(name, Given::Float(limit), way);
        let given = if odd.is_some() { given.floating() } else { given };
        errors.extend(odd);
        side.check(given, bound, limit, way, errors);
    }
}

/// Whether Kubernetes takes a floating point number for a whole one.
pub(super) fn is_whole(number: f64) -> bool {
    if number.abs() > WHOLE_MAX {
        return false;
    }
    let (whole, size) = (number.trunc(), number.abs());
    // What is hardly above a whole number is one; that is not so of negative ones.
    let is_close = || whole > 0.0 && (size - whole) / (size + whole) < 1e-9;
    number == whole || is_close()
}

/// A number as Go has it.
#[derive(Clone, Copy)]
enum Given {
    Whole(i64),
    Float(f64),
}

impl Given {
    fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(whole) => Self::Whole(whole),
            None => Self::Float(number.as_f64().unwrap_or(f64::MAX)),
        }
    }

    fn floating(self) -> Self {
        match self {
            Self::Whole(whole) => Self::Float(whole as f64),
            float @ Self::Float(_) => float,
        }
    }

    fn shown(self) -> String {
        match self {
            Self::Whole(whole) => whole.to_string(),
            Self::Float(float) => shown_float(float),
        }
    }
}

/// The format of a number.
struct Format {
    name: Option<&'static str>,
    is_integer: bool,
}

impl Format {
    /// What is wrong with a number, or a limit, that is not of this format.
    fn mistake(&self, what: &str, number: Given, way: &Way<'_>) -> Option<FieldError> {
        let fits = match (self.name, number) {
            (Some("int32"), Given::Whole(whole)) => i32::try_from(whole).is_ok(),
            (Some("int32"), Given::Float(float)) => is_in(float, 2_147_483_648.0),
            (_, Given::Float(float)) if self.is_integer => {
                is_in(float, 9_223_372_036_854_775_808.0)
            }
            (Some("float"), Given::Float(float)) => is_short(float),
            _ => true,
        };
        let format = match self.name {
            _ if fits => return None,
            Some(name) => format!("with format {name}"),
            None => "(default format)".to_owned(),
        };
        let kind = if self.is_integer { "integer" } else { "number" };
        let why = format!("{what} value must be of type {kind} {format} in {}", way.text());
        Some(FieldError::invalid("<nil>", &Value::from(""), &why))
    }
}

/// Whether a number is whole and has no more bits than those that begin with a size.
fn is_in(number: f64, size: f64) -> bool {
    number.fract() == 0.0 && -size <= number && number < size
}

/// Whether there is a number of 32 bits that is next to this one.
fn is_short(number: f64) -> bool {
    (number as f32).is_finite()
}

fn multiple(number: Given, factor: f64, way: &Way<'_>, errors: &mut Errors) {
    let (shown, is_positive, fits) = match number {
        Given::Whole(whole) => {
            let factor = factor as i64;
            (factor.to_string(), factor > 0, factor > 0 && whole % factor == 0)
        }
        Given::Float(float) => {
            // The inverse of a small factor is closer to a whole number.
            let times = if factor < 1.0 { 1.0 / factor * float } else { float / factor };
            (shown_float(factor), factor > 0.0, is_whole(times))
        }
    };
    let path = way.text();
    if !is_positive {
        let why = format!("factor MultipleOf declared for {path} must be positive: {shown}");
        errors.push(FieldError::invalid_shown(path, &shown, &why));
    } else if !fits {
        told(number, &format!("should be a multiple of {shown}"), way, errors);
    }
}

/// The side on which a limit stands.
#[derive(Clone, Copy)]
enum Side {
    Least,
    Most,
}

impl Side {
    fn check(self, number: Given, bound: &Bound, limit: f64, way: &Way<'_>, errors: &mut Errors) {
        let (is_beyond, is_equal, shown) = match number {
            Given::Whole(whole) => {
                let limit = limit as i64;
                (self.is_beyond(&whole, &limit), whole == limit, limit.to_string())
            }
            Given::Float(float) => {
                (self.is_beyond(&float, &limit), float == limit, shown_float(limit))
            }
        };
        if !(is_beyond || bound.exclusive && is_equal) {
            return;
        }
        let or_equal = if bound.exclusive { "" } else { " or equal to" };
        let than = match self {
            Self::Least => "greater than",
            Self::Most => "less than",
        };
        told(number, &format!("should be {than}{or_equal} {shown}"), way, errors);
    }

    fn is_beyond<T: PartialOrd>(self, number: &T, limit: &T) -> bool {
        match self {
            Self::Least => number < limit,
            Self::Most => number > limit,
        }
    }
}

fn told(number: Given, detail: &str, way: &Way<'_>, errors: &mut Errors) {
    let path = way.text();
    let detail = format!("{path} in body {detail}");
    errors.push(FieldError::invalid_shown(path, &number.shown(), &detail));
}
