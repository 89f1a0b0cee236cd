//! How the objects of a kind look, from the OpenAPI document of its group and version.

use std::collections::HashMap;

use kube::core::GroupVersionKind;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

const REFERENCE: &str = "#/components/schemas/";

/// The schemas of a group and version. Most are never looked at.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    components: Components,
}

#[derive(Debug, Default, Deserialize)]
struct Components {
    #[serde(default)]
    schemas: HashMap<String, Box<RawValue>>,
}

/// What says of which kinds a schema is.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "x-kubernetes-group-version-kind", default)]
    kinds: Vec<GroupVersionKind>,
}

/// The path of the document that has a kind.
pub(super) fn path(kind: &GroupVersionKind) -> String {
    match kind.group.as_str() {
        "" => format!("/openapi/v3/api/{}", kind.version),
        group => format!("/openapi/v3/apis/{group}/{}", kind.version),
    }
}

impl Document {
    /// The schema of a kind, in which every reference is replaced by what it refers to.
    pub(super) fn schema_of(&self, kind: &GroupVersionKind) -> Option<Value> {
        let is_it = |schema: &RawValue| {
            let head = serde_json::from_str::<Head>(schema.get());
            head.is_ok_and(|head| head.kinds.contains(kind))
        };
        let (name, _) = self.components.schemas.iter().find(|(_, schema)| is_it(schema))?;
        self.referred(name, &mut Vec::new())
    }

    /// The schema of a name; what is within itself is any object.
    fn referred(&self, name: &str, within: &mut Vec<String>) -> Option<Value> {
        if within.iter().any(|outer| outer == name) {
            return Some(json!({"type": "object"}));
        }
        let schema = serde_json::from_str(self.components.schemas.get(name)?.get()).ok()?;
        within.push(name.to_owned());
        let resolved = self.resolved(schema, within);
        within.pop();
        resolved
    }

    fn resolved(&self, schema: Value, within: &mut Vec<String>) -> Option<Value> {
        if let Some(name) = reference(&schema) {
            return self.referred(name, within);
        }
        let Value::Object(mut schema) = schema else { return Some(schema) };
        schema.remove("description");
        if schema.get("format").is_some_and(|format| format == "int-or-string") {
            schema.insert("x-kubernetes-int-or-string".to_owned(), Value::Bool(true));
        }
        for below in ["items", "additionalProperties"] {
            if let Some(part) = schema.get_mut(below) {
                *part = self.resolved(part.take(), within)?;
            }
        }
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            *properties = self.each_resolved(std::mem::take(properties), within)?;
        }
        Some(Value::Object(schema))
    }

    fn each_resolved(
        &self,
        properties: Map<String, Value>,
        within: &mut Vec<String>,
    ) -> Option<Map<String, Value>> {
        let properties = properties.into_iter();
        properties.map(|(name, schema)| Some((name, self.resolved(schema, within)?))).collect()
    }
}

/// What a schema refers to. What has a description of its own beside it stands in an `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    let whole = schema["$ref"].as_str();
    let parts = || schema["allOf"].as_array().into_iter().flatten().find_map(reference);
    whole.and_then(|path| path.strip_prefix(REFERENCE)).or_else(parts)
}
