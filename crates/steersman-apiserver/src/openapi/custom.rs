//! Definitions of custom resources: what their authors wrote, completed as Kubernetes does.
//!
//! Version 3 can say all that a structural schema says. Version 2 cannot, and old clients trip
//! over much of it, so there a nullable or open value becomes one without a type.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use steersman_rules::resource::Resource;

use super::definitions::{GVK, group_version_kind};
use super::descriptions::Common;
use super::{Dialect, names};

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";
const EMBEDDED: &str = "x-kubernetes-embedded-resource";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
const SELECTABLE: &str = "x-kubernetes-selectable-fields";

const CONVENTIONS: &str =
    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// What version 2 has no words for.
const NOT_IN_V2: [&str; 6] = ["nullable", "allOf", "anyOf", "oneOf", "not", "default"];

/// The definitions of one version of a custom resource, with their names: object and list. It is
/// described as its definition describes it; `open` is whether that keeps unknown fields.
pub(super) fn definitions(
    dialect: Dialect,
    resource: &Resource,
    described: &Value,
    open: bool,
) -> [(String, Value); 2] {
    let Resource { group, version, kind, list_kind, .. } = resource;
    let name = |kind: &str| names::custom(group, version, kind);
    let mut object = object(dialect, &described["schema"]["openAPIV3Schema"], open);
    let mut list = list(dialect, resource, &name(kind));
    for (schema, kind) in [(&mut object, kind), (&mut list, list_kind)] {
        schema[GVK] = json!([group_version_kind(&resource.api_version(), kind)]);
        if let Some(fields) = described["selectableFields"].as_array().filter(|f| !f.is_empty()) {
            schema[SELECTABLE] = fields.iter().map(selectable).collect();
        }
    }
    [(name(kind), object), (name(list_kind), list)]
}

fn selectable(field: &Value) -> Value {
    json!({"fieldPath": field["jsonPath"].as_str().unwrap_or("").trim_start_matches('.')})
}

fn object(dialect: Dialect, schema: &Value, open: bool) -> Value {
    let Value::Object(schema) = schema else { return json!({"type": "object"}) };
    let open = open || schema.get(PRESERVE) == Some(&Value::Bool(true));
    // Old clients would refuse every field besides those that are listed.
    if dialect == Dialect::V2 && open {
        return json!({"type": "object"});
    }
    let mut schema = schema.clone();
    match dialect {
        Dialect::V2 => reduce(&mut schema),
        Dialect::V3 => unfold(&mut schema),
    }
    complete_embedded(dialect, &mut schema);
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let texts = Common::texts();
    for name in ["apiVersion", "kind"] {
        properties[name] = json!({"type": "string", "description": texts.of_object(name)});
    }
    properties["metadata"] = metadata(dialect, "ObjectMeta", texts.of_object("metadata"));
    schema.into()
}

/// A reference with a description, which version 3 does not allow side by side.
fn metadata(dialect: Dialect, name: &str, text: &str) -> Value {
    let reference = names::reference(dialect, &names::meta(name));
    match dialect {
        Dialect::V2 => json!({"$ref": reference, "description": text}),
        Dialect::V3 => json!({"allOf": [{"$ref": reference}], "description": text}),
    }
}

fn list(dialect: Dialect, resource: &Resource, item: &str) -> Value {
    let Resource { kind, list_kind, plural, .. } = resource;
    let texts = Common::texts();
    json!({
        "description": format!("{list_kind} is a list of {kind}"),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": texts.of_list("apiVersion")},
            "kind": {"type": "string", "description": texts.of_list("kind")},
            "metadata": metadata(dialect, "ListMeta", texts.of_list("metadata")),
            "items": {
                "description": format!("List of {plural}. More info: {CONVENTIONS}"),
                "type": "array",
                "items": {"$ref": names::reference(dialect, item)},
            },
        },
    })
}

/// Whole objects inside of others have a version, a kind and metadata, too.
fn complete_embedded(dialect: Dialect, schema: &mut Map<String, Value>) {
    children(schema, &mut |child| complete_embedded(dialect, child));
    let is = |flag: &str| schema.get(flag) == Some(&Value::Bool(true));
    if !is(EMBEDDED) || (dialect == Dialect::V2 && is(PRESERVE)) {
        return;
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    let texts = Common::texts();
    for name in ["apiVersion", "kind"] {
        properties[name] = json!({"type": "string", "description": texts.of_object(name)});
    }
    properties["metadata"] = metadata(dialect, "ObjectMeta", texts.of_object("metadata"));
    let required = schema.entry("required").or_insert_with(|| json!([]));
    for name in ["kind", "apiVersion"] {
        if let Some(required) = required.as_array_mut()
            && !required.iter().any(|known| known == name)
        {
            required.push(name.into());
        }
    }
}

/// Says of what may be a number or a text that it is one of the two, where its author does not.
fn unfold(schema: &mut Map<String, Value>) {
    children(schema, &mut unfold);
    if schema.get(INT_OR_STRING) != Some(&Value::Bool(true)) {
        return;
    }
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let first = schema.get("allOf").and_then(|all| all.get(0));
    let said = [schema.get("anyOf"), first.and_then(|first| first.get("anyOf"))];
    if said.contains(&Some(&either)) {
        return;
    }
    let said = said[0].and_then(Value::as_array).is_some_and(|any| !any.is_empty());
    if !said {
        schema.insert("anyOf".to_owned(), either);
    } else if let Some(all) = schema.entry("allOf").or_insert_with(|| json!([])).as_array_mut() {
        all.insert(0, json!({"anyOf": either}));
    }
}

/// Leaves of a structural schema what version 2 can say.
fn reduce(schema: &mut Map<String, Value>) {
    let nullable = is_nullable(schema);
    let open = schema.get(PRESERVE) == Some(&Value::Bool(true));
    for word in NOT_IN_V2 {
        schema.remove(word);
    }
    if nullable || open {
        schema.remove("items");
        schema.remove("properties");
    }
    let typed = schema.get("type").and_then(Value::as_str);
    let empty_list = typed == Some("array") && !schema.contains_key("items");
    if nullable || empty_list || (open && typed == Some("object")) {
        schema.remove("type");
    }
    forget_nullable(schema);
    children(schema, &mut reduce);
}

fn is_nullable(schema: &Map<String, Value>) -> bool {
    schema.get("nullable") == Some(&Value::Bool(true))
}

/// A field that may be null cannot be required where null cannot be said.
fn forget_nullable(schema: &mut Map<String, Value>) {
    let values = schema.get("additionalProperties").and_then(Value::as_object);
    if values.is_some_and(is_nullable) {
        schema.remove("required");
        return;
    }
    let nullable: HashSet<String> = match schema.get("properties") {
        Some(Value::Object(properties)) => properties
            .iter()
            .filter(|(_, field)| field.as_object().is_some_and(is_nullable))
            .map(|(name, _)| name.clone())
            .collect(),
        _ => return,
    };
    let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) else { return };
    required.retain(|name| !name.as_str().is_some_and(|name| nullable.contains(name)));
    if required.is_empty() {
        schema.remove("required");
    }
}

/// Visits the schemas right below one.
fn children(schema: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut Map<String, Value>)) {
    for word in ["items", "additionalProperties"] {
        if let Some(Value::Object(child)) = schema.get_mut(word) {
            visit(child);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().filter_map(Value::as_object_mut).for_each(visit);
    }
}
