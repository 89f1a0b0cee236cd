//! Definitions that are deep, large, or many.

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::caller::{Ask, Who};
use crate::field::{DEFINITIONS, Field, definition, object, objects, storm};
use crate::seen::Seen;

/// How long an answer may take.
const SLOW: f64 = 5.0;

/// Schemas as deep as a document may be and deeper, and definitions of nearly a megabyte: of many
/// properties, of one long description, of defaults, of enumerations.
pub(super) async fn large(field: Field) -> Result<Seen, String> {
    let attacker = field.caller(Who::Attacker)?;
    field.begin().await;
    let mut seen = Seen::default();
    let depths = [field.size(60, 20), field.size(400, 60), field.size(1_000, 200)];
    let mut asks: Vec<(String, Ask)> = Vec::new();
    for depth in depths {
        for (how, spec) in [("properties", nested(depth)), ("items", listed(depth))] {
            let plural = format!("{how}{depth}");
            asks.push((format!("{how} {depth} deep"), posted(&plural, spec)));
        }
    }
    let size = field.size(900_000, 200_000);
    for (plural, spec) in [
        ("described", json!({"type": "object", "description": "x".repeat(size)})),
        ("many", properties(size / 30)),
        ("enumerated", enumerated(size / 15)),
        ("repeated", repeated(size / 60)),
    ] {
        asks.push((plural.to_owned(), posted(plural, spec)));
    }
    asks.push(("OpenAPI v2".to_owned(), Ask::get("/openapi/v2")));
    asks.push(("OpenAPI v3".to_owned(), Ask::get("/openapi/v3/apis/hostile.test/v1")));
    for (what, ask) in asks {
        let began = Instant::now();
        let answer = attacker.ask(&ask).await;
        let took = began.elapsed();
        seen.count(&answer, took);
        let seconds = took.as_secs_f64();
        seen.fault_if(seconds > SLOW, format!("{what} took {seconds:.1} s"));
    }
    Ok(seen)
}

fn posted(plural: &str, spec: Value) -> Ask {
    Ask::post(DEFINITIONS, &definition(plural, spec))
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(
        json!({"type": "string"}),
        |inner, _| json!({"type": "object", "properties": {"p": inner}}),
    )
}

fn listed(depth: usize) -> Value {
    (0..depth).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}))
}

fn properties(count: usize) -> Value {
    let all: Map<String, Value> =
        (0..count).map(|number| (format!("p{number}"), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": all})
}

fn enumerated(count: usize) -> Value {
    let values: Vec<String> = (0..count).map(|number| format!("v{number}")).collect();
    json!({"type": "object", "properties": {"one": {"type": "string", "enum": values}}})
}

/// Each part says the same in each of its ways.
fn repeated(count: usize) -> Value {
    let parts: Vec<Value> =
        (0..count).map(|number| json!({"required": [format!("p{number}")]})).collect();
    json!({"type": "object", "anyOf": parts})
}

/// Definitions by the hundred, an object of each, and all documents that tell of them.
pub(super) async fn many(field: Field) -> Result<Seen, String> {
    let attacker = field.caller(Who::Attacker)?;
    let count = field.size(1_000, 40);
    let spec = || json!({"type": "object", "properties": {"a": {"type": "string"}}});
    field.begin().await;
    let definitions: Vec<Ask> =
        (0..count).map(|number| posted(&format!("many{number}"), spec())).collect();
    let mut seen = storm(&attacker, 8, field.seconds(60, 5), definitions.into_iter()).await;
    let created = (0..count).map(|number| {
        let plural = format!("many{number}");
        Ask::post(objects(&plural), &object(&plural, "one", json!({"a": "b"})))
    });
    let created: Vec<Ask> = created.collect();
    seen.merge(storm(&attacker, 8, field.seconds(20, 2), created.into_iter()).await);
    let documents = ["/apis", "/apis/hostile.test/v1", "/openapi/v2", "/openapi/v3", "/metrics"];
    let asks = documents.into_iter().cycle().take(field.size(100, 5)).map(Ask::get);
    seen.merge(storm(&attacker, 4, field.seconds(20, 3), asks).await);
    Ok(seen)
}
