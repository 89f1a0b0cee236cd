//! Tables of what becomes of custom resources: pruning, defaults, lists, what is embedded, and what
//! may stay as it was. Each row has a schema for the field `v`, a value of it, and what comes of it.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::schema::Schema;

fn of(schema: &Value) -> Schema {
    Schema::structural(&json!({"type": "object", "properties": {"v": schema}}))
}

fn messages(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::message).collect()
}

#[test]
fn pruning_keeps_what_a_schema_knows_or_does_not_speak_of() {
    let open = "x-kubernetes-preserve-unknown-fields";
    let given = json!({"a": 1, "b": {"c": 2, "d": 3}, "list": [{"c": 1, "d": 2}]});
    let known = json!({"type": "object", "properties": {"c": {"type": "integer"}}});
    for (schema, expected) in [
        (json!({"type": "object"}), json!({})),
        (json!({"type": "object", open: true}), given.clone()),
        (json!({open: true}), given.clone()),
        (json!({"type": "object", "properties": {"b": known}}), json!({"b": {"c": 2}})),
        (
            json!({"type": "object", open: true, "properties": {"b": known}}),
            json!({"a": 1, "b": {"c": 2}, "list": [{"c": 1, "d": 2}]}),
        ),
        (
            json!({"type": "object", "properties": {"b": {
                "type": "object", open: true, "properties": {"c": {"type": "integer"}},
            }}}),
            json!({"b": {"c": 2, "d": 3}}),
        ),
        (
            json!({"type": "object", "properties": {"list": {"type": "array", "items": known}}}),
            json!({"list": [{"c": 1}]}),
        ),
        (json!({"type": "object", "additionalProperties": {open: true}}), given.clone()),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, open: true}),
            given.clone(),
        ),
    ] {
        let mut object = json!({"v": given});
        of(&schema).prune(&mut object);
        assert_eq!(object["v"], expected, "{schema}");
    }
}

#[test]
fn defaults_take_the_place_of_what_is_missing_and_of_nulls_that_are_no_values() {
    let text = |more: Value| {
        let mut text = json!({"type": "string"});
        text.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        text
    };
    let object = |of: Value| json!({"type": "object", "properties": {"a": of}});
    for (schema, value, expected) in [
        (object(text(json!({}))), json!({"a": null}), json!({})),
        (object(text(json!({"nullable": true}))), json!({"a": null}), json!({"a": null})),
        (object(text(json!({"default": "x"}))), json!({}), json!({"a": "x"})),
        (object(text(json!({"default": "x"}))), json!({"a": null}), json!({"a": "x"})),
        (object(text(json!({"default": "x"}))), json!({"a": ""}), json!({"a": ""})),
        (
            object(text(json!({"default": "x", "nullable": true}))),
            json!({"a": null}),
            json!({"a": null}),
        ),
        (object(text(json!({"default": null, "nullable": true}))), json!({}), json!({})),
        (
            json!({"type": "array", "items": text(json!({"default": "x"}))}),
            json!(["a", null]),
            json!(["a", "x"]),
        ),
        (
            json!({"type": "array", "items": text(json!({"nullable": true}))}),
            json!([null]),
            json!([null]),
        ),
        (
            json!({"type": "object", "additionalProperties": text(json!({"default": "x"}))}),
            json!({"a": null, "b": "y"}),
            json!({"a": "x", "b": "y"}),
        ),
        (
            json!({"type": "object", "additionalProperties": text(json!({}))}),
            json!({"a": null, "b": "y"}),
            json!({"b": "y"}),
        ),
        (
            object(json!({"type": "object", "default": {}, "properties": {
                "b": {"type": "integer", "default": 1},
            }})),
            json!({}),
            json!({"a": {"b": 1}}),
        ),
    ] {
        let mut object = json!({"v": value});
        of(&schema).apply_defaults(&mut object).unwrap();
        assert_eq!(object["v"], expected, "{schema} {value}");
    }
}

#[test]
fn sets_and_maps_hold_nothing_twice_and_tell_it_once() {
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let map = |keys: Value| {
        json!({
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
            "items": {"type": "object", "properties": {
                "a": {"type": "string"}, "b": {"type": "integer"}, "c": {"type": "string"},
            }},
        })
    };
    let nested = json!({"type": "object", "additionalProperties": set});
    for (schema, value, expected) in [
        (&set, json!(["a", "b"]), vec![]),
        (&set, json!(["a", "b", "a", "a"]), vec![r#"v[2]: Duplicate value: "a""#]),
        (&nested, json!({"k": ["a", "a"]}), vec![r#"v[k][1]: Duplicate value: "a""#]),
        (&map(json!(["a"])), json!([{"a": "x"}, {"a": "y"}]), vec![]),
        (
            &map(json!(["a"])),
            json!([{"a": "x", "c": "1"}, {"a": "x", "c": "2"}, {"a": "x"}]),
            vec![r#"v[1]: Duplicate value: {"a":"x"}"#],
        ),
        (&map(json!(["a"])), json!([{}, {}]), vec!["v[1]: Duplicate value: {}"]),
        (
            &map(json!(["a", "b"])),
            json!([{"a": "x", "b": 1}, {"a": "x", "b": 2}, {"a": "x", "b": 1}]),
            vec![r#"v[2]: Duplicate value: {"a":"x","b":1}"#],
        ),
    ] {
        assert_eq!(messages(&of(schema).validate(&json!({"v": value}))), expected, "{value}");
    }
}

#[test]
fn lists_that_were_wrong_may_stay_wrong() {
    let set =
        json!({"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}});
    let schema = Schema::structural(&json!({"type": "object", "properties": {
        "v": set, "w": set,
    }}));
    let change =
        |old: Value, new: Value| messages(&schema.validate_change(&new, Some(&old)).errors);
    let wrong = json!({"v": ["a", "a"]});
    assert_eq!(change(json!({"v": ["a"]}), wrong.clone()).len(), 1);
    assert!(change(wrong.clone(), json!({"v": ["a", "a", "b"]})).is_empty());
    // As in Kubernetes, that holds of all lists of the object together.
    assert!(change(wrong, json!({"v": ["a", "a"], "w": ["b", "b"]})).is_empty());
}

#[test]
fn what_is_embedded_is_a_resource() {
    let resource = json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    });
    let list = json!({"type": "array", "items": resource});
    let map = json!({"type": "object", "additionalProperties": resource});
    let sound = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    for (schema, value, expected) in [
        (&resource, sound.clone(), vec![]),
        (&resource, json!({"apiVersion": "v1", "kind": "Pod"}), vec![]),
        (&resource, json!({}), vec!["v.apiVersion: Required value", "v.kind: Required value"]),
        (
            &resource,
            json!({"apiVersion": "a/b/c", "kind": ""}),
            vec![
                r#"v.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c"#,
                r#"v.kind: Invalid value: "": must not be empty"#,
            ],
        ),
        (&list, json!([sound, {"kind": "Pod"}]), vec!["v[1].apiVersion: Required value"]),
        (&map, json!({"k": {"apiVersion": "v1"}}), vec!["v[k].kind: Required value"]),
        (
            &resource,
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}}),
            vec![r#"v.metadata.name: Invalid value: "a/b": may not contain '/'"#],
        ),
    ] {
        assert_eq!(messages(&of(schema).validate(&json!({"v": value}))), expected, "{value}");
    }
}

#[test]
fn what_cannot_be_read_as_a_resource_is_not_read_at_all() {
    let resource = json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    });
    for (value, expected) in [
        (json!({"apiVersion": 1, "kind": {}}), "v.apiVersion: Invalid value: 1: must be a string"),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": "x"}),
            "v.metadata: Invalid value: \"x\": json: cannot unmarshal string into Go value of type \
             v1.ObjectMeta",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"x": 1}}}),
            "v.metadata: Invalid value: {\"labels\":{\"x\":1}}: json: cannot unmarshal number into \
             Go struct field ObjectMeta.labels of type string",
        ),
    ] {
        assert_eq!(of(&resource).type_errors(&json!({"v": value})), [expected]);
    }
}

#[test]
fn numbers_are_told_as_kubernetes_tells_them() {
    let check = |schema: Value, value: Value| messages(&of(&schema).validate(&json!({"v": value})));
    const NO_NUMBER: &str =
        "v: Invalid value: \"number\": v in body must be of type integer: \"number\"";
    const NO_INTEGER: &str = "<nil>: Invalid value: \"\": Checked value must be of type integer \
                              (default format) in v";
    let integer = json!({"type": "integer"});
    assert_eq!(check(integer.clone(), json!(1.5)), [NO_NUMBER, NO_INTEGER]);
    assert_eq!(check(integer, json!(9_223_372_036_854_775_808_u64)), [NO_NUMBER, NO_INTEGER]);
    let short = json!({"type": "integer", "format": "int32"});
    assert_eq!(
        check(short, json!(2_147_483_648_u64)),
        [
            "<nil>: Invalid value: \"\": Checked value must be of type integer with format int32 in v"
        ]
    );
    assert!(check(json!({"type": "integer", "enum": [1]}), json!(1.0)).is_empty());
    assert_eq!(
        check(json!({"type": "integer", "multipleOf": 2, "minimum": 2}), json!(1)),
        [
            "v: Invalid value: 1: v in body should be a multiple of 2",
            "v: Invalid value: 1: v in body should be greater than or equal to 2"
        ]
    );
}

#[test]
fn what_a_list_holds_is_told_before_that_it_holds_too_much() {
    let schema =
        json!({"type": "array", "maxItems": 1, "items": {"type": "string", "maxLength": 1}});
    assert_eq!(
        messages(&of(&schema).validate(&json!({"v": ["ab", "c"]}))),
        ["v[0]: Too long: may not be more than 1 byte", "v: Too many: 2: must have at most 1 item"]
    );
}

#[test]
fn what_is_embedded_is_looked_at_whenever_it_could_have_changed() {
    let schema = Schema::structural(&json!({"type": "object", "properties": {
        "spec": {
            "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        },
        "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }}));
    let old = json!({"spec": {"kind": "Pod"}});
    let new = json!({"spec": {"kind": "Pod"}, "status": {"n": 1}});
    assert_eq!(schema.validate_change(&new, Some(&old)).errors.len(), 1);
    assert!(schema.validate_status_change(&new, &old).errors.is_empty());
}
