//! Expressions in CEL: the expression alone, or the expression, `---`, an object that it sees.

use serde_json::{Value, json};
use steersman_cel::{Activation, Budget, Env, Library, Shape};
use steersman_rules::schema::Schema;

use crate::text::{object, parts};

/// What an expression may cost here before it is stopped, so that the fuzzer goes on.
const COST_MAX: u64 = 100_000;

/// Reads, prints, checks and evaluates an expression: what is printed reads as the same, nothing
/// panics, and nothing costs more than was estimated.
pub(crate) fn run(bytes: &[u8]) {
    let [text, seen] = parts(bytes).unwrap_or([bytes, b""]);
    let Ok(text) = std::str::from_utf8(text) else { return };
    prints(text);
    let seen = object(seen).filter(|seen| Schema::structural(&schema()).validate(seen).is_empty());
    let seen = seen.unwrap_or_else(|| json!({"name": "a", "count": 3, "names": ["a", "b"]}));
    costs(text, &seen);
    unchecked(text, &seen);
}

/// What is printed is read as the same.
fn prints(text: &str) {
    let env = Env::new(&Library::EXTENSIONS).unchecked();
    let Ok(compiled) = env.check(text) else { return };
    let printed = compiled.unparsed();
    // What is as deep as an expression may be is too deep with the parentheses that are printed.
    let Ok(again) = env.check(&printed) else { return };
    assert_eq!(again.unparsed(), printed, "what is printed is printed the same again");
}

/// What is checked can be run, and does not cost more than was said.
fn costs(text: &str, seen: &Value) {
    let Some(shape) = Shape::of_schema(&schema(), "self", true) else { return };
    let env = Env::kubernetes().escaped_names().variable("self", shape);
    let compiled = match env.check(text) {
        Ok(compiled) => compiled,
        Err(issues) => return assert!(!issues.to_string().is_empty(), "issues say something"),
    };
    let Ok(program) = compiled.program() else { return };
    let activation = Activation::new().json("self", seen);
    let outcome = program.evaluate(&activation, Budget::of(COST_MAX));
    // As in cel-go, estimates fall short by little where something is selected from what is
    // computed, or where objects are compared.
    let most = compiled.estimate().max.saturating_mul(3).saturating_add(text.len() as u64);
    assert!(outcome.cost <= most.max(COST_MAX), "{} is more than {most}", outcome.cost);
    assert!(outcome.cost <= most || outcome.value.is_err(), "{} > {most}", outcome.cost);
    if let Err(error) = outcome.value {
        assert!(!error.to_string().is_empty(), "an error says something");
    }
}

/// Where types are found out only when it runs, nothing panics either.
fn unchecked(text: &str, seen: &Value) {
    let libraries = [&Library::EXTENSIONS[..], &Library::KUBERNETES[1..]].concat();
    let env = Env::new(&libraries).unchecked();
    let Ok(program) = env.compile(text) else { return };
    let _ = program.evaluate(&Activation::new().json("self", seen), Budget::of(COST_MAX));
}

/// What the objects are like that expressions see.
fn schema() -> Value {
    json!({"type": "object", "properties": {
        "name": {"type": "string", "maxLength": 20},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "on": {"type": "boolean"},
        "when": {"type": "string", "format": "date-time"},
        "either": {"x-kubernetes-int-or-string": true},
        "names": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}},
        "labels": {"type": "object", "maxProperties": 5,
            "additionalProperties": {"type": "string", "maxLength": 10}},
        "ports": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["port"],
            "items": {"type": "object", "properties": {
                "port": {"type": "integer"}, "odd-name": {"type": "string", "maxLength": 10}}}},
    }})
}
