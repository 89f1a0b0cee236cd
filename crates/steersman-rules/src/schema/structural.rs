//! Schemas of custom resources, read from `openAPIV3Schema`.
//!
//! Structural schemas are trees, so each becomes a tree of nodes; `metadata` is the built-in
//! `ObjectMeta`. What Kubernetes forbids in structural schemas is ignored here, not refused.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::builtin;
use super::format::Format;
use super::node::{
    Bound, Field, Junctors, List, ListKind, Node, Object, Range, Rules, Scalar, Shape, Text, Unset,
};
use super::pattern::Pattern;

/// The root of a custom resource: the schema's fields plus apiVersion, kind and metadata.
pub(super) fn root(schema: &Value) -> Node {
    let mut root = node(schema);
    match &mut root.shape {
        Shape::Object(object) => add_type_meta(object),
        // Without properties a custom resource still has its metadata.
        _ => {
            let mut object = Object {
                open: is(schema, "x-kubernetes-preserve-unknown-fields"),
                ..Object::default()
            };
            add_type_meta(&mut object);
            root.shape = Shape::Object(object);
        }
    }
    root
}

/// The shape that a schema gives to a value.
pub(crate) fn node(schema: &Value) -> Node {
    let open = is(schema, "x-kubernetes-preserve-unknown-fields");
    let embedded = is(schema, "x-kubernetes-embedded-resource");
    let shape = match schema["type"].as_str() {
        _ if is(schema, "x-kubernetes-int-or-string") => Shape::Scalar(Scalar::IntOrString),
        Some("object") => match schema["additionalProperties"] {
            Value::Object(_) => Shape::Map(Box::new(node(&schema["additionalProperties"]))),
            Value::Bool(true) => Shape::Map(Box::new(Node::new(Shape::Any))),
            _ => Shape::Object(object(schema, open, embedded)),
        },
        Some("array") => Shape::List(Box::new(list(schema))),
        Some("string") => Shape::Scalar(Scalar::String),
        Some("integer") => Shape::Scalar(match schema["format"].as_str() {
            Some("int32") => Scalar::Int32,
            Some("int64") => Scalar::Int64,
            _ => Scalar::Integer,
        }),
        Some("number") => Shape::Scalar(Scalar::Number),
        Some("boolean") => Shape::Scalar(Scalar::Bool),
        _ => Shape::Any,
    };
    let atomic = (schema["x-kubernetes-map-type"] == "atomic").then_some(true);
    Node { atomic, rules: Some(rules(schema).shared()), ..Node::new(shape) }
}

fn object(schema: &Value, open: bool, embedded: bool) -> Object {
    let required = schema["required"].as_array().into_iter().flatten();
    let mut required: BTreeSet<&str> = required.filter_map(Value::as_str).collect();
    let mut object = Object { open, embedded, ..Object::default() };
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        let required = required.remove(name.as_str());
        object.fields.push(field(name.clone(), node(schema), required));
    }
    // Required fields without properties still have to exist.
    for name in required {
        let any = Node { rules: Some(Rules::default().shared()), ..Node::new(Shape::Any) };
        object.fields.push(field(name.to_owned(), any, true));
    }
    object.fields.sort_by(|a, b| a.name.cmp(&b.name));
    if embedded {
        add_type_meta(&mut object);
    }
    object
}

fn field(name: impl Into<Text>, node: Node, required: bool) -> Field {
    Field { name: name.into(), node, required, default: None, value: false, unset: Unset::Absent }
}

/// Every object has these, whether its schema names them or not.
fn add_type_meta(object: &mut Object) {
    let metadata = builtin::named("meta.v1.ObjectMeta").unwrap_or_else(|| Node::new(Shape::Any));
    object.fields.retain(|f| !["apiVersion", "kind", "metadata"].contains(&f.name.as_ref()));
    let string = || Node::new(Shape::Scalar(Scalar::String));
    object.fields.push(field("apiVersion", string(), false));
    object.fields.push(field("kind", string(), false));
    object.fields.push(field("metadata", metadata, false));
    object.fields.sort_by(|a, b| a.name.cmp(&b.name));
}

fn list(schema: &Value) -> List {
    let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
    let kind = match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(
            keys.filter_map(Value::as_str).map(|k| Cow::Owned(k.to_owned())).collect(),
        ),
        _ => ListKind::Atomic,
    };
    List { item: node(&schema["items"]), kind }
}

fn rules(schema: &Value) -> Rules {
    let range =
        |min: &str, max: &str| Range { min: schema[min].as_u64(), max: schema[max].as_u64() };
    Rules {
        default: schema.get("default").filter(|default| !default.is_null()).cloned(),
        nullable: is(schema, "nullable"),
        enumeration: schema["enum"].as_array().cloned().unwrap_or_default(),
        minimum: bound(schema, "minimum", "exclusiveMinimum"),
        maximum: bound(schema, "maximum", "exclusiveMaximum"),
        multiple_of: schema["multipleOf"].as_f64(),
        length: range("minLength", "maxLength"),
        items: range("minItems", "maxItems"),
        properties: range("minProperties", "maxProperties"),
        unique: is(schema, "uniqueItems"),
        pattern: schema["pattern"].as_str().filter(|text| !text.is_empty()).map(Pattern::new),
        format: schema["format"].as_str().and_then(|name| {
            let text = matches!(schema["type"].as_str(), None | Some("string"));
            Format::named(name).filter(|_| text).map(|format| (name.to_owned(), format))
        }),
        junctors: junctors(schema).map(Box::new),
        typeless: false,
    }
}

fn junctors(schema: &Value) -> Option<Junctors> {
    let of = |name: &str| -> Vec<Node> {
        schema[name].as_array().into_iter().flatten().map(condition).collect()
    };
    let junctors = Junctors {
        all_of: of("allOf"),
        any_of: of("anyOf"),
        one_of: of("oneOf"),
        not: schema.get("not").filter(|not| not.is_object()).map(condition),
    };
    let Junctors { all_of, any_of, one_of, not } = &junctors;
    let none = all_of.is_empty() && any_of.is_empty() && one_of.is_empty() && not.is_none();
    (!none).then_some(junctors)
}

/// A schema that only says what must hold of a value whose type another schema gives.
fn condition(schema: &Value) -> Node {
    let mut node = node(schema);
    if !schema["type"].is_string() && !is(schema, "x-kubernetes-int-or-string") {
        let has = |name: &str| schema.get(name).is_some_and(|value| !value.is_null());
        if has("properties") || has("required") {
            node.shape = Shape::Object(conditions_of_fields(schema));
        } else if has("additionalProperties") {
            node.shape = Shape::Map(Box::new(condition(&schema["additionalProperties"])));
        } else if has("items") {
            let list = List { item: condition(&schema["items"]), kind: ListKind::Atomic };
            node.shape = Shape::List(Box::new(list));
        }
        node.rules = Some(Rules { typeless: true, ..rules(schema) }.shared());
    }
    node
}

fn conditions_of_fields(schema: &Value) -> Object {
    let mut object = object(schema, true, false);
    for field in &mut object.fields {
        if let Some(schema) = schema["properties"].get(field.name.as_ref()) {
            field.node = condition(schema);
        }
    }
    object
}

fn bound(schema: &Value, limit: &str, exclusive: &str) -> Option<Bound> {
    let Value::Number(value) = &schema[limit] else { return None };
    Some(Bound { value: value.clone(), exclusive: is(schema, exclusive) })
}

fn is(schema: &Value, flag: &str) -> bool {
    schema[flag] == true
}
