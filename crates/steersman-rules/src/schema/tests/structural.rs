//! Schemas of custom resources.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::schema::{ADDED_MAX, DefaultsTooLarge, Schema};

fn widget() -> Schema {
    Schema::structural(&json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {
                    "size": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 10},
                    "name": {"type": "string", "minLength": 2, "maxLength": 5},
                    "mode": {"type": "string", "enum": ["Fast", "Slow"], "default": "Fast"},
                    "port": {"x-kubernetes-int-or-string": true},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 3,
                             "items": {"type": "string"}},
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name", "zone"],
                        "items": {"type": "object", "required": ["name"], "properties": {
                            "name": {"type": "string"},
                            "zone": {"type": "string", "default": "here"},
                            "weight": {"type": "number", "multipleOf": 0.5, "exclusiveMinimum": true, "minimum": 0},
                        }},
                    },
                    "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
                    "note": {"type": "string", "nullable": true, "default": "none"},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                             "properties": {"known": {"type": "object", "properties": {}}}},
                    "object": {"type": "object", "x-kubernetes-embedded-resource": true,
                               "properties": {"spec": {"type": "object", "properties": {}}}},
                    "nested": {"type": "object", "default": {}, "properties": {
                        "depth": {"type": "integer", "default": 2},
                    }},
                },
            },
        },
    }))
}

fn with_spec(spec: Value) -> Value {
    let mut widget = json!({"apiVersion": "demo/v1", "kind": "Widget", "metadata": {"name": "w"}});
    widget["spec"] = spec;
    widget
}

fn mistakes(spec: Value) -> Vec<String> {
    widget().validate(&with_spec(spec)).iter().map(FieldError::message).collect()
}

#[test]
fn pruning_follows_the_schema_into_every_corner() {
    let mut object = with_spec(json!({
        "size": 1, "unknown": true,
        "free": {"anything": {"goes": 1}, "known": {"but": "not here"}},
        "parts": [{"name": "a", "colour": "red"}],
        "limits": {"any": 1},
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "x": 1}, "spec": {"a": 1}},
    }));
    object["metadata"]["x"] = json!(1);
    object["status"] = json!({"not": "declared"});
    let unknown = widget().unknown_fields(&object);
    assert_eq!(
        unknown,
        [
            "metadata.x",
            "spec.free.known.but",
            "spec.object.metadata.x",
            "spec.object.spec.a",
            "spec.parts[0].colour",
            "spec.unknown",
            "status",
        ]
    );
    widget().prune(&mut object);
    assert_eq!(
        object,
        with_spec(json!({
            "size": 1,
            "free": {"anything": {"goes": 1}, "known": {}},
            "parts": [{"name": "a"}],
            "limits": {"any": 1},
            "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
        }))
    );
}

#[test]
fn defaults_fill_what_is_missing_outermost_first() {
    let mut object = with_spec(json!({"size": null, "parts": [{"name": "a"}], "note": null}));
    widget().apply_defaults(&mut object).unwrap();
    assert_eq!(
        object["spec"],
        json!({
            "mode": "Fast",
            "note": null,
            "nested": {"depth": 2},
            "parts": [{"name": "a", "zone": "here"}],
        }),
        "null is a value only where the schema says so"
    );
}

#[test]
fn a_good_object_has_no_mistakes() {
    let spec = json!({
        "size": 3, "name": "abc", "mode": "Slow", "port": "http", "tags": ["a", "b"],
        "parts": [{"name": "a"}, {"name": "a", "zone": "there", "weight": 1.5}],
        "limits": {"cpu": 1}, "note": null,
    });
    assert_eq!(mistakes(spec), [""; 0]);
}

#[test]
fn mistakes_are_worded_as_kubernetes_words_them() {
    let cases = [
        (
            json!({"size": "big"}),
            r#"spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#,
        ),
        (json!({}), "spec.size: Required value"),
        (
            json!({"size": 0}),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        ),
        (
            json!({"size": 11}),
            "spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10",
        ),
        (
            json!({"size": 1, "name": "a"}),
            r#"spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long"#,
        ),
        (json!({"size": 1, "name": "abcdef"}), "spec.name: Too long: may not be more than 5 bytes"),
        (
            json!({"size": 1, "mode": "Odd"}),
            r#"spec.mode: Unsupported value: "Odd": supported values: "Fast", "Slow""#,
        ),
        (
            json!({"size": 1, "tags": ["a", "b", "c", "d"]}),
            "spec.tags: Too many: 4: must have at most 3 items",
        ),
        (json!({"size": 1, "tags": ["a", "a"]}), r#"spec.tags[1]: Duplicate value: "a""#),
        (
            json!({"size": 1, "parts": [
                {"name": "a", "zone": "here"}, {"name": "a", "zone": "here"},
                {"name": "a", "zone": "here"},
            ]}),
            r#"spec.parts[1]: Duplicate value: {"name":"a","zone":"here"}"#,
        ),
        (
            json!({"size": 1, "parts": [{"name": "a", "weight": 0.0}]}),
            "spec.parts[0].weight: Invalid value: 0: spec.parts[0].weight in body should be greater than 0",
        ),
        (json!({"size": 1, "parts": [{}]}), "spec.parts[0].name: Required value"),
        (
            json!({"size": 1, "limits": {"cpu": "1"}}),
            r#"spec.limits.cpu: Invalid value: "string": spec.limits.cpu in body must be of type integer: "string""#,
        ),
        (
            json!({"size": 1, "port": true}),
            r#"spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean""#,
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(mistakes(spec.clone()), [expected], "{spec}");
    }
}

#[test]
fn only_the_metadata_of_a_custom_resource_is_decoded() {
    let mut object = with_spec(json!({"size": "big"}));
    assert_eq!(widget().type_errors(&object), [""; 0]);
    object["metadata"]["labels"] = json!({"a": 1});
    assert_eq!(
        widget().type_errors(&object),
        [
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string"
        ]
    );
}

#[test]
fn without_a_schema_everything_is_kept() {
    let object = json!({"spec": {"anything": [1, {"goes": null}]}});
    let mut same = object.clone();
    Schema::untyped().prune(&mut same);
    Schema::untyped().apply_defaults(&mut same).unwrap();
    assert_eq!(same, object);
    assert!(Schema::untyped().validate(&object).is_empty());
    assert!(Schema::untyped().unknown_fields(&object).is_empty());
}

/// The mistakes in `{"v": value}` where the schema says this of `v`.
fn mistakes_of(schema: &Value, value: &Value) -> Vec<String> {
    let root = json!({"type": "object", "properties": {"v": schema}});
    let errors = Schema::structural(&root).validate(&json!({"v": value}));
    errors.iter().map(FieldError::message).collect()
}

#[test]
fn every_rule_of_a_schema_is_checked_and_worded_as_upstream_words_it() {
    for (schema, good, bad, texts) in [
        (
            json!({"type": "string", "pattern": "^[a-z]+$"}),
            json!("abc"),
            json!("a1"),
            vec![r#"v: Invalid value: "a1": v in body should match '^[a-z]+$'"#],
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("2024-01-01T00:00:00Z"),
            json!("today"),
            vec![r#"v: Invalid value: "today": v in body must be of type date-time: "today""#],
        ),
        (
            json!({"type": "string", "format": "colour"}),
            json!("x"),
            json!(1),
            vec![r#"v: Invalid value: "integer": v in body must be of type string: "integer""#],
        ),
        (
            json!({"type": "number", "multipleOf": 0.1}),
            json!(0.3),
            json!(0.25),
            vec!["v: Invalid value: 0.25: v in body should be a multiple of 0.1"],
        ),
        (
            json!({"type": "array", "items": {"type": "integer"}, "uniqueItems": true}),
            json!([1, 2]),
            json!([1, 1]),
            vec![r#"v: Invalid value: "": v in body shouldn't contain duplicates"#],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1}),
            json!({"a": "b"}),
            json!({"a": "b", "c": "d"}),
            vec!["v: Too many: 2: must have at most 1 item"],
        ),
    ] {
        assert_eq!(mistakes_of(&schema, &good), Vec::<String>::new(), "{schema}");
        assert_eq!(mistakes_of(&schema, &bad), texts, "{schema}");
    }
}

#[test]
fn what_other_schemas_say_of_a_value_is_checked_too() {
    let short = json!({"maxLength": 2});
    for (schema, good, bad, texts) in [
        (
            json!({"type": "string", "anyOf": [{"enum": ["x"]}, {"pattern": "^y"}]}),
            json!("yes"),
            json!("no"),
            vec![
                r#"<nil>: Invalid value: "": "v" must validate at least one schema (anyOf)"#,
                r#"v: Unsupported value: "no": supported values: "x""#,
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"a": "1"}),
            json!({"a": "1", "b": "2"}),
            vec![
                r#"<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
            ],
        ),
        (
            json!({"type": "string", "allOf": [short, {"pattern": "a"}]}),
            json!("ba"),
            json!("aaa"),
            vec![
                "v: Too long: may not be more than 2 bytes",
                r#"<nil>: Invalid value: "": "v" must validate all the schemas (allOf)"#,
            ],
        ),
        (
            json!({"type": "string", "not": {"enum": ["x"]}}),
            json!("y"),
            json!("x"),
            vec![r#"<nil>: Invalid value: "": "v" must not validate the schema (not)"#],
        ),
    ] {
        assert_eq!(mistakes_of(&schema, &good), Vec::<String>::new(), "{schema}");
        assert_eq!(mistakes_of(&schema, &bad), texts, "{schema}");
    }
}

#[test]
fn alternatives_look_only_at_what_they_speak_of() {
    let schema = json!({
        "type": "object",
        "properties": {"kind": {"type": "string"}, "size": {"type": "integer"}},
        "anyOf": [
            {"properties": {"kind": {"enum": ["big"]}, "size": {"minimum": 10}}},
            {"properties": {"kind": {"enum": ["small"]}}},
        ],
    });
    assert!(mistakes_of(&schema, &json!({"kind": "small", "size": 1})).is_empty());
    assert!(mistakes_of(&schema, &json!({"kind": "big", "size": 10})).is_empty());
    assert!(!mistakes_of(&schema, &json!({"kind": "big", "size": 9})).is_empty());
}

/// A schema of a few kilobytes whose defaults, in lists within lists, make hundreds of megabytes.
fn amplifying(levels: usize) -> Value {
    let inner = json!({"type": "object", "properties": {"a": {"type": "string", "default": "x"}}});
    (0..levels).fold(inner, |below, _| {
        let many: Vec<Value> = vec![json!({}); 100];
        let list = json!({"type": "array", "items": below, "default": many});
        json!({"type": "object", "properties": {"a": list}})
    })
}

#[test]
fn defaults_that_add_up_to_more_than_an_object_are_refused() {
    let of = |levels: usize| {
        Schema::structural(&json!({"type": "object", "properties": {"spec": amplifying(levels)}}))
    };
    let mut object = json!({"spec": {}});
    of(2).apply_defaults(&mut object).unwrap();
    assert_eq!(object["spec"]["a"][99]["a"][99]["a"], "x");
    let mut object = json!({"spec": {}});
    assert_eq!(of(4).apply_defaults(&mut object), Err(DefaultsTooLarge));
    // What was added before that is bounded, too.
    assert!(object.to_string().len() < 2 * ADDED_MAX);
}

#[test]
fn one_large_default_in_many_items_is_refused() {
    let large = "x".repeat(100_000);
    let item = json!({"type": "object", "properties": {"a": {"type": "string", "default": large}}});
    let schema = Schema::structural(&json!({"type": "object", "properties": {
        "items": {"type": "array", "items": item},
    }}));
    let mut few = json!({"items": vec![json!({}); 15]});
    schema.apply_defaults(&mut few).unwrap();
    let mut many = json!({"items": vec![json!({}); 40_000]});
    assert_eq!(schema.apply_defaults(&mut many), Err(DefaultsTooLarge));
    assert!(many.to_string().len() < 2 * ADDED_MAX);
}

/// Where a mistake is costs nothing until there is one.
#[test]
fn mistakes_of_a_deep_and_wide_object_are_bounded() {
    let schema = Schema::structural(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "additionalProperties": {
            "type": "array", "items": {"type": "string"},
        }},
    }}));
    let key = "k".repeat(100_000);
    let wrong = vec![json!(1); 20_000];
    let errors = schema.validate(&json!({"spec": {key.as_str(): wrong}}));
    assert_eq!(errors.len(), 1000);
    assert!(errors.iter().all(|error| error.message().len() < 1000));
    let unknown = json!({"metadata": {key.as_str(): 1}});
    assert!(schema.unknown_fields(&unknown)[0].len() < 300);
}
