//! Base64, and keys of JSON pointers.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::operators::text;
use super::{Row, no_overload};
use crate::error::Error;
use crate::value::Value;

pub(super) const ROWS: &[Row] = &[
    ("base64.decode", &[("base64_decode_string", "(string) bytes")], decode),
    ("base64.encode", &[("base64_encode_bytes", "(bytes) string")], encode),
];

pub(super) const JSON_PATCH: &[Row] = &[(
    "jsonpatch.escapeKey",
    &[("string_jsonpatch_escapeKey_string", "(string) string")],
    escape_key,
)];

fn decode<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let [value] = args else { return no_overload() };
    let value = text(value)?;
    let decoded = STANDARD.decode(value).or_else(|_| STANDARD_NO_PAD.decode(value));
    decoded.map(|bytes| Value::Bytes(bytes.into())).map_err(|_| Error::new("illegal base64 data"))
}

fn encode<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [Value::Bytes(bytes)] => Ok(Value::text(STANDARD.encode(bytes))),
        _ => no_overload(),
    }
}

fn escape_key<'a>(args: &[Value<'a>]) -> Result<Value<'a>, Error> {
    match args {
        [value] => Ok(Value::text(text(value)?.replace('~', "~0").replace('/', "~1"))),
        _ => no_overload(),
    }
}
