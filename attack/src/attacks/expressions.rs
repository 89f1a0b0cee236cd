//! Rules in CEL that cost much: to check, to compile, and to evaluate.

use serde_json::{Value, json};

use crate::caller::{Ask, Who};
use crate::field::{DEFINITIONS, Field, definition, object, objects, storm};
use crate::seen::Seen;

/// Rules that are refused for what they would cost, many rules that are not, and objects that make
/// them cost as much as they may.
pub(super) async fn costs(field: Field) -> Result<Seen, String> {
    let attacker = field.caller(Who::Attacker)?;
    field.begin().await;
    let refused = (0..field.size(200, 6)).map(|turn| {
        let depth = 2 + turn % 6;
        Ask::post(DEFINITIONS, &definition(&format!("bombs{turn}"), unbounded(depth)))
    });
    let refused: Vec<Ask> = refused.collect();
    let mut seen = storm(&attacker, 4, field.seconds(20, 3), refused.into_iter()).await;
    seen.fault_if(seen.good() > 0, "a rule that costs too much is taken");
    let defined = field.define("rules", bounded(field.size(400, 10))).await;
    let good = matches!(&defined, Ok(answer) if answer.is_good());
    seen.count(&defined, std::time::Duration::ZERO);
    seen.fault_if(!good, "rules that cost little are refused");
    let numbers: Vec<usize> = (0..100).collect();
    let asks = (0..field.size(400, 8)).map(move |number| {
        let spec = json!({"numbers": numbers, "number": number});
        Ask::post(objects("rules"), &object("rules", &format!("o{number}"), spec))
    });
    seen.merge(storm(&attacker, 4, field.seconds(20, 4), asks).await);
    Ok(seen)
}

/// Lists in lists without a bound, each gone through for each.
fn unbounded(depth: usize) -> Value {
    let mut schema = json!({"type": "integer"});
    for _ in 0..depth {
        schema = json!({"type": "array", "items": schema});
    }
    let mut rule = "x0 > 0".to_owned();
    for level in 0..depth {
        let of = if level + 1 == depth { "self".to_owned() } else { format!("x{}", level + 1) };
        rule = format!("{of}.all(x{level}, {rule})");
    }
    schema["x-kubernetes-validations"] = json!([{"rule": rule}]);
    schema
}

/// Many rules, each of which goes twice through a list of a hundred.
fn bounded(count: usize) -> Value {
    let rules: Vec<Value> = (0..count)
        .map(|number| {
            let rule = format!(
                "self.numbers.all(a, self.numbers.exists(b, a + {number} < b + {number} + 1))"
            );
            json!({"rule": rule})
        })
        .collect();
    json!({
        "type": "object",
        "properties": {
            "number": {"type": "integer"},
            "numbers": {"type": "array", "maxItems": 100, "items": {"type": "integer"}},
        },
        "x-kubernetes-validations": rules,
    })
}

/// Patterns that come with the object, and texts that they are held against.
pub(super) async fn matches(field: Field) -> Result<Seen, String> {
    let attacker = field.caller(Who::Attacker)?;
    let spec = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string", "maxLength": 20_000},
            "pattern": {"type": "string", "maxLength": 200},
        },
        "x-kubernetes-validations": [{"rule": "!self.text.matches(self.pattern)"}],
    });
    field.begin().await;
    let defined = field.define("matches", spec).await;
    let mut seen = Seen::default();
    seen.count(&defined, std::time::Duration::ZERO);
    let bombs = [
        "(a+)+$",
        "(a|aa)+b",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(.*a){20}b",
        "((a{0,100}){0,100}){0,100}",
        "(\\pL{1,500}){1,500}",
        "[\\pL\\pN]{1,200}x",
    ];
    let text = "a".repeat(field.size(19_000, 4_000));
    let asks = (0..field.size(700, 14)).map(move |number| {
        let pattern =
            format!("{}{}", bombs[number % bombs.len()], "?".repeat(number / bombs.len() % 2));
        let spec = json!({"text": text, "pattern": pattern});
        Ask::post(objects("matches"), &object("matches", &format!("o{number}"), spec))
    });
    seen.merge(storm(&attacker, 4, field.seconds(20, 5), asks).await);
    Ok(seen)
}
