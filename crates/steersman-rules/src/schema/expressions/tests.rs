//! Rules as a definition's author writes them, and what Kubernetes says of them.

use serde_json::{Value, json};

use crate::field::FieldError;
use crate::schema::{Mistakes, Schema, check_expressions};

/// A schema whose spec has these fields and rules.
fn schema(properties: Value, rules: Value) -> Value {
    let mut spec = json!({"type": "object"});
    spec["properties"] = properties;
    spec["x-kubernetes-validations"] = rules;
    json!({"type": "object", "properties": {"spec": spec}})
}

fn messages(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(FieldError::message).collect()
}

fn created(schema: &Value, spec: Value) -> Vec<String> {
    let mut object = json!({});
    object["spec"] = spec;
    let found = Schema::structural(schema).validate_change(&object, None);
    messages(&found.errors)
}

fn updated(schema: &Value, old: Value, new: Value) -> Mistakes {
    let [old, new] = [old, new].map(|spec| json!({"spec": spec}));
    Schema::structural(schema).validate_change(&new, Some(&old))
}

fn refused(schema: &Value) -> Vec<String> {
    messages(&check_expressions(schema, "schema", &|_| true))
}

#[test]
fn an_object_that_breaks_a_rule_is_refused_with_its_message_and_reason() {
    let replicas = json!({"min": {"type": "integer"}, "max": {"type": "integer"}});
    let told = |rule: Value| {
        let schema = schema(replicas.clone(), json!([rule]));
        assert_eq!(refused(&schema), [""; 0]);
        assert_eq!(created(&schema, json!({"min": 1, "max": 2})), [""; 0]);
        created(&schema, json!({"min": 3, "max": 2})).join("\n")
    };
    let rule = "self.min <= self.max";
    let path = ".max";
    for (given, expected) in [
        (json!({"rule": rule}), "spec: Invalid value: failed rule: self.min <= self.max"),
        (json!({"rule": rule, "message": "too few"}), "spec: Invalid value: too few"),
        (
            json!({"rule": rule, "messageExpression": "self.max < 3 ? 'max is low' : ''"}),
            "spec: Invalid value: max is low",
        ),
        (
            json!({"rule": rule, "reason": "FieldValueForbidden", "message": "no"}),
            "spec: Forbidden: no",
        ),
        (
            json!({"rule": rule, "reason": "FieldValueRequired", "fieldPath": path, "message": "m"}),
            "spec.max: Required value: m",
        ),
    ] {
        assert_eq!(told(given), expected);
    }
}

#[test]
fn a_scalar_that_breaks_a_rule_is_shown() {
    let name = json!({"name": {
        "type": "string", "x-kubernetes-validations": [{"rule": "self.startsWith('a')"}],
    }});
    let schema = schema(name, json!([]));
    let expected = "spec.name: Invalid value: \"b\": failed rule: self.startsWith('a')";
    assert_eq!(created(&schema, json!({"name": "b"})), [expected]);
}

#[test]
fn an_evaluation_that_fails_says_why() {
    let fields = json!({"a": {"type": "integer"}, "any": {"x-kubernetes-int-or-string": true}});
    let told = |rule: &str| {
        created(&schema(fields.clone(), json!([{"rule": rule}])), json!({"any": "x"})).join("\n")
    };
    assert_eq!(
        told("self.a > 1"),
        "spec: Invalid value: \"object\": no such key: a evaluating rule: self.a > 1"
    );
    assert_eq!(
        told("self.any + 1 == 2"),
        "spec: Invalid value: \"object\": 'no such overload': call arguments did not match a \
         supported operator, function or macro signature for rule: self.any + 1 == 2"
    );
}

#[test]
fn rules_are_not_asked_about_what_the_schema_refuses() {
    let schema = schema(json!({"a": {"type": "integer"}}), json!([{"rule": "self.a > 1"}]));
    let told = created(&schema, json!({"a": "x"}));
    assert_eq!(
        told[1..],
        ["<nil>: Invalid value: null: some validation rules were not checked because the object \
          was invalid; correct the existing errors to complete validation"]
    );
}

#[test]
fn transition_rules_compare_and_rest_where_there_is_nothing_to_compare() {
    let fixed = json!([{"rule": "self.a == oldSelf.a", "message": "a is immutable"}]);
    let fixed = schema(json!({"a": {"type": "integer"}}), fixed);
    assert_eq!(created(&fixed, json!({"a": 1})), [""; 0]);
    assert_eq!(messages(&updated(&fixed, json!({"a": 1}), json!({"a": 1})).errors), [""; 0]);
    let changed = updated(&fixed, json!({"a": 1}), json!({"a": 2}));
    assert_eq!(messages(&changed.errors), ["spec: Invalid value: a is immutable"]);

    let first = json!([{"rule": "oldSelf.hasValue() || self.a == 0", "optionalOldSelf": true}]);
    let first = schema(json!({"a": {"type": "integer"}}), first);
    assert_eq!(refused(&first), [""; 0]);
    assert_eq!(created(&first, json!({"a": 0})), [""; 0]);
    assert_eq!(created(&first, json!({"a": 1})).len(), 1);
    assert_eq!(messages(&updated(&first, json!({"a": 0}), json!({"a": 1})).errors), [""; 0]);
}

#[test]
fn items_of_a_map_are_compared_with_those_of_the_same_keys() {
    let list = json!({"ports": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {
            "type": "object",
            "required": ["name"],
            "properties": {"name": {"type": "string"}, "port": {"type": "integer"}},
            "x-kubernetes-validations": [{"rule": "self.port >= oldSelf.port"}],
        },
    }});
    let schema = schema(list, json!([]));
    let port = |name: &str, port: u32| json!({"name": name, "port": port});
    let old = json!({"ports": [port("a", 1), port("b", 5)]});
    let turned = json!({"ports": [port("b", 5), port("a", 1), port("new", 0)]});
    assert_eq!(messages(&updated(&schema, old.clone(), turned).errors), [""; 0]);
    let less = json!({"ports": [port("b", 4)]});
    let expected = "spec.ports[0]: Invalid value: failed rule: self.port >= oldSelf.port";
    assert_eq!(messages(&updated(&schema, old, less).errors), [expected]);
}

#[test]
fn what_was_wrong_and_has_not_changed_is_a_warning() {
    let fields = json!({
        "bad": {"type": "string", "maxLength": 2, "x-kubernetes-validations": [{"rule": "self != 'xx'"}]},
        "other": {"type": "integer"},
    });
    let schema = schema(fields, json!([]));
    let object = |bad: &str, other: u32| json!({"bad": bad, "other": other});
    let found = updated(&schema, object("xx", 1), object("xx", 2));
    assert_eq!(messages(&found.errors), [""; 0]);
    assert_eq!(found.warnings, ["spec.bad: Invalid value: \"xx\": failed rule: self != 'xx'"]);
    let long = updated(&schema, object("long", 1), object("long", 2));
    assert_eq!(messages(&long.errors), [""; 0], "nor is what its schema would refuse");
    assert!(!updated(&schema, object("long", 1), object("longer", 1)).errors.is_empty());
}

#[test]
fn rules_see_names_that_must_be_escaped_and_the_metadata_of_the_root() {
    let fields = json!({"x-y": {"type": "integer"}, "namespace": {"type": "string"}});
    let mut schema = schema(
        fields,
        json!([
            {"rule": "self.x__dash__y > 0"}, {"rule": "self.__namespace__ != ''"},
        ]),
    );
    let root = "self.metadata.name.startsWith('w') && self.kind == 'Widget'";
    schema["x-kubernetes-validations"] = json!([{"rule": root}]);
    assert_eq!(refused(&schema), [""; 0]);
    let object = json!({
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "x"},
        "spec": {"x-y": 1, "namespace": "n"},
    });
    let found = Schema::structural(&schema).validate_change(&object, None);
    assert_eq!(messages(&found.errors), [format!("<nil>: Invalid value: failed rule: {root}")]);
}

#[test]
fn a_rule_that_does_not_compile_is_refused_with_its_place() {
    let schema = schema(json!({"a": {"type": "integer"}}), json!([{"rule": "self.b > 1"}]));
    assert_eq!(
        refused(&schema),
        ["schema.properties[spec].x-kubernetes-validations[0].rule: Invalid value: \
          {\"Rule\":\"self.b \\u003e 1\",\"Message\":\"\",\"MessageExpression\":\"\",\"Reason\":null,\
          \"FieldPath\":\"\",\"OptionalOldSelf\":null}: compilation failed: ERROR: <input>:1:5: \
          undefined field 'b'\n | self.b > 1\n | ....^"]
    );
}

#[test]
fn rules_are_bools_and_their_messages_texts() {
    let refused = |rule: Value| {
        let schema = schema(json!({"a": {"type": "integer"}}), json!([rule]));
        refused(&schema).join("\n")
    };
    assert!(refused(json!({"rule": "self.a"})).ends_with("cel expression must evaluate to a bool"));
    let told = refused(json!({"rule": "true", "messageExpression": "self.a"}));
    assert!(told.ends_with("messageExpression must evaluate to a string"), "{told}");
    let told = refused(json!({"rule": "true", "optionalOldSelf": true}));
    assert!(told.ends_with("may not be set if oldSelf is not used in rule"), "{told}");
}

#[test]
fn old_self_has_no_place_where_items_cannot_be_found_again() {
    let list = json!({"list": {"type": "array", "maxItems": 3, "items": {
        "type": "string", "maxLength": 5, "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
    }}});
    let told = refused(&schema(list, json!([]))).join("\n");
    let within = "within schema.properties[spec].properties[list]";
    assert!(told.ends_with(within), "{told}");
}

#[test]
fn rules_that_could_cost_too_much_are_refused() {
    let rule = "self.all(x, self.all(y, x == y || x != y))";
    let list = |limits: Value| {
        let mut list = json!({
            "type": "array",
            "items": {"type": "string"},
            "x-kubernetes-validations": [{"rule": rule}],
        });
        list.as_object_mut().unwrap().extend(limits.as_object().unwrap().clone());
        schema(json!({"list": list}), json!([]))
    };
    let told = refused(&list(json!({}))).join("\n");
    assert!(told.contains("rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"), "{told}");
    assert!(
        told.contains("contributed to estimated rule cost total exceeding cost limit"),
        "{told}"
    );
    let small = list(json!({"maxItems": 10, "items": {"type": "string", "maxLength": 10}}));
    assert_eq!(refused(&small), [""; 0]);
}

#[test]
fn an_evaluation_that_costs_too_much_ends() {
    // Found while it runs, as the object is far larger than the schema lets one expect.
    let rule = "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))";
    let list = json!({"list": {
        "type": "array",
        "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": rule}],
    }});
    let numbers: Vec<u32> = (0..300).collect();
    let told = created(&schema(list, json!([])), json!({"list": numbers}));
    assert_eq!(told.len(), 1);
    assert!(told[0].contains("no further validation rules will be run"), "{told:?}");
}

#[test]
fn a_message_sees_what_is_replaced_as_it_is_beside_a_rule_that_asks_for_it() {
    let told = |more: Value| {
        let rules = json!([
            {"rule": "self.a > 1", "messageExpression": "'was ' + string(oldSelf.a)", "message": "small"},
            more,
        ]);
        let schema = schema(json!({"a": {"type": "integer"}}), rules);
        messages(&updated(&schema, json!({"a": 5}), json!({"a": 1})).errors)
    };
    assert_eq!(told(json!({"rule": "self.a < 9"})), ["spec: Invalid value: small"]);
    assert_eq!(told(json!({"rule": "oldSelf.a < 9"})), ["spec: Invalid value: was 5"]);
    let optional = json!([{
        "rule": "oldSelf.hasValue() && self.a > 1", "optionalOldSelf": true, "message": "small",
        "messageExpression": "'was ' + string(oldSelf.value().a)",
    }]);
    let schema = schema(json!({"a": {"type": "integer"}}), optional);
    let found = updated(&schema, json!({"a": 5}), json!({"a": 1}));
    assert_eq!(messages(&found.errors), ["spec: Invalid value: small"]);
}

#[test]
fn what_the_schema_does_not_know_cannot_be_seen_to_have_stayed() {
    let mut schema = schema(json!({"a": {"type": "integer"}}), json!([{"rule": "self.a > 1"}]));
    let object = json!({"metadata": {"name": "a"}, "spec": {"a": 1}});
    let found = Schema::structural(&schema).validate_change(&object, Some(&object));
    assert_eq!((found.errors.len(), found.warnings.len()), (0, 1));
    schema["x-kubernetes-validations"] = json!([{"rule": "self.spec.a > 1"}]);
    let found = Schema::structural(&schema).validate_change(&object, Some(&object));
    assert_eq!(messages(&found.errors), ["<nil>: Invalid value: failed rule: self.spec.a > 1"]);
    assert_eq!(found.warnings.len(), 1);
}

/// The list is compared once, not for each item that is new in it.
#[test]
fn of_many_items_that_break_a_rule_some_are_told() {
    let item = json!({
        "type": "object", "required": ["n"], "properties": {"n": {"type": "string"}},
        "x-kubernetes-validations": [{"rule": "self.n == ''"}],
    });
    let list = json!({
        "type": "array", "items": item,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
    });
    let schema = schema(json!({"list": list}), json!([]));
    let named = |kind: &str| -> Value {
        (0..5000).map(|number| json!({"n": format!("{kind}{number}")})).collect()
    };
    let found = updated(&schema, json!({"list": named("a")}), json!({"list": named("b")}));
    assert_eq!((found.errors.len(), found.warnings.len()), (1000, 0));
    let found = updated(&schema, json!({"list": named("a")}), json!({"list": named("a")}));
    assert_eq!((found.errors.len(), found.warnings.len()), (0, 1000));
}
