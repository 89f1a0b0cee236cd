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
        // Whatever is in what the schema does not speak of at all.
        (
            json!({"type": "object", "additionalProperties": true}),
            json!({"a": 1, "b": {}, "list": [{}]}),
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            json!({"a": 1, "b": {}, "list": [{}]}),
        ),
        (
            json!({"type": "object", "additionalProperties": true, "properties": {"b": known}}),
            json!({"a": 1, "b": {"c": 2}, "list": [{}]}),
        ),
        (
            json!({open: true, "properties": {"b": known}}),
            json!({"a": 1, "b": {"c": 2}, "list": [{"c": 1, "d": 2}]}),
        ),
        (
            json!({"type": "object", "properties": {
                "list": {"type": "array", open: true, "items": known},
            }}),
            json!({"list": [{"c": 1, "d": 2}]}),
        ),
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
fn fields_in_what_no_schema_speaks_of_are_unknown() {
    let schema = of(&json!({"type": "object", "additionalProperties": true}));
    let object = json!({"v": {"a": {"b": {"c": 1}}, "list": [1, {"d": 1}]}});
    assert_eq!(schema.unknown_fields(&object), ["v.a.b", "v.list[1].d"]);
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
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
                "kind": text(json!({"default": "Pod"})),
                "metadata": {"type": "object", "default": {}, "properties": {
                    "name": text(json!({"default": "x"})), "labels": {"type": "object"},
                }},
            }}),
            json!({"apiVersion": "v1"}),
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}}),
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

/// What is wrong with a field `v`.
fn told(schema: &Value, value: &Value) -> Vec<String> {
    messages(&of(schema).validate(&json!({"v": value})))
}

#[test]
fn a_value_is_looked_at_from_all_sides_whatever_is_wrong_on_one() {
    let either = json!({"x-kubernetes-int-or-string": true, "anyOf": [
        {"type": "integer"}, {"type": "string"},
    ]});
    for (schema, value, expected) in [
        (
            json!({"type": "string", "enum": ["a", "b"]}),
            json!(true),
            vec![
                r#"v: Invalid value: "boolean": v in body must be of type string: "boolean""#,
                r#"v: Unsupported value: true: supported values: "a", "b""#,
            ],
        ),
        (
            json!({"type": "string", "nullable": true, "enum": ["a"]}),
            json!(null),
            vec![r#"v: Unsupported value: null: supported values: "a""#],
        ),
        // Of a text, only the first mistake is told.
        (
            json!({"type": "string", "minLength": 1, "pattern": "^a+$"}),
            json!(""),
            vec![r#"v: Invalid value: "": v in body should be at least 1 chars long"#],
        ),
        (
            json!({"type": "string", "maxLength": 1, "pattern": "^a+$", "format": "date"}),
            json!("bb"),
            vec![
                "v: Too long: may not be more than 1 byte",
                r#"v: Invalid value: "bb": v in body must be of type date: "bb""#,
            ],
        ),
        (
            either,
            json!(1.5),
            vec![
                r#"v: Invalid value: "number": v in body must be of type integer,string: "number""#,
                r#"<nil>: Invalid value: "": "v" must validate at least one schema (anyOf)"#,
                r#"v: Invalid value: "number": v in body must be of type integer: "number""#,
                r#"<nil>: Invalid value: "": Checked value must be of type integer (default format) in v"#,
            ],
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            json!({"a": 1}),
            vec![r#"v: Invalid value: "a": v.a in body is a forbidden property"#],
        ),
        (
            json!({"type": "object", "required": ["b", "a"], "properties": {"b": {"type": "string"}}}),
            json!({}),
            vec!["v.b: Required value", "v.a: Required value"],
        ),
        (
            json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {
                "a": {"type": "string"},
            }}),
            json!({"a": 1}),
            vec![r#"v.a: Invalid value: "integer": v.a in body must be of type string: "integer""#],
        ),
    ] {
        assert_eq!(told(&schema, &value), expected, "{schema} {value}");
    }
    let open = json!({"x-kubernetes-preserve-unknown-fields": true, "properties": {
        "a": {"type": "string"},
    }});
    assert!(told(&open, &json!([1])).is_empty());
}

#[test]
fn a_wrong_type_is_told_by_the_format_if_there_is_one() {
    let of_format = |kind: &str, format: &str, value: Value| {
        told(&json!({"type": kind, "format": format}), &value)
    };
    let wrong = |found: &str, expected: &str| {
        vec![format!(
            "v: Invalid value: {found:?}: v in body must be of type {expected}: {found:?}"
        )]
    };
    assert_eq!(of_format("string", "date", json!(1)), wrong("int64", "date"));
    assert_eq!(of_format("string", "date", json!({})), wrong("", "date"));
    assert_eq!(of_format("integer", "int32", json!(true)), wrong("", "int32"));
    assert_eq!(of_format("integer", "int32", json!("1")), wrong("string", "integer"));
    assert_eq!(of_format("number", "double", json!([])), wrong("array", "number"));
    assert_eq!(of_format("string", "colour", json!(1)), wrong("integer", "string"));
    assert_eq!(
        of_format("string", "date", json!("\u{1}")),
        [r#"v: Invalid value: "\x01": v in body must be of type date: "\x01""#]
    );
    let long = of_format("string", "date", json!("x".repeat(1_000_000)));
    assert!(long[0].len() < 20_000, "{}", long[0].len());
    // Nobody looks at what a list has instead of a text with a format.
    assert!(of_format("string", "date", json!([1])).is_empty());
    let whole = format!(
        "{}\n<nil>: Invalid value: \"\": Checked value must be of type integer with format int64 in v",
        wrong("float64", "int64")[0]
    );
    assert_eq!(of_format("integer", "int64", json!(1e19)).join("\n"), whole);
}

#[test]
fn limits_lose_their_fraction_beside_whole_numbers() {
    let of_integer = |name: &str, limit: Value, value: Value| {
        let mut schema = json!({"type": "number"});
        schema[name] = limit;
        told(&schema, &value).join("\n")
    };
    let told_of =
        |value: &str, detail: &str| format!("v: Invalid value: {value}: v in body {detail}");
    assert_eq!(of_integer("minimum", json!(0.5), json!(0)), "");
    assert_eq!(
        of_integer("minimum", json!(0.5), json!(0.25)),
        told_of("0.25", "should be greater than or equal to 0.5")
    );
    assert_eq!(
        of_integer("maximum", json!(10.5), json!(11)),
        told_of("11", "should be less than or equal to 10")
    );
    assert_eq!(
        of_integer("maximum", json!(1_000_000), json!(2_000_000.5)),
        told_of("2.0000005e+06", "should be less than or equal to 1e+06")
    );
    assert_eq!(
        of_integer("multipleOf", json!(0.5), json!(3)),
        "v: Invalid value: 0: factor MultipleOf declared for v must be positive: 0"
    );
    assert_eq!(of_integer("multipleOf", json!(0.5), json!(3.0)), "");
    let long = json!({"type": "integer", "format": "int32", "maximum": 3_000_000_000_u32});
    assert_eq!(
        told(&long, &json!(1)),
        [
            "<nil>: Invalid value: \"\": Maximum boundary value must be of type integer with format int32 in v"
        ]
    );
    let short = json!({"type": "number", "format": "float"});
    assert!(told(&short, &json!(1e38)).is_empty());
    assert_eq!(
        told(&short, &json!(1e39)),
        ["<nil>: Invalid value: \"\": Checked value must be of type number with format float in v"]
    );
}

/// The first has two mistakes and the second one, but more of the third is about what there is.
#[test]
fn of_alternatives_that_fail_that_is_told_of_which_most_came_into_it() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
        "oneOf": [
            {"required": ["c", "d"]},
            {"properties": {"a": {"enum": ["x"]}}},
            {"properties": {"a": {"enum": ["y"]}, "b": {"enum": ["z"]}}},
        ],
    });
    assert_eq!(
        told(&schema, &json!({"a": "1", "b": "2"})),
        [
            r#"<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found none valid"#,
            r#"v.a: Unsupported value: "1": supported values: "y""#,
            r#"v.b: Unsupported value: "2": supported values: "z""#,
        ]
    );
}

#[test]
fn what_a_schema_says_of_metadata_and_kinds_holds() {
    let name =
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}});
    let root = Schema::structural(&json!({"type": "object", "properties": {"metadata": name}}));
    let named = |name: &str| json!({"metadata": {"name": name, "labels": {"a": "b"}}});
    assert!(root.validate(&named("abc")).is_empty());
    assert_eq!(
        messages(&root.validate(&named("abcd"))),
        ["metadata.name: Too long: may not be more than 3 bytes"]
    );
    assert!(root.validate_change(&named("abcd"), Some(&named("abcd"))).errors.is_empty());
    let mut kept = named("a");
    kept["metadata"]["odd"] = json!(1);
    root.prune(&mut kept);
    assert_eq!(kept, named("a"), "its shape is that of all metadata");

    let embedded = json!({
        "type": "object", "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
        "properties": {
            "kind": {"type": "string", "enum": ["Pod"]},
            "metadata": {"type": "object", "required": ["labels"]},
        },
    });
    assert_eq!(
        told(&embedded, &json!({"apiVersion": "v1", "kind": "Job", "metadata": {"name": "a"}})),
        [
            r#"v.kind: Unsupported value: "Job": supported values: "Pod""#,
            "v.metadata.labels: Required value",
        ]
    );
}

#[test]
fn of_a_status_that_is_written_nothing_else_is_looked_at() {
    let schema = Schema::structural(&json!({
        "type": "object",
        "required": ["spec"],
        "properties": {"status": {
            "type": "object",
            "properties": {"n": {"type": "integer"}, "list": {"type": "array", "maxItems": 1}},
            "anyOf": [{"required": ["n"]}],
        }},
    }));
    let change =
        |new: Value, old: Value| messages(&schema.validate_status_change(&new, &old).errors);
    assert!(change(json!({"status": {"n": 1}}), json!({})).is_empty());
    assert!(change(json!({}), json!({"status": {"n": 1}})).is_empty());
    assert_eq!(
        change(json!({"status": {"n": "x", "list": [1, 2]}}), json!({})),
        [
            "status.list: Too many: 2: must have at most 1 item",
            r#"status.n: Invalid value: "string": n in body must be of type integer: "string""#,
        ]
    );
    assert_eq!(
        change(json!({"status": {}}), json!({})),
        [
            r#"status: Invalid value: "": "" must validate at least one schema (anyOf)"#,
            "status.n: Required value"
        ]
    );
    assert_eq!(
        change(json!({"status": 1}), json!({"status": {"n": 1}})),
        [r#"status: Invalid value: "integer":  in body must be of type object: "integer""#]
    );
}

#[test]
fn what_may_stay_wrong_is_what_the_schema_knows_to_be_as_it_was() {
    let map = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
        "maxItems": 1,
        "items": {"type": "object", "properties": {"n": {"type": "string"}}},
    });
    let open = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true, "maxProperties": 0,
        "properties": {"a": {"type": "integer"}},
    });
    let change = |schema: &Value, old: Value, new: Value| {
        let found = of(schema).validate_change(&json!({"v": new}), Some(&json!({"v": old})));
        messages(&found.errors)
    };
    let item = |n: &str| json!({"n": n});
    let turned = change(&map, json!([item("a"), item("b")]), json!([item("b"), item("a")]));
    assert!(turned.is_empty(), "{turned:?}");
    assert_eq!(change(&map, json!([item("a"), item("b")]), json!([item("a"), item("c")])).len(), 1);
    assert!(change(&open, json!({"a": 1}), json!({"a": 1})).is_empty());
    let unknown = change(&open, json!({"b": 1}), json!({"b": 1}));
    assert_eq!(unknown, ["v: Too many: 1: must have at most 0 items"]);
}
