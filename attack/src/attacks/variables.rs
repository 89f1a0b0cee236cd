//! Pods of many variables.

use serde_json::{Value, json};

use crate::caller::{Ask, Who};
use crate::field::{Field, HOSTILE, storm};
use crate::seen::Seen;

/// A container's variables of one letter and a number.
pub(super) fn variables(letter: char, count: usize) -> Vec<Value> {
    (0..count).map(|number| json!({"name": format!("{letter}{number}")})).collect()
}

/// Pods with eighty thousand variables.
pub(super) async fn run(field: Field) -> Result<Seen, String> {
    let count = field.size(80_000, 8_000);
    let attacker = field.caller(Who::Attacker)?;
    let pods = (0..field.size(5, 2)).map(move |number| {
        let container = json!({"name": "c", "image": "x", "env": variables('v', count)});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("variables-{number}")},
            "spec": {"containers": [container]},
        });
        Ask::post(format!("/api/v1/namespaces/{HOSTILE}/pods"), &pod)
    });
    let pods: Vec<Ask> = pods.collect();
    field.begin().await;
    Ok(storm(&attacker, 2, field.seconds(60, 10), pods.into_iter()).await)
}
