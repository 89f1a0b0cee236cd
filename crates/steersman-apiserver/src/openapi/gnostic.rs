//! Version 2 documents as protobuf, in the messages of `openapi.v2` that Go clients read.
//!
//! Each message is a table from JSON names to field numbers. Writing a field twice means to
//! merge, so documents can be put together from parts here, too.

use serde_json::{Map, Value};

/// A message: its fields, and where it keeps what begins with `x-`.
struct Message {
    fields: &'static [(&'static str, u32, Kind)],
    extensions: u32,
}

/// How a JSON value is written.
enum Kind {
    Text,
    Bool,
    Double,
    Int,
    Texts,
    /// Any value, as YAML, of which JSON is a part.
    Yaml,
    Yamls,
    Is(&'static Message),
    /// A message for each item.
    Each(&'static Kind),
    /// A message with an entry of name and value for each key, at this number.
    Named(u32, &'static Kind),
    /// A message around a value, at this number.
    Within(u32, &'static Kind),
    /// A schema, or whether there may be any.
    SchemaOrBool,
    /// A type, or several.
    Type,
    /// A parameter, by where it is, or a reference to one.
    Parameter,
    /// A parameter that nothing refers to by itself.
    ParameterDefinition,
}

use Kind::{
    Bool, Double, Each, Int, Is, Named, Parameter, ParameterDefinition, SchemaOrBool, Text, Texts,
    Type, Within, Yaml, Yamls,
};

#[rustfmt::skip]
static DOCUMENT: Message = Message { extensions: 16, fields: &[
    ("swagger", 1, Text),
    ("info", 2, Is(&INFO)),
    ("paths", 8, Named(2, &Is(&PATH_ITEM))),
    ("definitions", 9, Named(1, &Is(&SCHEMA))),
    ("parameters", 10, Named(1, &ParameterDefinition)),
    ("security", 12, Each(&Named(1, &Within(1, &Texts)))),
    ("securityDefinitions", 13, Named(1, &Within(2, &Is(&API_KEY)))),
] };

#[rustfmt::skip]
static INFO: Message = Message { extensions: 7, fields: &[("title", 1, Text), ("version", 2, Text)] };

#[rustfmt::skip]
static API_KEY: Message = Message { extensions: 5, fields: &[
    ("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text),
] };

#[rustfmt::skip]
static PATH_ITEM: Message = Message { extensions: 10, fields: &[
    ("get", 2, Is(&OPERATION)), ("put", 3, Is(&OPERATION)), ("post", 4, Is(&OPERATION)),
    ("delete", 5, Is(&OPERATION)), ("patch", 8, Is(&OPERATION)),
    ("parameters", 9, Each(&Parameter)),
] };

#[rustfmt::skip]
static OPERATION: Message = Message { extensions: 13, fields: &[
    ("tags", 1, Texts), ("description", 3, Text), ("operationId", 5, Text),
    ("produces", 6, Texts), ("consumes", 7, Texts),
    ("parameters", 8, Each(&Parameter)),
    ("responses", 9, Named(1, &Within(1, &Is(&RESPONSE)))),
    ("schemes", 10, Texts),
] };

#[rustfmt::skip]
static RESPONSE: Message = Message { extensions: 5, fields: &[
    ("description", 1, Text), ("schema", 2, Within(1, &Is(&SCHEMA))),
] };

#[rustfmt::skip]
static BODY: Message = Message { extensions: 6, fields: &[
    ("description", 1, Text), ("name", 2, Text), ("in", 3, Text), ("required", 4, Bool),
    ("schema", 5, Is(&SCHEMA)),
] };

#[rustfmt::skip]
static QUERY: Message = Message { extensions: 23, fields: &[
    ("required", 1, Bool), ("in", 2, Text), ("description", 3, Text), ("name", 4, Text),
    ("type", 6, Text), ("format", 7, Text), ("uniqueItems", 20, Bool),
] };

#[rustfmt::skip]
static PATH: Message = Message { extensions: 22, fields: &[
    ("required", 1, Bool), ("in", 2, Text), ("description", 3, Text), ("name", 4, Text),
    ("type", 5, Text), ("format", 6, Text), ("uniqueItems", 19, Bool),
] };

#[rustfmt::skip]
static REFERENCE: Message = Message { extensions: 0, fields: &[("$ref", 1, Text)] };

#[rustfmt::skip]
static EXTERNAL_DOCS: Message = Message { extensions: 3, fields: &[
    ("description", 1, Text), ("url", 2, Text),
] };

#[rustfmt::skip]
static SCHEMA: Message = Message { extensions: 31, fields: &[
    ("$ref", 1, Text), ("format", 2, Text), ("title", 3, Text), ("description", 4, Text),
    ("default", 5, Yaml), ("multipleOf", 6, Double),
    ("maximum", 7, Double), ("exclusiveMaximum", 8, Bool),
    ("minimum", 9, Double), ("exclusiveMinimum", 10, Bool),
    ("maxLength", 11, Int), ("minLength", 12, Int), ("pattern", 13, Text),
    ("maxItems", 14, Int), ("minItems", 15, Int), ("uniqueItems", 16, Bool),
    ("maxProperties", 17, Int), ("minProperties", 18, Int),
    ("required", 19, Texts), ("enum", 20, Yamls),
    ("additionalProperties", 21, SchemaOrBool),
    ("type", 22, Type),
    ("items", 23, Within(1, &Is(&SCHEMA))),
    ("allOf", 24, Each(&Is(&SCHEMA))),
    ("properties", 25, Named(1, &Is(&SCHEMA))),
    ("externalDocs", 29, Is(&EXTERNAL_DOCS)),
    ("example", 30, Yaml),
] };

/// A document, or a part of one.
pub(super) fn encode(document: &Value) -> Vec<u8> {
    message(&DOCUMENT, document)
}

fn message(table: &Message, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in value.as_object().into_iter().flatten() {
        match table.fields.iter().find(|(known, ..)| known == name) {
            Some((_, number, kind)) => field(&mut out, *number, kind, value),
            None if name.starts_with("x-") => {
                let entry = [bytes(1, name.as_bytes()), bytes(2, &yaml(value))].concat();
                put(&mut out, table.extensions, &entry);
            }
            None => {}
        }
    }
    out
}

fn field(out: &mut Vec<u8>, number: u32, kind: &Kind, value: &Value) {
    match kind {
        Each(kind) => {
            for item in value.as_array().into_iter().flatten() {
                field(out, number, kind, item);
            }
        }
        Texts => {
            for text in value.as_array().into_iter().flatten().filter_map(Value::as_str) {
                put(out, number, text.as_bytes());
            }
        }
        Yamls => {
            value.as_array().into_iter().flatten().for_each(|item| put(out, number, &yaml(item)));
        }
        Bool => put_number(out, number, u64::from(value == &Value::Bool(true))),
        // A negative number is written as if it were a large one.
        Int => put_number(out, number, value.as_i64().unwrap_or_default().cast_unsigned()),
        Double => {
            put_varint(out, u64::from(number << 3 | 1));
            out.extend_from_slice(&value.as_f64().unwrap_or_default().to_le_bytes());
        }
        kind => put(out, number, &content(kind, value)),
    }
}

/// What is in a field that has a length.
fn content(kind: &Kind, value: &Value) -> Vec<u8> {
    match kind {
        Text => value.as_str().unwrap_or_default().as_bytes().to_vec(),
        Yaml => yaml(value),
        Is(table) => message(table, value),
        Within(number, kind) => {
            let mut out = Vec::new();
            field(&mut out, *number, kind, value);
            out
        }
        Named(number, kind) => {
            let mut out = Vec::new();
            for (name, value) in value.as_object().into_iter().flatten() {
                let mut entry = bytes(1, name.as_bytes());
                field(&mut entry, 2, kind, value);
                put(&mut out, *number, &entry);
            }
            out
        }
        SchemaOrBool if value.is_boolean() => content(const { &Within(2, &Bool) }, value),
        SchemaOrBool => content(const { &Within(1, &Is(&SCHEMA)) }, value),
        Type => match value {
            Value::Array(_) => content(const { &Within(1, &Texts) }, value),
            _ => content(const { &Within(1, &Text) }, value),
        },
        Parameter => match value.get("$ref") {
            Some(_) => content(const { &Within(2, &Is(&REFERENCE)) }, value),
            None => content(const { &Within(1, &ParameterDefinition) }, value),
        },
        ParameterDefinition => match value["in"].as_str() {
            Some("body") => content(const { &Within(1, &Is(&BODY)) }, value),
            Some("path") => content(const { &Within(2, &Within(4, &Is(&PATH))) }, value),
            _ => content(const { &Within(2, &Within(3, &Is(&QUERY))) }, value),
        },
        Texts | Yamls | Each(_) | Bool | Int | Double => Vec::new(),
    }
}

fn yaml(value: &Value) -> Vec<u8> {
    bytes(2, value.to_string().as_bytes())
}

fn bytes(number: u32, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(content.len() + 6);
    put(&mut out, number, content);
    out
}

fn put(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    put_varint(out, u64::from(number << 3 | 2));
    put_varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn put_number(out: &mut Vec<u8>, number: u32, value: u64) {
    put_varint(out, u64::from(number << 3));
    put_varint(out, value);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// One key and its value, as a value of its own.
pub(super) fn single(section: &str, name: &str, value: Value) -> Value {
    let inner = Map::from_iter([(name.to_owned(), value)]);
    Map::from_iter([(section.to_owned(), Value::Object(inner))]).into()
}
