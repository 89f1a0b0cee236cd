//! From a structural schema to a shape, by Kubernetes' rules.

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::shape::{ListKind, REQUEST_BYTES_MAX, Shape, ShapeKind};

/// Bytes of a timestamp or a duration in JSON, at most.
const TIME_MAX: u64 = 32;
/// Bytes of a day in JSON.
const DATE: u64 = 12;

impl Shape {
    /// The shape of what a schema describes; `None` if expressions cannot see it, as what has no type
    /// or preserves unknown fields.
    ///
    /// `name` names the type if it is an object; types of fields are named after it. A root of a
    /// resource, like an embedded resource, has `kind`, `apiVersion` and `metadata` whatever the
    /// schema says.
    ///
    /// ```
    /// use serde_json::json;
    /// use steersman_cel::Shape;
    ///
    /// let schema = json!({"type": "object", "properties": {"x-y": {"type": "string"}}});
    /// let shape = Shape::of_schema(&schema, "self", true).unwrap();
    /// assert_eq!(shape.ty().to_string(), "self");
    /// ```
    #[must_use]
    pub fn of_schema(schema: &Json, name: &str, resource: bool) -> Option<Self> {
        of_schema(schema, &Name::Root(name), resource)
    }
}

/// What an object type would be called. Most of what a schema describes are no objects.
enum Name<'a> {
    Root(&'a str),
    Below(&'a Name<'a>, &'a str),
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(name) => f.write_str(name),
            Self::Below(parent, step) => write!(f, "{parent}.{step}"),
        }
    }
}

fn of_schema(schema: &Json, name: &Name<'_>, resource: bool) -> Option<Shape> {
    let mut shape = shape(schema, name, resource)?;
    shape.nullable = schema["nullable"] == true;
    Some(shape)
}

fn shape(schema: &Json, name: &Name<'_>, resource: bool) -> Option<Shape> {
    if schema["x-kubernetes-int-or-string"] == true {
        let max = four_bytes_each(schema).unwrap_or(REQUEST_BYTES_MAX - 2);
        return Some(sized(ShapeKind::IntOrString, 1).at_most(max));
    }
    match schema["type"].as_str()? {
        "array" => array(schema, name),
        "object" => object(schema, name, resource),
        "string" => Some(string(schema)),
        "boolean" => Some(sized(ShapeKind::Bool, 4)),
        "number" => Some(sized(ShapeKind::Double, 1)),
        "integer" => Some(sized(ShapeKind::Int, 1)),
        _ => None,
    }
}

fn sized(kind: ShapeKind, bytes_min: u64) -> Shape {
    Shape { bytes_min, ..Shape::new(kind) }
}

fn limit(schema: &Json, key: &str) -> Option<u64> {
    schema[key].as_i64().map(|max| u64::try_from(max).unwrap_or(0))
}

/// A limit of characters, each of which may take four bytes.
fn four_bytes_each(schema: &Json) -> Option<u64> {
    limit(schema, "maxLength").map(|max| max.saturating_mul(4))
}

fn below(schema: &Json, name: &Name<'_>) -> Option<Shape> {
    let embedded = schema["x-kubernetes-embedded-resource"] == true;
    of_schema(schema, name, embedded)
}

fn array(schema: &Json, name: &Name<'_>) -> Option<Shape> {
    let items = below(schema.get("items")?, &Name::Below(name, "@idx"))?;
    // A comma stands between elements, brackets around them.
    let max = limit(schema, "maxItems")
        .unwrap_or_else(|| (REQUEST_BYTES_MAX - 2) / (items.bytes_min + 1));
    let kind = match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(map_keys(schema)),
        _ => ListKind::Atomic,
    };
    Some(sized(ShapeKind::List(Arc::new(items), kind), 2).at_most(max))
}

fn map_keys(schema: &Json) -> Arc<[Arc<str>]> {
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    let names = keys.into_iter().flatten().filter_map(Json::as_str);
    names.filter_map(crate::shape::escape).map(Arc::from).collect()
}

fn object(schema: &Json, name: &Name<'_>, resource: bool) -> Option<Shape> {
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        let values = below(values, &Name::Below(name, "@elem"))?;
        // An entry has a key between quotes, a colon and a comma.
        let max = limit(schema, "maxProperties")
            .unwrap_or_else(|| (REQUEST_BYTES_MAX - 2) / (values.bytes_min + 6));
        return Some(sized(ShapeKind::Map(Arc::new(values)), 2).at_most(max));
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let mut bytes_min = 2;
    let mut fields = Vec::new();
    let declared = schema["properties"].as_object();
    for (key, property) in declared.into_iter().flatten() {
        if resource && matches!(key.as_str(), "kind" | "apiVersion" | "metadata") {
            continue;
        }
        let Some(shape) = below(property, &Name::Below(name, key)) else { continue };
        if required.contains(&key.as_str()) && property.get("default").is_none() {
            bytes_min += key.len() as u64 + shape.bytes_min + 4;
        }
        fields.push((key.clone(), shape));
    }
    if resource {
        fields.extend(resource_fields(declared, name));
    }
    Some(Shape { bytes_min, ..Shape::object(&name.to_string(), fields) })
}

/// What every resource has. What a schema says about it counts only if it names a name.
fn resource_fields(
    declared: Option<&serde_json::Map<String, Json>>,
    name: &Name<'_>,
) -> Vec<(String, Shape)> {
    let text = || sized(ShapeKind::String, 2).at_most(REQUEST_BYTES_MAX - 2);
    let known = |key: &str| declared.and_then(|declared| declared.get(key));
    let is = |schema: Option<&Json>, ty: &str| schema.is_some_and(|schema| schema["type"] == ty);
    let metadata = known("metadata");
    let property = |key: &str| metadata.and_then(|metadata| metadata["properties"].get(key));
    let complete = is(known("kind"), "string")
        && is(known("apiVersion"), "string")
        && is(metadata, "object")
        && is(property("name"), "string")
        && is(property("generateName"), "string");
    let metadata_name = format!("{name}.metadata");
    if complete {
        let own = |key: &str| {
            below(known(key)?, &Name::Below(name, key)).map(|shape| (key.to_owned(), shape))
        };
        return ["kind", "apiVersion", "metadata"].into_iter().filter_map(own).collect();
    }
    let names = [("name".to_owned(), text()), ("generateName".to_owned(), text())];
    vec![
        ("kind".to_owned(), text()),
        ("apiVersion".to_owned(), text()),
        ("metadata".to_owned(), Shape { bytes_min: 2, ..Shape::object(&metadata_name, names) }),
    ]
}

fn string(schema: &Json) -> Shape {
    match schema["format"].as_str() {
        Some("byte") => {
            let max = limit(schema, "maxLength").unwrap_or(REQUEST_BYTES_MAX - 2);
            return sized(ShapeKind::Bytes, 2).at_most(max);
        }
        Some("duration") => return sized(ShapeKind::Duration, 3).at_most(TIME_MAX),
        Some("date") => return sized(ShapeKind::Date, DATE).at_most(DATE),
        Some("date-time") => return sized(ShapeKind::Timestamp, 21).at_most(TIME_MAX),
        _ => {}
    }
    let longest = || {
        let values = schema["enum"].as_array().filter(|values| !values.is_empty())?;
        Some(
            values
                .iter()
                .filter_map(Json::as_str)
                .map(|value| value.len() as u64)
                .max()
                .unwrap_or(0),
        )
    };
    let max = four_bytes_each(schema).or_else(longest).unwrap_or(REQUEST_BYTES_MAX - 2);
    sized(ShapeKind::String, 2).at_most(max)
}
