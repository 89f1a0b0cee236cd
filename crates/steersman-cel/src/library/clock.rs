//! What calendars and clocks show of a timestamp, and the parts of a duration.

use super::{Row, no_overload};
use crate::error::Error;
use crate::time::{Civil, zone_offset};
use crate::value::Value;

/// The two overloads of a part of a timestamp.
macro_rules! part {
    ($id:literal) => {
        &[
            (concat!("timestamp_to_", $id), ".(timestamp) int"),
            (concat!("timestamp_to_", $id, "_with_tz"), ".(timestamp, string) int"),
        ]
    };
    ($id:literal, $duration:literal) => {
        &[
            (concat!("timestamp_to_", $id), ".(timestamp) int"),
            (concat!("timestamp_to_", $id, "_with_tz"), ".(timestamp, string) int"),
            ($duration, ".(duration) int"),
        ]
    };
}

pub(super) const ROWS: &[Row] = &[
    ("getFullYear", part!("year"), year),
    ("getMonth", part!("month"), month),
    ("getDayOfYear", part!("day_of_year"), day_of_year),
    ("getDayOfMonth", part!("day_of_month"), day_of_month),
    ("getDate", part!("day_of_month_1_based"), date),
    ("getDayOfWeek", part!("day_of_week"), day_of_week),
    ("getHours", part!("hours", "duration_to_hours"), hours),
    ("getMinutes", part!("minutes", "duration_to_minutes"), minutes),
    ("getSeconds", part!("seconds", "duration_to_seconds"), seconds),
    ("getMilliseconds", part!("milliseconds", "duration_to_milliseconds"), milliseconds),
];

fn shown<'a>(args: &[Value<'a>], part: impl Fn(Civil) -> i64) -> Result<Value<'a>, Error> {
    let (at, offset) = match args {
        [Value::Timestamp(at)] => (at, 0),
        [Value::Timestamp(at), Value::String(zone)] => {
            (at, zone_offset(zone.as_str(), *at).map_err(Error::new)?)
        }
        _ => return no_overload(),
    };
    Ok(Value::Int(part(at.civil(offset))))
}

fn year<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    shown(args, |civil| civil.year)
}

fn month<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    shown(args, |civil| i64::from(civil.month) - 1)
}

fn day_of_year<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    shown(args, |civil| civil.day_of_year.into())
}

fn day_of_month<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    shown(args, |civil| i64::from(civil.day) - 1)
}

fn date<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    shown(args, |civil| civil.day.into())
}

fn day_of_week<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    shown(args, |civil| civil.weekday.into())
}

fn hours<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Duration(span)] => Ok(Value::Int(span.nanos / 3_600_000_000_000)),
        _ => shown(args, |civil| civil.hour.into()),
    }
}

fn minutes<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Duration(span)] => Ok(Value::Int(span.nanos / 60_000_000_000)),
        _ => shown(args, |civil| civil.minute.into()),
    }
}

fn seconds<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Duration(span)] => Ok(Value::Int(span.nanos / 1_000_000_000)),
        _ => shown(args, |civil| civil.second.into()),
    }
}

fn milliseconds<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Duration(span)] => Ok(Value::Int(span.nanos / 1_000_000)),
        [Value::Timestamp(at), ..] => {
            let millis = i64::from(at.nanos / 1_000_000);
            shown(args, |_| millis)
        }
        _ => no_overload(),
    }
}
