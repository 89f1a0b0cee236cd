//! Type mistakes in objects of built-in kinds, worded as Kubernetes' JSON decoder words them.
//!
//! Go names the struct that holds the field and the path from the root without list indexes:
//! `json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32`.

use serde_json::{Map, Value};

use super::builtin;
use super::node::{Node, Object, Scalar, Shape};
use super::time::{self, Layout};
use crate::go_base64;
use crate::quantity::{ParseQuantityError, Quantity};

/// Where in a document the decoder is: in a field, at the end of a chain of fields. What Go calls
/// all that is only looked up for a mistake.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    /// The field around; `None` at the root.
    above: Option<&'a Place<'a>>,
    /// The struct that holds the field, by its place in the table of types.
    owner: Option<usize>,
    /// The name of that struct.
    holder: &'a str,
    field: &'a str,
    /// How many lists and maps lie between the field and the value.
    depth: usize,
    /// Where Go says that it is, in what is read with a decoder of its own: at the part.
    part: Option<&'a Place<'a>>,
}

/// Adds the mistakes in a value and below it.
pub(super) fn check(
    node: &Node,
    value: &Value,
    place: Option<&Place<'_>>,
    errors: &mut Vec<String>,
) {
    // The decoder takes null for "not set", whatever the type.
    if value.is_null() {
        return;
    }
    match (&node.shape, value) {
        (Shape::Scalar(Scalar::Bytes), Value::Array(bytes)) => {
            errors.extend(bytes.iter().filter_map(|byte| byte_error(byte, place)));
        }
        (Shape::Scalar(scalar), _) => errors.extend(scalar_error(*scalar, value, place)),
        (Shape::Any | Shape::Raw, _) => {}
        (Shape::Part(_), Value::Object(map)) => {
            let inside = place.map(|place| Place { part: place.part.or(Some(place)), ..*place });
            check_fields(node, map, inside.as_ref(), errors);
        }
        (Shape::Part(_), _) => errors.extend(schema_part_error(value, place, place)),
        (Shape::Map(inner), Value::Object(map)) => {
            let place = place.map(Place::deeper);
            map.values().for_each(|value| check(inner, value, place.as_ref(), errors));
        }
        (Shape::List(list), Value::Array(items)) => {
            let place = place.map(Place::deeper);
            items.iter().for_each(|item| check(&list.item, item, place.as_ref(), errors));
        }
        (Shape::Object(_) | Shape::Named(_), Value::Object(map)) => {
            check_fields(node, map, place, errors);
        }
        _ => errors.push(mismatch(value, place, &go_type(node, place))),
    }
}

fn check_fields(
    node: &Node,
    map: &Map<String, Value>,
    place: Option<&Place<'_>>,
    errors: &mut Vec<String>,
) {
    for (key, value) in map {
        check(node.child(key), value, Some(&Place::field(place, node, key)), errors);
    }
}

impl<'a> Place<'a> {
    /// The field of a struct.
    pub(super) fn field(above: Option<&'a Place<'a>>, node: &'a Node, field: &'a str) -> Self {
        let owner = match node.shape {
            Shape::Named(index) | Shape::Part(index) => Some(index),
            _ => None,
        };
        let holder = node.object().map_or("", Object::short_name);
        Self { above, owner, holder, field, depth: 0, part: above.and_then(|above| above.part) }
    }

    /// The metadata of a custom resource.
    pub(super) fn metadata() -> Self {
        let field = "metadata";
        Self { above: None, owner: None, holder: "ObjectMeta", field, depth: 0, part: None }
    }

    /// What is in the list or map that is here.
    pub(super) fn deeper(&self) -> Self {
        Self { depth: self.depth + 1, ..*self }
    }

    /// From the root, without indexes, but with the structs that others embed.
    fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut here = Some(self);
        while let Some(place) = here {
            steps.push(place.field);
            steps.extend(place.owner.and_then(|owner| builtin::embedded(owner, place.field)));
            here = place.above;
        }
        steps.reverse();
        steps.join(".")
    }

    /// What Go calls the type of what is here, if it does not follow from its shape.
    fn go_name(&self) -> Option<&'static str> {
        let name = builtin::go_name(self.owner?, self.field)?;
        (0..self.depth).try_fold(name, |name, _| {
            let value = || Some(name.strip_prefix("map[")?.split_once(']')?.1);
            name.strip_prefix("[]").or_else(value)
        })
    }
}

impl Object {
    /// `DeploymentSpec` of `v1.DeploymentSpec`.
    fn short_name(&self) -> &str {
        self.name.rsplit('.').next().unwrap_or_default()
    }
}

/// The mistake in a part of a definition's schema that may be of several types. `told` is the
/// place to name.
pub(super) fn schema_part_error(
    value: &Value,
    place: Option<&Place<'_>>,
    told: Option<&Place<'_>>,
) -> Option<String> {
    let place = place.filter(|place| place.holder == "JSONSchemaProps")?;
    match (place.field, value) {
        ("additionalItems" | "additionalProperties", Value::Object(_) | Value::Bool(_)) => None,
        ("additionalItems" | "additionalProperties", _) => {
            Some("boolean or JSON schema expected".to_owned())
        }
        ("dependencies", Value::Array(names)) => {
            let odd = names.iter().find(|name| !(name.is_string() || name.is_null()))?;
            Some(mismatch(odd, told, "string"))
        }
        _ => None,
    }
}

/// The mistake in a single value.
pub(super) fn scalar_error(
    scalar: Scalar,
    value: &Value,
    place: Option<&Place<'_>>,
) -> Option<String> {
    let fits = match scalar {
        Scalar::String => value.is_string(),
        Scalar::Bytes if value.is_string() => {
            return go_base64::decode(value.as_str()?).err().map(|error| error.to_string());
        }
        Scalar::Bytes => false,
        Scalar::Bool => value.is_boolean(),
        Scalar::Number => value.is_number(),
        Scalar::Int32 => is_int32(value),
        Scalar::Int64 | Scalar::Integer => value.is_i64(),
        Scalar::IntOrString => value.is_string() || is_int32(value),
        Scalar::Time => return time_error(value, Layout::Seconds, place),
        Scalar::MicroTime => return time_error(value, Layout::Micros, place),
        Scalar::Quantity => return quantity_error(value),
    };
    (!fits).then(|| mismatch(value, place, scalar_name(scalar, place)))
}

/// What Go calls a single value that is here.
pub(super) fn scalar_name(scalar: Scalar, place: Option<&Place<'_>>) -> &'static str {
    place.and_then(Place::go_name).unwrap_or_else(|| scalar_type(scalar))
}

/// The mistake in one of the numbers that bytes may be given as.
fn byte_error(value: &Value, place: Option<&Place<'_>>) -> Option<String> {
    let fits = value.is_null() || value.as_u64().is_some_and(|byte| byte <= u8::MAX.into());
    (!fits).then(|| mismatch(value, place, "uint8"))
}

fn is_int32(value: &Value) -> bool {
    value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
}

fn mismatch(value: &Value, place: Option<&Place<'_>>, expected: &str) -> String {
    let found = match value {
        Value::Number(number) if expected.trim_start_matches('u').starts_with("int") => {
            format!("number {number}")
        }
        Value::Number(_) => "number".to_owned(),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::String(_) => "string".to_owned(),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
    };
    let Some(place) = place else {
        return format!("json: cannot unmarshal {found} into Go value of type {expected}");
    };
    let told = place.part.unwrap_or(place);
    let (holder, path) = (told.holder, told.path());
    format!(
        "json: cannot unmarshal {found} into Go struct field {holder}.{path} of type {expected}"
    )
}

fn go_type(node: &Node, place: Option<&Place<'_>>) -> String {
    if let Some(name) = place.and_then(Place::go_name) {
        return name.to_owned();
    }
    match &node.shape {
        Shape::Any | Shape::Raw | Shape::Part(_) => "interface {}".to_owned(),
        Shape::Scalar(scalar) => scalar_type(*scalar).to_owned(),
        Shape::Named(_) | Shape::Object(_) => {
            node.object().map_or_else(String::new, |object| object.name.to_string())
        }
        Shape::Map(value) => format!("map[string]{}", go_type(value, None)),
        Shape::List(list) => format!("[]{}", go_type(&list.item, None)),
    }
}

fn scalar_type(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::String => "string",
        Scalar::Bytes => "[]uint8",
        Scalar::Bool => "bool",
        Scalar::Number => "float64",
        Scalar::Int32 | Scalar::IntOrString => "int32",
        Scalar::Int64 | Scalar::Integer => "int64",
        Scalar::Time => "v1.Time",
        Scalar::MicroTime => "v1.MicroTime",
        Scalar::Quantity => "resource.Quantity",
    }
}

fn time_error(value: &Value, layout: Layout, place: Option<&Place<'_>>) -> Option<String> {
    match value.as_str() {
        Some(text) => time::mistake(text, layout),
        None => Some(mismatch(value, place, "string")),
    }
}

fn quantity_error(value: &Value) -> Option<String> {
    let mistake = match value {
        Value::String(text) => Quantity::parse(text.trim()).err()?,
        Value::Number(number) => Quantity::parse(&number.to_string()).err()?,
        _ => ParseQuantityError::Form,
    };
    // What is longer than we can hold is named like a suffix that nobody knows.
    let digits = matches!(mistake, ParseQuantityError::Digits { .. });
    Some(if digits { ParseQuantityError::Suffix } else { mistake }.to_string())
}
