//! Pods of many variables.

use http::Method;
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
    let collection = format!("/api/v1/namespaces/{HOSTILE}/pods");
    let pods = (0..field.size(5, 2)).map(|number| {
        let container = json!({"name": "c", "image": "x", "env": variables('v', count)});
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("variables-{number}")},
            "spec": {"containers": [container]},
        });
        Ask::post(collection.clone(), &pod)
    });
    let pods: Vec<Ask> = pods.collect();
    field.begin().await;
    let seen = storm(&attacker, 2, field.seconds(60, 10), pods.into_iter()).await;
    // What is stored takes memory by right; what stays without it does not.
    attacker
        .ask(&Ask::new(Method::DELETE, format!("{collection}?gracePeriodSeconds=0"), ""))
        .await?;
    Ok(seen)
}
