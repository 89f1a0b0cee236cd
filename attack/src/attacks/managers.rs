//! Thousands of managers who own a field each.

use serde_json::{Value, json};

use crate::caller::{Ask, Who};
use crate::field::{Field, config_map, config_maps, storm};
use crate::seen::Seen;

/// How long an answer may take that was asked for within two seconds.
const SLOW: f64 = 5.0;

/// One object with thousands of entries in `managedFields`, with and without a deadline.
pub(super) async fn run(field: Field) -> Result<Seen, String> {
    let entries: Vec<Value> = (0..field.size(18_000, 3_000))
        .map(|number| {
            json!({
                "manager": format!("m{number}"), "operation": "Update", "apiVersion": "v1",
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:data": {format!("f:k{number}"): {}}},
            })
        })
        .collect();
    let ask = |number: usize, query: &str| {
        let mut object = config_map(&format!("managed-{number}"), "x");
        object["metadata"]["managedFields"] = Value::from(entries.clone());
        Ask::post(format!("{}{query}", config_maps()), &object)
    };
    let asks: Vec<Ask> = vec![ask(0, "?timeout=2s"), ask(1, ""), ask(2, "?timeout=2s")];
    let attacker = field.caller(Who::Attacker)?;
    field.begin().await;
    let mut seen = storm(&attacker, 1, field.seconds(90, 20), asks.into_iter()).await;
    seen.fault_if(seen.slowest > SLOW, format!("an answer took {:.1} s", seen.slowest));
    Ok(seen)
}
