//! Functions of semantic versions.

use std::cmp::Ordering;
use std::sync::Arc;

use super::operators::text;
use super::{Row, no_overload};
use crate::error::Error;
use crate::extension::{Extension, Version};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    (
        "semver",
        &[
            ("string_to_semver", "(string) kubernetes.Semver"),
            ("string_bool_to_semver", "(string, bool) kubernetes.Semver"),
        ],
        semver,
    ),
    (
        "isSemver",
        &[("is_semver_string", "(string) bool"), ("is_semver_string_bool", "(string, bool) bool")],
        is_semver,
    ),
    (
        "isGreaterThan",
        &[("semver_is_greater_than", ".(kubernetes.Semver, kubernetes.Semver) bool")],
        is_greater,
    ),
    (
        "isLessThan",
        &[("semver_is_less_than", ".(kubernetes.Semver, kubernetes.Semver) bool")],
        is_less,
    ),
    (
        "compareTo",
        &[("semver_compare_to", ".(kubernetes.Semver, kubernetes.Semver) int")],
        compare_to,
    ),
    ("major", &[("semver_major", ".(kubernetes.Semver) int")], |args| part(args, 0)),
    ("minor", &[("semver_minor", ".(kubernetes.Semver) int")], |args| part(args, 1)),
    ("patch", &[("semver_patch", ".(kubernetes.Semver) int")], |args| part(args, 2)),
];

fn read(args: &[Value<'_>]) -> Result<Result<Version, String>, Error> {
    match args {
        [value] | [value, Value::Bool(false)] => Ok(Version::parse(text(value)?)),
        [value, Value::Bool(true)] => Ok(Version::parse_leniently(text(value)?)),
        _ => Err(Error::no_such_overload()),
    }
}

fn semver<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let version = read(args)?.map_err(Error::new)?;
    Ok(Value::Extension(Extension::Semver(Arc::new(version))))
}

fn is_semver<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Ok(Value::Bool(read(args)?.is_ok()))
}

fn order(args: &[Value<'_>]) -> Result<Ordering, Error> {
    match args {
        [Value::Extension(Extension::Semver(a)), Value::Extension(Extension::Semver(b))] => {
            Ok(a.compare(b))
        }
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

fn part<'a>(args: &[Value<'a>], at: usize) -> Result<Value<'a>, Error> {
    match args {
        [Value::Extension(Extension::Semver(version))] => {
            Ok(Value::Int(i64::try_from(version.numbers[at]).unwrap_or(i64::MAX)))
        }
        _ => no_overload(),
    }
}
