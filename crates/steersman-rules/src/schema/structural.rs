//! Schemas of custom resources, read from `openAPIV3Schema`.
//!
//! Structural schemas are trees, so each becomes a tree of nodes; `metadata` is the built-in
//! `ObjectMeta`. What Kubernetes forbids in structural schemas is ignored here, not refused.

use std::borrow::Cow;

use serde_json::Value;

use super::builtin;
use super::format::Format;
use super::node::{
    Bound, Field, Junctors, List, ListKind, Node, Object, Range, Rules, Scalar, Shape, Text, Unset,
};
use super::normal::without_fractions;
use super::pattern::Pattern;

/// The root of a custom resource: the schema's fields plus apiVersion, kind and metadata.
pub(super) fn root(schema: &Value) -> Node {
    let mut root = node(schema);
    match &mut root.shape {
        Shape::Object(object) if object.embedded => {}
        Shape::Object(object) => add_type_meta(object),
        // Without properties a custom resource still has its metadata.
        _ => {
            let mut object = Object { open: is_open(schema), ..Object::default() };
            add_type_meta(&mut object);
            root.shape = Shape::Object(object);
        }
    }
    root
}

/// The shape that a schema gives to a value.
pub(crate) fn node(schema: &Value) -> Node {
    let shape = match schema["type"].as_str() {
        _ if is(schema, "x-kubernetes-int-or-string") => Shape::Scalar(Scalar::IntOrString),
        Some("object") => of_object(schema),
        Some("array") => Shape::List(Box::new(list(schema))),
        Some("string") => Shape::Scalar(Scalar::String),
        Some("integer") => Shape::Scalar(match schema["format"].as_str() {
            Some("int32") => Scalar::Int32,
            Some("int64") => Scalar::Int64,
            _ => Scalar::Integer,
        }),
        Some("number") => Shape::Scalar(Scalar::Number),
        Some("boolean") => Shape::Scalar(Scalar::Bool),
        _ => return of_any_type(schema),
    };
    let atomic = (schema["x-kubernetes-map-type"] == "atomic").then_some(true);
    Node { atomic, rules: Some(rules(schema).shared()), ..Node::new(shape) }
}

fn of_object(schema: &Value) -> Shape {
    match &schema["additionalProperties"] {
        values @ Value::Object(_) => Shape::Map(Box::new(node(values))),
        _ => Shape::Object(object(schema)),
    }
}

/// A value that may be of any type: of some it may be said what is in them.
fn of_any_type(schema: &Value) -> Node {
    let has = |name: &str| !schema[name].is_null();
    let shape = if has("properties") || has("additionalProperties") {
        of_object(schema)
    } else if has("items") {
        Shape::List(Box::new(list(schema)))
    } else {
        Shape::Any
    };
    let rules = Rules { typeless: !matches!(shape, Shape::Any), ..rules(schema) };
    Node { rules: Some(rules.shared()), ..Node::new(shape) }
}

fn object(schema: &Value) -> Object {
    let bare = schema["additionalProperties"].is_boolean();
    let embedded = is(schema, "x-kubernetes-embedded-resource");
    let mut object = Object { open: bare || is_open(schema), bare, embedded, ..Object::default() };
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        object.fields.push(field(name.clone(), node(schema)));
    }
    object.fields.sort_by(|a, b| a.name.cmp(&b.name));
    if embedded {
        add_type_meta(&mut object);
    }
    object
}

fn field(name: impl Into<Text>, node: Node) -> Field {
    let name = name.into();
    Field { name, node, required: false, default: None, value: false, unset: Unset::Absent }
}

/// Every object has these, whether its schema names them or not. Metadata is shaped as everywhere, and
/// held to what the schema says of it besides.
fn add_type_meta(object: &mut Object) {
    for name in ["apiVersion", "kind"] {
        if !object.fields.iter().any(|field| field.name == name) {
            object.fields.push(field(name, Node::new(Shape::Scalar(Scalar::String))));
        }
    }
    let mut metadata =
        builtin::named("meta.v1.ObjectMeta").unwrap_or_else(|| Node::new(Shape::Any));
    if let Some(at) = object.fields.iter().position(|field| field.name == "metadata") {
        let own = object.fields.swap_remove(at).node;
        let (default, nullable) = (own.default().cloned(), own.is_nullable());
        let own = Some(Box::new(own));
        metadata.rules = Some(Rules { default, nullable, own, ..Rules::default() }.shared());
    }
    object.fields.push(field("metadata", metadata));
    object.fields.sort_by(|a, b| a.name.cmp(&b.name));
}

fn list(schema: &Value) -> List {
    let kind = match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(texts(&schema["x-kubernetes-list-map-keys"])),
        _ => ListKind::Atomic,
    };
    let mut item = node(&schema["items"]);
    if is_open(schema) {
        open(&mut item);
    }
    List { item, kind }
}

/// Lets the unknown fields stay of what is in a list that lets them stay.
fn open(item: &mut Node) {
    match &mut item.shape {
        Shape::Object(object) => object.open = true,
        Shape::List(list) => open(&mut list.item),
        _ => {}
    }
}

fn rules(schema: &Value) -> Rules {
    let range =
        |min: &str, max: &str| Range { min: schema[min].as_u64(), max: schema[max].as_u64() };
    Rules {
        default: default_of(schema),
        nullable: is(schema, "nullable"),
        enumeration: schema["enum"].as_array().cloned().unwrap_or_default(),
        minimum: bound(schema, "minimum", "exclusiveMinimum"),
        maximum: bound(schema, "maximum", "exclusiveMaximum"),
        multiple_of: schema["multipleOf"].as_f64(),
        length: range("minLength", "maxLength"),
        items: range("minItems", "maxItems"),
        properties: range("minProperties", "maxProperties"),
        unique: is(schema, "uniqueItems"),
        required: texts(&schema["required"]),
        closed: schema["additionalProperties"] == false,
        pattern: schema["pattern"].as_str().filter(|text| !text.is_empty()).map(Pattern::new),
        format: format_of_text(schema),
        number: format_of_number(schema),
        own: None,
        junctors: junctors(schema).map(Box::new),
        typeless: false,
    }
}

/// The default of a schema, with its numbers as Go would have stored them.
fn default_of(schema: &Value) -> Option<Value> {
    let mut default = schema.get("default").filter(|default| !default.is_null()).cloned()?;
    without_fractions(&mut default);
    Some(default)
}

fn texts(list: &Value) -> Vec<Text> {
    let texts = list.as_array().into_iter().flatten().filter_map(Value::as_str);
    texts.map(|text| Cow::Owned(text.to_owned())).collect()
}

/// The format of a text. Of a number that may be a text, it is that of the text.
fn format_of_text(schema: &Value) -> Option<(String, Format)> {
    let is_text = matches!(schema["type"].as_str(), None | Some("" | "string"))
        || is(schema, "x-kubernetes-int-or-string");
    let name = schema["format"].as_str().filter(|_| is_text)?;
    Format::named(name).map(|format| (name.to_owned(), format))
}

fn format_of_number(schema: &Value) -> Option<&'static str> {
    let known: &[&'static str] = match schema["type"].as_str()? {
        _ if is(schema, "x-kubernetes-int-or-string") => return None,
        "integer" => &["int32", "int64"],
        "number" => &["float", "double"],
        _ => return None,
    };
    known.iter().find(|known| schema["format"] == **known).copied()
}

fn junctors(schema: &Value) -> Option<Junctors> {
    let of = |name: &str| -> Vec<Node> {
        schema[name].as_array().into_iter().flatten().map(node).collect()
    };
    let junctors = Junctors {
        all_of: of("allOf"),
        any_of: of("anyOf"),
        one_of: of("oneOf"),
        not: schema.get("not").filter(|not| not.is_object()).map(node),
    };
    let Junctors { all_of, any_of, one_of, not } = &junctors;
    let none = all_of.is_empty() && any_of.is_empty() && one_of.is_empty() && not.is_none();
    (!none).then_some(junctors)
}

fn bound(schema: &Value, limit: &str, exclusive: &str) -> Option<Bound> {
    let Value::Number(value) = &schema[limit] else { return None };
    Some(Bound { value: value.clone(), exclusive: is(schema, exclusive) })
}

/// Whether unknown fields stay.
fn is_open(schema: &Value) -> bool {
    is(schema, "x-kubernetes-preserve-unknown-fields")
}

fn is(schema: &Value, flag: &str) -> bool {
    schema[flag] == true
}
