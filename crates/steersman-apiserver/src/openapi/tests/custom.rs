//! Schemas of custom resources, as both versions show them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steersman_rules::{kinds, resource::Resource};

use super::super::paths::Paths;
use super::super::{Dialect, custom};

/// The definition of a custom resource with this schema.
fn definition(dialect: Dialect, schema: &Value) -> Value {
    let group_version = ("example.com", "v1");
    let resource = Resource {
        group: group_version.0.into(),
        version: group_version.1.into(),
        kind: "Foo".into(),
        list_kind: "FooList".into(),
        ..kinds::all().remove(0)
    };
    let version = json!({"name": "v1", "schema": {"openAPIV3Schema": schema},
        "selectableFields": [{"jsonPath": ".spec.a"}]});
    let [(name, object), (list_name, list)] =
        custom::definitions(dialect, &resource, &version, false);
    assert_eq!(
        (name.as_str(), list_name.as_str()),
        ("com.example.v1.Foo", "com.example.v1.FooList")
    );
    let kind = |schema: &Value| schema["x-kubernetes-group-version-kind"].clone();
    assert_eq!(kind(&object), json!([{"group": "example.com", "version": "v1", "kind": "Foo"}]));
    assert_eq!(kind(&list)[0]["kind"], "FooList");
    assert_eq!(object["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.a"}]));
    object
}

#[test]
fn a_schema_is_completed_by_version_kind_and_metadata() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "string"}}});
    let v3 = definition(Dialect::V3, &schema);
    assert_eq!(v3["properties"]["spec"], json!({"type": "string"}));
    assert_eq!(v3["properties"]["kind"]["type"], "string");
    let meta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let metadata = &v3["properties"]["metadata"]["allOf"][0]["$ref"];
    assert_eq!(*metadata, format!("#/components/schemas/{meta}"));
    let v2 = definition(Dialect::V2, &schema);
    assert_eq!(v2["properties"]["metadata"]["$ref"], format!("#/definitions/{meta}"));
}

#[test]
fn version_kind_and_metadata_are_described_as_those_of_builtin_kinds() {
    let schema = json!({"type": "object", "properties": {
        "template": {"type": "object", "x-kubernetes-embedded-resource": true},
    }});
    let builtin = super::v3("api/v1")["components"]["schemas"]["io.k8s.api.core.v1.Pod"].take();
    for dialect in [Dialect::V2, Dialect::V3] {
        let custom = definition(dialect, &schema);
        for object in [&custom, &custom["properties"]["template"]] {
            for name in ["apiVersion", "kind", "metadata"] {
                let text = |object: &Value| object["properties"][name]["description"].clone();
                assert!(text(object).as_str().is_some_and(|text| text.len() > 50), "{name}");
                assert_eq!(text(object), text(&builtin), "{name}");
            }
        }
    }
}

#[test]
fn a_root_that_keeps_unknown_fields_says_nothing_in_version_two() {
    let schema = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"spec": {"type": "string"}},
    });
    let v2 = definition(Dialect::V2, &schema);
    assert_eq!((&v2["type"], v2.get("properties")), (&json!("object"), None));
    assert!(definition(Dialect::V3, &schema)["properties"]["spec"].is_object());
    assert_eq!(definition(Dialect::V3, &Value::Null).get("properties"), None);
}

#[test]
fn version_two_drops_what_it_cannot_say() {
    let schema = json!({
        "type": "object", "required": ["a", "b"],
        "properties": {
            "a": {"type": "object", "nullable": true, "properties": {"x": {"type": "string"}}},
            "b": {"type": "integer", "default": 1, "oneOf": [{"minimum": 1}], "maximum": 9},
            "c": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                  "properties": {"y": {"type": "string"}}},
            "d": {"type": "array", "items": {"type": "object", "nullable": true}},
            "e": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}]},
        },
    });
    let v2 = definition(Dialect::V2, &schema);
    let properties = &v2["properties"];
    assert_eq!(v2["required"], json!(["b"]));
    assert_eq!(properties["a"], json!({}));
    assert_eq!(properties["b"], json!({"type": "integer", "maximum": 9}));
    assert_eq!(properties["c"], json!({"x-kubernetes-preserve-unknown-fields": true}));
    assert_eq!(properties["d"], json!({"type": "array", "items": {}}));
    assert_eq!(properties["e"], json!({"x-kubernetes-int-or-string": true}));
    assert_eq!(definition(Dialect::V3, &schema)["properties"]["b"], schema["properties"]["b"]);
}

#[test]
fn version_two_requires_nothing_that_may_be_null() {
    let schema = json!({
        "type": "object",
        "properties": {
            "map": {"type": "object", "required": ["a"],
                    "additionalProperties": {"type": "string", "nullable": true}},
            "gone": {"type": "object", "nullable": true, "required": ["x"],
                     "properties": {"x": {"type": "string", "nullable": true}}},
        },
    });
    let v2 = definition(Dialect::V2, &schema);
    assert_eq!(v2["properties"]["map"], json!({"type": "object", "additionalProperties": {}}));
    assert_eq!(v2["properties"]["gone"], json!({"required": ["x"]}));
}

#[test]
fn a_number_or_text_is_said_to_be_one_of_the_two() {
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    let large = json!([{"minimum": 42}]);
    let flag = |mut schema: Value| {
        schema["x-kubernetes-int-or-string"] = true.into();
        schema
    };
    for (written, expected) in [
        (json!({}), json!({"anyOf": either})),
        (json!({"anyOf": either}), json!({"anyOf": either})),
        (
            json!({"allOf": [{"anyOf": either}, {"anyOf": large}]}),
            json!({"allOf": [{"anyOf": either}, {"anyOf": large}]}),
        ),
        (json!({"anyOf": large}), json!({"anyOf": large, "allOf": [{"anyOf": either}]})),
        (
            json!({"anyOf": large, "allOf": large}),
            json!({"anyOf": large, "allOf": [{"anyOf": either}, {"minimum": 42}]}),
        ),
    ] {
        let items = json!({"type": "array", "items": flag(written)});
        let schema = json!({"type": "object", "properties": {"a": items}});
        let v3 = definition(Dialect::V3, &schema);
        assert_eq!(v3["properties"]["a"]["items"], flag(expected));
        let v2 = definition(Dialect::V2, &schema);
        assert_eq!(v2["properties"]["a"]["items"], flag(json!({})));
    }
}

#[test]
fn operations_on_custom_resources_are_told_of_as_in_kubernetes() {
    let any = kinds::all().into_iter().find(|resource| resource.plural == "configmaps");
    let resource = Resource {
        group: "example.com".into(),
        version: "v1".into(),
        kind: "Foo".into(),
        list_kind: "FooList".into(),
        plural: "foos".into(),
        ..any.unwrap()
    };
    let paths = Paths { dialect: Dialect::V3, resource: &resource, custom: true };
    let paths: BTreeMap<String, Value> = paths.all().into_iter().collect();
    let collection = &paths["/apis/example.com/v1/namespaces/{namespace}/foos"];
    let one = &paths["/apis/example.com/v1/namespaces/{namespace}/foos/{name}"];
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let plain = ["application/json", "application/yaml"];
    assert_eq!(keys(&collection["get"]["responses"]["200"]["content"]), plain);
    assert_eq!(keys(&collection["post"]["requestBody"]["content"]), plain);
    assert_eq!(collection["get"]["description"], "list objects of kind Foo");
    assert_eq!(collection["delete"].get("requestBody"), None);
    assert_eq!(collection["delete"]["parameters"], collection["get"]["parameters"]);
    assert_eq!(keys(&one["put"]["responses"]), ["200", "201", "401"]);
    assert_eq!(keys(&one["patch"]["responses"]), ["200", "401"]);
    assert_eq!(one["get"]["parameters"][0]["name"], "resourceVersion");
}

#[test]
fn embedded_objects_are_completed_unless_version_two_would_refuse_the_rest() {
    let schema = |open: bool| {
        json!({"type": "object", "properties": {"spec": {
            "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": open,
        }}})
    };
    for dialect in [Dialect::V2, Dialect::V3] {
        let closed = &definition(dialect, &schema(false))["properties"]["spec"];
        assert_eq!(closed["required"], json!(["kind", "apiVersion"]));
        assert!(closed["properties"]["metadata"].is_object());
    }
    let open = &definition(Dialect::V2, &schema(true))["properties"]["spec"];
    assert_eq!(open.get("properties"), None);
    let open = &definition(Dialect::V3, &schema(true))["properties"]["spec"];
    assert!(open["properties"]["apiVersion"].is_object());
}
