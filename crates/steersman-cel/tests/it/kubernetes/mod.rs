//! Expressions over one object, with what Kubernetes 1.36 says of them: type, value or message, cost
//! and estimated cost. `outcomes.jsonl` has a line for each.

use serde_json::{Value as Json, json};
use steersman_cel::{Activation, Budget, Env, Shape, ShapeKind};

pub(crate) fn env(schema: &Json) -> Env {
    let shape = Shape::of_schema(schema, "selfType.1", true).unwrap();
    Env::kubernetes().variable("self", shape).variable("any", Shape::new(ShapeKind::Dyn))
}

/// What is to be compared of an expression.
fn outcome(env: &Env, object: &Json, text: &str) -> Json {
    let compiled = match env.check(text) {
        Ok(compiled) => compiled,
        Err(issues) => return json!({"expr": text, "compile": issues.to_string()}),
    };
    let estimate = compiled.estimate();
    let mut out = json!({
        "expr": text,
        "type": compiled.result_type().to_string(),
        "min": estimate.min,
        "max": estimate.max,
    });
    let program = match compiled.program() {
        Ok(program) => program,
        Err(issues) => {
            out["compile"] = json!(format!("program: {}", issues.issues[0].message));
            return out;
        }
    };
    let activation = Activation::new().json("self", object).json("any", object);
    let result = program.evaluate(&activation, Budget::default());
    out["cost"] = json!(result.cost);
    match result.value {
        Ok(value) => out["value"] = json!(value.to_string()),
        Err(error) => out["error"] = json!(error.to_string()),
    }
    out
}

#[test]
fn expressions_come_out_as_in_kubernetes() {
    let schema: Json = serde_json::from_str(include_str!("schema.json")).unwrap();
    let object: Json = serde_json::from_str(include_str!("object.json")).unwrap();
    let env = env(&schema);
    let mut wrong = String::new();
    for line in include_str!("outcomes.jsonl").lines() {
        let expected: Json = serde_json::from_str(line).unwrap();
        let found = outcome(&env, &object, expected["expr"].as_str().unwrap());
        if found != expected {
            wrong.push_str(&format!("expected {expected}\n   found {found}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Writes what we say of each line of a file, to be compared with what another program says.
#[test]
#[ignore = "compares with another program"]
fn outcomes_are_written() {
    let read = |name: &str| std::fs::read_to_string(std::env::var(name).unwrap()).unwrap();
    let schema: Json = serde_json::from_str(&read("CEL_SCHEMA")).unwrap();
    let object: Json = serde_json::from_str(&read("CEL_OBJECT")).unwrap();
    let env = env(&schema);
    let mut out = String::new();
    for line in read("CEL_EXPRESSIONS").lines() {
        let text: String = serde_json::from_str(line).unwrap();
        out.push_str(&outcome(&env, &object, &text).to_string());
        out.push('\n');
    }
    std::fs::write(std::env::var("CEL_OUT").unwrap(), out).unwrap();
}
