//! Defaults that amplify: little is sent, much is to be stored.

use http::Method;
use serde_json::{Value, json};

use crate::caller::{Ask, Who};
use crate::field::{Field, HOSTILE, object, objects, storm};
use crate::seen::Seen;

/// Empty items, each of which a definition fills with a large default.
pub(super) async fn of_definitions(field: Field) -> Result<Seen, String> {
    let large = "x".repeat(field.size(100_000, 20_000));
    let items = field.size(40_000, 20_000);
    let item = json!({
        "type": "object", "properties": {"large": {"type": "string", "default": large}},
    });
    let spec = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}});
    // Nine kilobytes that become three hundred megabytes.
    let small = json!({
        "type": "object",
        "properties": {"large": {"type": "string", "default": "x".repeat(field.size(75_000, 2_000))}},
    });
    let small =
        json!({"type": "object", "properties": {"items": {"type": "array", "items": small}}});
    field.begin().await;
    let mut seen = Seen::default();
    for (plural, spec, count) in [("amplifiers", spec, items), ("smalls", small, 4_000)] {
        let defined = field.define(plural, spec).await;
        let refused = defined.as_ref().map_or(true, |answer| !answer.is_good());
        if refused {
            seen.note(format!("the definition of {plural} is refused"));
            continue;
        }
        let empty: Vec<Value> = (0..count).map(|_| json!({})).collect();
        let document = object(plural, "one", json!({"items": empty}));
        let ask = Ask::post(objects(plural), &document);
        let attacker = field.caller(Who::Attacker)?;
        let answers = storm(&attacker, 2, field.seconds(30, 5), std::iter::repeat_n(ask, 2)).await;
        seen.fault_if(answers.good() > 0, format!("an object of {plural} is stored"));
        seen.merge(answers);
    }
    Ok(seen)
}

/// Empty containers, which the server fills by its own rules.
pub(super) async fn of_pods(field: Field) -> Result<Seen, String> {
    let containers = vec!["{}"; field.size(700_000, 20_000)].join(",");
    let body = format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{{\"name\":\"empty\"}},\
         \"spec\":{{\"containers\":[{containers}]}}}}"
    );
    let path = format!("/api/v1/namespaces/{HOSTILE}/pods");
    let ask = Ask::new(Method::POST, path, body);
    field.begin().await;
    let attacker = field.caller(Who::Attacker)?;
    let mut seen = storm(&attacker, 2, field.seconds(30, 5), std::iter::repeat_n(ask, 4)).await;
    seen.fault_if(seen.good() > 0, "a Pod of empty containers is stored");
    Ok(seen)
}
