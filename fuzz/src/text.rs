//! Bytes as documents.

use serde_json::Value;
use steersman_rules::schema::Schema;

/// What stands between two documents of one input.
const BETWEEN: &[u8] = b"\n---\n";

/// The parts of an input: at most so many, none if there are fewer.
pub(crate) fn parts<const COUNT: usize>(bytes: &[u8]) -> Option<[&[u8]; COUNT]> {
    let mut rest = bytes;
    let mut parts = [bytes; COUNT];
    for part in parts.iter_mut().take(COUNT - 1) {
        let at = rest.windows(BETWEEN.len()).position(|window| window == BETWEEN)?;
        *part = &rest[..at];
        rest = &rest[at + BETWEEN.len()..];
    }
    parts[COUNT - 1] = rest;
    Some(parts)
}

/// A document, if it is one.
pub(crate) fn document(bytes: &[u8]) -> Option<Value> {
    serde_json::from_slice(bytes).ok()
}

/// An object, if it is one.
pub(crate) fn object(bytes: &[u8]) -> Option<Value> {
    document(bytes).filter(Value::is_object)
}

/// The schema of the kind that an object says it is of; of a custom resource for all others.
pub(crate) fn schema_of(object: &Value) -> Schema {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Schema::builtin(group, version, kind).unwrap_or_else(custom)
}

/// A schema with everything that merges in a way of its own.
fn custom() -> Schema {
    Schema::structural(&serde_json::json!({
        "type": "object", "properties": {"spec": {"type": "object", "properties": {
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
            "atomic": {"type": "object", "x-kubernetes-map-type": "atomic",
                "additionalProperties": {"type": "integer"}},
            "set": {"type": "array", "x-kubernetes-list-type": "set",
                "items": {"type": "string"}},
            "list": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name", "port"],
                "items": {"type": "object", "properties": {
                    "name": {"type": "string"}, "port": {"type": "integer", "default": 80},
                    "value": {"x-kubernetes-preserve-unknown-fields": true}}}},
            "either": {"x-kubernetes-int-or-string": true},
            "nothing": {"type": "string", "nullable": true},
            "rest": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    }))
}
