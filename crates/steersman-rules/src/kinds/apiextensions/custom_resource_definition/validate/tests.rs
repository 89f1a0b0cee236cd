use serde_json::{Value, json};

use super::validate;
use crate::field::FieldError;

fn definition() -> Value {
    json!({
        "metadata": {"name": "shops.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {
                "plural": "shops", "singular": "shop", "kind": "Shop", "listKind": "ShopList",
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
                }}},
            }],
            "conversion": {"strategy": "None"},
        },
    })
}

/// The complaints about the definition after one change, given as a JSON pointer and a value.
fn complaints(at: &str, value: &Value) -> Vec<String> {
    let mut object = definition();
    let (parent, key) = at.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key] = value.clone();
    validate(&object, None).iter().map(FieldError::message).collect()
}

#[test]
fn a_sound_definition_has_no_mistakes() {
    let found: Vec<_> = validate(&definition(), None).iter().map(FieldError::message).collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn names_scope_and_versions_are_checked() {
    let cases = [
        ("/spec/group", json!(""), "spec.group: Required value"),
        (
            "/spec/group",
            json!("example"),
            "spec.group: Invalid value: \"example\": should be a domain with at least one dot",
        ),
        (
            "/spec/scope",
            json!("World"),
            "spec.scope: Unsupported value: \"World\": supported values: \"Cluster\", \
             \"Namespaced\"",
        ),
        ("/spec/names/singular", json!(""), "spec.names.singular: Required value"),
        (
            "/spec/names/listKind",
            json!("Shop"),
            "spec.names.listKind: Invalid value: \"Shop\": kind and listKind may not be the same",
        ),
        (
            "/metadata/name",
            json!("x"),
            "metadata.name: Invalid value: \"x\": must be spec.names.plural+\".\"+spec.group",
        ),
        (
            "/spec/preserveUnknownFields",
            json!(true),
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
             x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ),
        (
            "/spec/versions/0/schema",
            json!(null),
            "spec.versions[0].schema.openAPIV3Schema: Required value",
        ),
        (
            "/spec/versions/0/deprecationWarning",
            json!("soon"),
            "spec.versions[0].deprecationWarning: Invalid value: \"soon\": can only be set for \
             deprecated versions",
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Webhook"}),
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set \
             to Webhook",
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Webhook", "webhook": {"clientConfig": {
                "service": {"name": "a", "namespace": "b"}}}}),
            "spec.conversion.conversionReviewVersions: Required value",
        ),
    ];
    for (at, value, expected) in cases {
        let found = complaints(at, &value);
        assert!(found.contains(&expected.to_owned()), "{at}: {found:?}");
    }
}

#[test]
fn versions_have_names_of_their_own_and_one_is_stored() {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema":
            {"type": "object"}}})
    };
    for (versions, expected) in [
        (json!([version("v1", true), version("v1", false)]), "must contain unique version names"),
        (
            json!([version("v1", true), version("v2", true)]),
            "must have exactly one version marked as storage version",
        ),
    ] {
        let found = complaints("/spec/versions", &versions);
        assert!(found.iter().any(|message| message.ends_with(expected)), "{found:?}");
    }
}

#[test]
fn what_is_wrong_with_all_versions_is_told_of_all_and_of_what_is_stored() {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema":
            {"type": "object"}}})
    };
    let shown = |name: &str, storage: bool| {
        format!(
            "{{\"Name\":\"{name}\",\"Served\":true,\"Storage\":{storage},\"Deprecated\":false,\
             \"DeprecationWarning\":null,\"Schema\":null,\"Subresources\":null,\
             \"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}"
        )
    };
    const ONE: &str = "must have exactly one version marked as storage version";
    assert_eq!(
        complaints("/spec/versions", &json!([version("v1", true), version("v2", true)])),
        [
            format!(
                "spec.versions: Invalid value: [{},{}]: {ONE}",
                shown("v1", true),
                shown("v2", true)
            ),
            "status.storedVersions: Invalid value: [\"v1\"]: must have the storage version v2"
                .into(),
        ]
    );
    assert_eq!(
        complaints("/spec/versions", &json!([version("v1", false)])),
        [
            format!("spec.versions: Invalid value: [{}]: {ONE}", shown("v1", false)),
            "status.storedVersions: Invalid value: null: must have at least one stored version"
                .into(),
        ]
    );
}

/// The complaints about two changes at once stand in the order of Kubernetes: the name first, then
/// the spec from its group to its conversion, then the rest.
#[test]
fn complaints_stand_in_the_order_of_kubernetes() {
    let mut object = definition();
    object["metadata"]["name"] = json!("x.example.com");
    object["spec"]["scope"] = json!("World");
    object["spec"]["names"]["kind"] = json!("Shop Keeper");
    object["spec"]["names"]["singular"] = json!("");
    object["spec"]["versions"][0]["deprecated"] = json!(true);
    object["spec"]["versions"][0]["deprecationWarning"] = json!("");
    object["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "", "type": "string", "jsonPath": ".spec"}]);
    object["spec"]["versions"][0]["storage"] = json!(false);
    object["spec"]["conversion"] = json!({"strategy": "Magic"});
    object["spec"]["preserveUnknownFields"] = json!(true);
    object["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["default"] =
        json!({});
    object["status"] = json!({"storedVersions": ["v0"]});
    let found = validate(&object, None);
    let fields: Vec<&str> = found.iter().map(|error| error.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "metadata.name",
            "spec.scope",
            "spec.preserveUnknownFields",
            "spec.versions[0].deprecationWarning",
            "spec.versions",
            "spec.names.singular",
            "spec.names.kind",
            "spec.additionalPrinterColumns[0].name",
            "spec.conversion.strategy",
            "spec.conversion.strategy",
            "status.storedVersions[0]",
            "spec.preserveUnknownFields",
        ]
    );
}

#[test]
fn a_deprecation_is_told_in_printable_words() {
    let of = |deprecated: bool, warning: &str| {
        let mut object = definition();
        object["spec"]["versions"][0]["deprecated"] = json!(deprecated);
        object["spec"]["versions"][0]["deprecationWarning"] = json!(warning);
        let found = validate(&object, None);
        let texts = found.iter().map(|error| error.text.rsplit_once(": ").unwrap().1.to_owned());
        texts.collect::<Vec<_>>()
    };
    let printable = "must only contain printable UTF-8 characters; non-printable character found";
    assert_eq!(of(true, "soon gone \u{fc}"), Vec::<String>::new());
    assert_eq!(of(false, ""), ["can only be set for deprecated versions"]);
    assert_eq!(of(true, ""), ["must not be an empty string"]);
    assert_eq!(of(true, "a\tb"), [format!("{printable} at index 1")]);
    assert_eq!(of(true, "ab\u{a0}"), [format!("{printable} at index 2")]);
    assert_eq!(of(true, &"x".repeat(257)), ["must be <= 256 characters long"]);
}

#[test]
fn a_default_satisfies_the_schema_that_it_stands_in() {
    let at = "spec.validation.openAPIV3Schema.properties[spec].default";
    let embedded = |default: Value| {
        json!({
            "type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true, "default": default,
        })
    };
    for (schema, expected) in [
        (json!({"type": "string", "default": "a", "minLength": 1}), vec![]),
        (json!({"type": "string", "nullable": true, "default": null, "minLength": 1}), vec![]),
        (
            json!({"type": "string", "default": "a", "maxLength": 0}),
            vec![format!("{at}: Too long: may not be more than 0 bytes")],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}}, "default": {"b": 1}}),
            vec![format!("{at}: Invalid value: {{\"b\":1}}: must not have unknown fields")],
        ),
        (
            json!({"type": "array", "default": [1, -1], "items": {"type": "integer", "minimum": 0}}),
            vec![format!(
                "{at}.[1]: Invalid value: -1: [1] in body should be greater than or equal to 0"
            )],
        ),
        (
            json!({"type": "integer", "default": 3, "x-kubernetes-validations": [
                {"rule": "self % 2 == 0", "message": "must be even"},
            ]}),
            vec![format!("{at}: Invalid value: 3: must be even")],
        ),
        (
            json!({"type": "object", "default": {"a": 3}, "properties": {"a": {
                "type": "integer", "x-kubernetes-validations": [{"rule": "self == 2"}],
            }}}),
            vec![format!("{at}.a: Invalid value: 3: failed rule: self == 2")],
        ),
        (embedded(json!({"apiVersion": "v1", "kind": "Pod"})), vec![]),
        (
            embedded(json!({"kind": "a b", "metadata": {"labels": {"a b": "c"}}})),
            vec![
                format!("{at}.apiVersion: Required value"),
                format!(
                    "{at}.kind: Invalid value: \"a b\": may have mixed case, but should otherwise \
                     match: a DNS-1035 label must consist of lower case alphanumeric characters or \
                     '-', start with an alphabetic character, and end with an alphanumeric character \
                     (e.g. 'my-name',  or 'abc-123', regex used for validation is \
                     '[a-z]([-a-z0-9]*[a-z0-9])?')"
                ),
                format!(
                    "{at}.metadata.labels: Invalid value: \"a b\": name part must consist of \
                     alphanumeric characters, '-', '_' or '.', and must start and end with an \
                     alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used \
                     for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                ),
            ],
        ),
    ] {
        let found = complaints("/spec/versions/0/schema/openAPIV3Schema/properties/spec", &schema);
        assert_eq!(found, expected, "{schema}");
    }
}

#[test]
fn rules_stand_where_values_have_a_type() {
    let nested = json!({"type": "string", "allOf": [
        {"x-kubernetes-validations": [{"rule": "true"}]},
    ]});
    let found = complaints("/spec/versions/0/schema/openAPIV3Schema/properties/spec", &nested);
    let at = "spec.validation.openAPIV3Schema.properties[spec].allOf[0].x-kubernetes-validations";
    assert_eq!(found, [format!("{at}: Forbidden: must be empty to be structural")]);
}

#[test]
fn a_group_of_kubernetes_needs_an_approval() {
    let mut object = definition();
    object["spec"]["group"] = json!("x.k8s.io");
    object["metadata"]["name"] = json!("shops.x.k8s.io");
    let missing = validate(&object, None);
    assert_eq!(missing[0].field, "metadata.annotations[api-approved.kubernetes.io]");
    for (given, fine) in
        [("unapproved, just a test", true), ("https://example.com/1", true), ("yes", false)]
    {
        object["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": given});
        assert_eq!(validate(&object, None).is_empty(), fine, "{given}");
    }
}

#[test]
fn a_schema_is_structural() {
    let at = "spec.validation.openAPIV3Schema.properties[spec]";
    let cases: Vec<(Value, Vec<String>)> = vec![
        (json!({"x-kubernetes-int-or-string": true}), vec![]),
        (json!({"x-kubernetes-preserve-unknown-fields": true}), vec![]),
        (
            json!({"x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}]}),
            vec![],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
            "anyOf": [{"required": ["a"]}, {"properties": {"a": {"minLength": 1}}}]}),
            vec![],
        ),
        (
            json!({}),
            vec![format!(
                "{at}.type: Required value: must not be empty for specified object fields"
            )],
        ),
        (json!({"type": "array"}), vec![format!("{at}.items: Required value: must be specified")]),
        (
            json!({"type": "array", "items": {}}),
            vec![format!(
                "{at}.items.type: Required value: must not be empty for specified array items"
            )],
        ),
        (
            json!({"type": "object", "anyOf": [{"type": "object"}]}),
            vec![format!("{at}.anyOf[0].type: Forbidden: must be empty to be structural")],
        ),
        (
            json!({"x-kubernetes-int-or-string": true,
            "x-kubernetes-preserve-unknown-fields": true}),
            vec![format!(
                "{at}.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if \
             x-kubernetes-int-or-string is true"
            )],
        ),
        (
            json!({"type": "object", "x-kubernetes-embedded-resource": true}),
            vec![format!(
                "{at}.properties: Required value: must not be empty if \
             x-kubernetes-embedded-resource is true without \
             x-kubernetes-preserve-unknown-fields"
            )],
        ),
    ];
    for (schema, expected) in cases {
        let found = complaints("/spec/versions/0/schema/openAPIV3Schema/properties/spec", &schema);
        assert_eq!(found, expected, "{schema}");
    }
}

#[test]
fn the_root_of_a_schema_is_an_object_with_its_own_metadata() {
    let root = "/spec/versions/0/schema/openAPIV3Schema";
    let at = "spec.validation.openAPIV3Schema";
    let cases = [
        (
            json!({"type": "string"}),
            format!("{at}.type: Invalid value: \"string\": must be object at the root"),
        ),
        (json!({}), format!("{at}.type: Required value: must not be empty at the root")),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            format!("{at}.additionalProperties: Forbidden: must not be used at the root"),
        ),
        (
            json!({"type": "object", "not": {"properties": {"a": {"minLength": 1}}}}),
            format!(
                "{at}.properties[a]: Required value: because it is defined in \
                 {at}.not.properties[a]"
            ),
        ),
        (
            json!({"type": "object", "nullable": true}),
            format!("{at}.nullable: Forbidden: nullable cannot be true at the root"),
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties":
            {"labels": {"type": "object"}}}}}),
            format!(
                "{at}.properties[metadata]: Forbidden: must not specify anything other than \
                     name and generateName, but metadata is implicitly specified"
            ),
        ),
        (
            json!({"type": "object", "properties": {"kind": {"type": "integer"}}}),
            format!("{at}.properties[kind].type: Invalid value: \"integer\": must be string"),
        ),
    ];
    for (schema, expected) in cases {
        assert_eq!(complaints(root, &schema), [expected], "{schema}");
    }
}

#[test]
fn extensions_fit_the_type_and_each_other() {
    let at = "spec.validation.openAPIV3Schema.properties[spec]";
    let item = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let cases: Vec<(Value, Vec<String>)> = vec![
        (
            json!({"type": "string", "uniqueItems": true}),
            vec![format!(
                "{at}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime \
             complexity becomes quadratic"
            )],
        ),
        (
            json!({"type": "text"}),
            vec![format!(
                "{at}.type: Unsupported value: \"text\": supported values: \"array\", \"boolean\", \
             \"integer\", \"number\", \"object\", \"string\""
            )],
        ),
        (
            json!({"type": "string", "$ref": "#/x"}),
            vec![format!("{at}.$ref: Forbidden: $ref is not supported")],
        ),
        (
            json!({"type": "string", "x-kubernetes-map-type": "atomic"}),
            vec![format!(
                "{at}.type: Invalid value: \"string\": must be object if x-kubernetes-map-type is \
             specified"
            )],
        ),
        (
            json!({"type": "array", "items": item, "x-kubernetes-list-type": "map"}),
            vec![format!(
                "{at}.x-kubernetes-list-map-keys: Required value: must not be empty if \
             x-kubernetes-list-type is map"
            )],
        ),
        (
            json!({"type": "array", "items": item, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"]}),
            vec![format!(
                "{at}.items.properties[name].default: Required value: this property is in \
             x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )],
        ),
        (
            json!({"type": "array", "items": item, "x-kubernetes-list-type": "set"}),
            vec![format!(
                "{at}.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a \
             list with x-kubernetes-list-type=set"
            )],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
            "additionalProperties": {"type": "string"}}),
            vec![format!(
                "{at}.additionalProperties: Forbidden: additionalProperties and properties are \
             mutual exclusive"
            )],
        ),
        (
            json!({"type": "object", "x-kubernetes-validations": [{"rule": " "}]}),
            vec![format!(
                "{at}.x-kubernetes-validations[0].rule: Required value: rule is not specified"
            )],
        ),
    ];
    for (schema, expected) in cases {
        let found = complaints("/spec/versions/0/schema/openAPIV3Schema/properties/spec", &schema);
        assert_eq!(found, expected, "{schema}");
    }
}

#[test]
fn columns_scale_and_selectable_fields_are_checked() {
    let cases = [
        (
            "additionalPrinterColumns",
            json!([{"name": "A", "type": "int", "jsonPath": ".spec.a"}]),
            "spec.additionalPrinterColumns[0].type: Invalid value: \"int\": must be one of \
             boolean,date,integer,number,string",
        ),
        (
            "additionalPrinterColumns",
            json!([{"name": "A", "type": "date", "jsonPath": "spec.a"}]),
            "spec.additionalPrinterColumns[0].JSONPath: Invalid value: \"spec.a\": must be a \
             simple json path starting with .",
        ),
        (
            "subresources",
            json!({"scale": {"specReplicasPath": ".replicas",
            "statusReplicasPath": ".status.replicas"}}),
            "spec.subresources.scale.specReplicasPath: Invalid value: \".replicas\": should be a \
             json path under .spec",
        ),
        (
            "selectableFields",
            json!([{"jsonPath": ".spec"}]),
            "spec.selectableFields[0].jsonPath: Invalid value: \".spec\": must point to a field \
             of type string, boolean or integer. Enum string fields and strings with formats are \
             allowed.",
        ),
        (
            "selectableFields",
            json!([{"jsonPath": "spec.size"}]),
            "spec.selectableFields[0].jsonPath: Invalid value: \"spec.size\": is an invalid path: \
             expected [ or . but got: spec",
        ),
        (
            "selectableFields",
            json!([{"jsonPath": "é"}]),
            "spec.selectableFields[0].jsonPath: Invalid value: \"é\": is an invalid path: expected [ \
             or . but got: é",
        ),
        (
            "selectableFields",
            json!([{"jsonPath": ".spec[0]"}]),
            "spec.selectableFields[0].jsonPath: Invalid value: \".spec[0]\": is an invalid path: \
             array notation is not allowed",
        ),
        (
            "selectableFields",
            json!([{"jsonPath": ".spec.size"}, {"jsonPath": ".spec.size"}]),
            "spec.selectableFields[1].jsonPath: Duplicate value: \".spec.size\"",
        ),
    ];
    for (key, value, expected) in cases {
        assert_eq!(complaints(&format!("/spec/versions/0/{key}"), &value), [expected]);
    }
    let open = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "additionalProperties": {"type": "string"}},
            "metadatafoo": {"type": "string"},
        }}},
        "selectableFields": [{"jsonPath": ".spec.any"}, {"jsonPath": ".metadatafoo"}],
    });
    assert_eq!(complaints("/spec/versions", &json!([open])), Vec::<String>::new());
}

#[test]
fn what_may_stand_at_the_root_beside_a_status_is_told_by_the_names_of_go() {
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "maxProperties": 3}},
    });
    let found = complaints("/spec/versions", &json!([version]));
    let names = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum \
                 ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems \
                 MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields \
                 XValidations] fields are allowed at the root of the schema if the status \
                 subresource is enabled";
    assert!(found.iter().any(|error| error.ends_with(names)), "{found:?}");
}

#[test]
fn patterns_that_cannot_be_compiled_are_refused_and_too_many_of_them_as_well() {
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/name";
    let pattern = |pattern: &str| complaints(at, &json!({"type": "string", "pattern": pattern}));
    let field = "spec.validation.openAPIV3Schema.properties[spec].properties[name].pattern";
    assert_eq!(
        pattern("[a"),
        [format!(
            "{field}: Invalid value: \"[a\": must be a valid regular expression, but isn't: error \
             parsing regexp: missing closing ]: `[a`"
        )]
    );
    assert_eq!(pattern(r"^\Q.\E\d{1,1000}$"), Vec::<String>::new());
    let of = |text: fn(usize) -> String| {
        let part = |n: usize| (format!("f{n}"), json!({"type": "string", "pattern": text(n)}));
        let properties: serde_json::Map<String, Value> = (0..3000).map(part).collect();
        complaints(at, &json!({"type": "object", "properties": properties}))
    };
    let found = of(|n| format!("^{n}.{{1,900}}$"));
    assert_eq!(found.len(), 1);
    let why = "Forbidden: contributed to patterns of the definition that take more than 33554432 \
               bytes when compiled";
    assert!(found[0].ends_with(why), "{}", found[0]);
    assert_eq!(of(|_| "^same.{1,900}$".to_owned()), Vec::<String>::new());
    assert_eq!(of(|n| format!("^[a-z]{{1,9}}-{n}$")), Vec::<String>::new());
    // What comes to nothing is not tried again and again either.
    assert!(of(|n| format!("^{n}\\p{{L}}{{1000}}$")).len() < 10);
}

#[test]
fn long_names_in_a_schema_do_not_make_long_paths() {
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/name";
    let part = |n: usize| (format!("f{n}"), json!({"type": "odd"}));
    let properties: serde_json::Map<String, Value> = (0..2000).map(part).collect();
    let long = json!({"type": "object", "properties": {
        "k".repeat(100_000): {"type": "object", "properties": properties},
    }});
    let found = complaints(at, &long);
    assert_eq!(found.len(), 1000);
    assert!(found.iter().all(|complaint| complaint.len() < 1000));
}
