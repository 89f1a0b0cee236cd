//! Schemas of custom resources, and objects that do not fit them.

use steersman_rules::schema::Schema;

use super::{json, object, run};

const KEYWORDS: &[&str] = &[
    "type",
    "object",
    "array",
    "string",
    "integer",
    "number",
    "boolean",
    "properties",
    "additionalProperties",
    "items",
    "required",
    "default",
    "nullable",
    "enum",
    "pattern",
    "^a+$",
    "(",
    "format",
    "date-time",
    "ipv4",
    "int32",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "multipleOf",
    "minLength",
    "maxItems",
    "uniqueItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "map",
    "set",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "atomic",
    "metadata",
    "spec",
    "a",
    "b",
];

#[test]
fn any_schema_takes_or_refuses_any_object() {
    run((object(KEYWORDS), object(KEYWORDS)), |(schema, value)| {
        let schema = Schema::structural(&schema);
        let _ = schema.validate(&value);
        let mut pruned = value.clone();
        schema.prune(&mut pruned);
        let once = pruned.clone();
        schema.prune(&mut pruned);
        assert_eq!(pruned, once, "pruning twice");
        assert!(schema.unknown_fields(&once).is_empty());
        let mut defaulted = once;
        let _ = schema.apply_defaults(&mut defaulted);
        let _ = schema.validate(&defaulted);
    });
}

#[test]
fn defaults_twice_are_defaults_once() {
    let schema = json(KEYWORDS);
    run((schema, object(KEYWORDS)), |(default, value)| {
        let schema = serde_json::json!({
            "type": "object",
            "properties": {
                "a": {"type": "object", "default": {}, "properties": {"b": {"default": default}}},
                "spec": {"type": "string", "default": "x", "nullable": true},
            },
        });
        let schema = Schema::structural(&schema);
        let mut once = value;
        let _ = schema.apply_defaults(&mut once);
        let mut twice = once.clone();
        let _ = schema.apply_defaults(&mut twice);
        assert_eq!(once, twice);
    });
}
