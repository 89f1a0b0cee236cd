//! Functions of Kubernetes' named formats.

use super::operators::text;
use super::{Row, no_overload};
use crate::error::Error;
use crate::extension::{Extension, named_format};
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    (
        "validate",
        &[("format-validate", ".(kubernetes.NamedFormat, string) optional(list(string))")],
        validate,
    ),
    (
        "format.named",
        &[("format-named", "(string) optional(kubernetes.NamedFormat)")],
        format_named,
    ),
    ("format.dns1123Label", &[("format.dns1123Label", "() kubernetes.NamedFormat")], |_| {
        known("dns1123Label")
    }),
    (
        "format.dns1123Subdomain",
        &[("format.dns1123Subdomain", "() kubernetes.NamedFormat")],
        |_| known("dns1123Subdomain"),
    ),
    ("format.dns1035Label", &[("format.dns1035Label", "() kubernetes.NamedFormat")], |_| {
        known("dns1035Label")
    }),
    ("format.qualifiedName", &[("format.qualifiedName", "() kubernetes.NamedFormat")], |_| {
        known("qualifiedName")
    }),
    (
        "format.dns1123LabelPrefix",
        &[("format.dns1123LabelPrefix", "() kubernetes.NamedFormat")],
        |_| known("dns1123LabelPrefix"),
    ),
    (
        "format.dns1123SubdomainPrefix",
        &[("format.dns1123SubdomainPrefix", "() kubernetes.NamedFormat")],
        |_| known("dns1123SubdomainPrefix"),
    ),
    (
        "format.dns1035LabelPrefix",
        &[("format.dns1035LabelPrefix", "() kubernetes.NamedFormat")],
        |_| known("dns1035LabelPrefix"),
    ),
    ("format.labelValue", &[("format.labelValue", "() kubernetes.NamedFormat")], |_| {
        known("labelValue")
    }),
    ("format.uri", &[("format.uri", "() kubernetes.NamedFormat")], |_| known("uri")),
    ("format.uuid", &[("format.uuid", "() kubernetes.NamedFormat")], |_| known("uuid")),
    ("format.byte", &[("format.byte", "() kubernetes.NamedFormat")], |_| known("byte")),
    ("format.date", &[("format.date", "() kubernetes.NamedFormat")], |_| known("date")),
    ("format.datetime", &[("format.datetime", "() kubernetes.NamedFormat")], |_| known("datetime")),
];

fn known<'a>(name: &str) -> Result<Value<'a>, Error> {
    match named_format(name) {
        Some(format) => Ok(Value::Extension(Extension::Format(format))),
        None => no_overload(),
    }
}

fn format_named<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [name] = args else { return no_overload() };
    let format =
        named_format(text(name)?).map(|format| Value::Extension(Extension::Format(format)));
    Ok(format.map_or(Value::Optional(None), Value::some))
}

fn validate<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [Value::Extension(Extension::Format(format)), value] = args else { return no_overload() };
    let complaints = (format.complaints)(text(value)?);
    if complaints.is_empty() {
        return Ok(Value::Optional(None));
    }
    Ok(Value::some(Value::list(complaints.into_iter().map(Value::from).collect())))
}
