//! Expressions: what compiles, what it is estimated to cost, and what comes out.

use serde_json::{Value, json};

use super::{DEFINITIONS, Group, policies, table, with_spec};
use crate::step::{Scenario, Step};

const TABLE: &str = include_str!("expressions.txt");

/// How many expressions are rules of one definition.
const TOGETHER: usize = 25;

pub(super) fn scenarios(run: &str) -> Vec<Scenario> {
    let mut scenarios = vec![rules(run, "rule"), rules(run, "cost"), in_policies(run)];
    for word in ["value", "check"] {
        let expressions: Vec<String> = expressions(word).collect();
        let numbered = expressions.chunks(TOGETHER).enumerate();
        scenarios.extend(numbered.map(|(index, chunk)| shown(run, word, index + 1, chunk)));
    }
    scenarios
}

fn expressions(wanted: &'static str) -> impl Iterator<Item = String> {
    let lines = table::lines(TABLE).filter(move |(word, _)| *word == wanted);
    lines.map(|(_, expression)| expression.replace('⏎', "\n"))
}

/// Each as the rule of a definition.
fn rules(run: &str, word: &'static str) -> Scenario {
    let group = Group::new(run, word);
    let mut scenario = group.scenario(format!("expressions/{word}"));
    for expression in expressions(word) {
        let mut spec = if word == "cost" { lists() } else { fields() };
        spec["x-kubernetes-validations"] = json!([{"rule": expression, "message": "no"}]);
        let definition = group.definition(&with_spec(&spec));
        scenario.add(Step::post(expression, DEFINITIONS, definition).dry());
    }
    scenario
}

/// Each as a validation of a policy.
fn in_policies(run: &str) -> Scenario {
    let mut scenario = Scenario::new("expressions/policy", crate::step::Tidy::default());
    for expression in expressions("policy") {
        let mut policy = policies::validating(&format!("cmp-{run}-expression"), run);
        policy["spec"]["validations"] = json!([{"expression": expression, "message": "no"}]);
        scenario.add(Step::post(expression, policies::VALIDATING, policy).dry());
    }
    scenario
}

/// Each as a rule that only an object fails which names its number.
fn shown(run: &str, word: &str, number: usize, expressions: &[String]) -> Scenario {
    let group = Group::new(run, &format!("{word}{number}"));
    let mut scenario = group.scenario(format!("expressions/{word}-{number}"));
    let numbered = expressions.iter().enumerate();
    let rules = numbered.map(|(case, expression)| match word {
        "value" => json!({"rule": format!("self.case != {case}"),
            "messageExpression": format!("'%s'.format([{expression}])")}),
        _ => json!({"rule": format!("self.case != {case} || ({expression})"), "message": "false"}),
    });
    let mut spec = fields();
    spec["x-kubernetes-validations"] = rules.collect();
    group.define(&with_spec(&spec), &mut scenario);
    for (case, expression) in expressions.iter().enumerate() {
        let mut value = values();
        value["case"] = case.into();
        scenario.add(Step::post(expression, &group.things(), group.thing("x", &value)).dry());
    }
    scenario
}

/// The schema of what expressions are about: one field of every type.
fn fields() -> Value {
    let text = json!({"type": "string", "maxLength": 20});
    let object = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    json!({"type": "object", "properties": {
        "case": {"type": "integer"}, "i": {"type": "integer"}, "s": text, "b": {"type": "boolean"},
        "n": {"type": "number"},
        "list": {"type": "array", "maxItems": 10, "items": {"type": "integer"}},
        "strings": {"type": "array", "maxItems": 10, "items": text},
        "map": {"type": "object", "maxProperties": 10, "additionalProperties": text},
        "o": object, "objects": {"type": "array", "maxItems": 10, "items": object},
        "e": {"type": "string", "enum": ["a", "b"]},
        "ios": {"x-kubernetes-int-or-string": true},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true},
        "time": {"type": "string", "format": "date-time"},
        "duration": {"type": "string", "format": "duration"},
        "bytes": {"type": "string", "format": "byte", "maxLength": 20},
        "nullable": {"type": "string", "nullable": true, "maxLength": 20},
    }})
}

fn values() -> Value {
    json!({
        "i": 2, "s": "abc", "b": true, "n": 1.5, "list": [0, 1, 2], "strings": ["x", "y"],
        "map": {"a": "b"}, "o": {"n": 1}, "objects": [{"n": 1}, {"n": 2}], "e": "a", "ios": 5,
        "any": {"b": {"c": [1]}},
        "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}},
        "time": "2020-01-02T03:04:05Z", "duration": "90s", "bytes": "YWJj", "nullable": null,
    })
}

/// The schema of what costs are about: lists of several lengths, and some without bounds.
fn lists() -> Value {
    let text = json!({"type": "string", "maxLength": 100});
    let of =
        |count: usize, items: &Value| json!({"type": "array", "maxItems": count, "items": items});
    let word = json!({"type": "string", "enum": ["a", "bcd"]});
    let time = json!({"type": "string", "format": "date-time"});
    let object = json!({"type": "object", "properties": {"a": text, "b": of(5, &text)}});
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    json!({"type": "object", "properties": {
        "a": of(10, &text), "b": of(100, &text), "c": of(1000, &text), "e": of(500, &word),
        "i": of(200, &json!({"type": "integer"})), "t": of(30, &time), "s": text,
        "m": {"type": "object", "maxProperties": 50, "additionalProperties": text},
        "o": object, "p": object,
        "u": {"type": "array", "items": open}, "v": {"type": "array", "items": text},
        "w": {"type": "string"},
    }})
}
