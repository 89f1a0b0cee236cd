//! Long lists in which everything is compared with everything.

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::caller::{Ask, Who};
use crate::field::{DEFINITIONS, Field, HOSTILE, definition};
use crate::seen::Seen;

/// How long an answer may take.
const SLOW: f64 = 5.0;

/// Definitions with many versions, quotas with many scopes, CSINodes with many keys, nodes with
/// many taints, and documents about a huge definition.
pub(super) async fn run(field: Field) -> Result<Seen, String> {
    let count = field.size(20_000, 2_000);
    let quotas = format!("/api/v1/namespaces/{HOSTILE}/resourcequotas");
    let asks = [
        ("versions", Ask::post(DEFINITIONS, &versions(field.size(3_000, 300)))),
        ("scopes", Ask::post(quotas, &scopes(count))),
        ("CSINode keys", Ask::post("/apis/storage.k8s.io/v1/csinodes", &csi_node(count))),
        ("taints", Ask::post("/api/v1/nodes", &taints(count))),
        ("properties", Ask::post(DEFINITIONS, &properties(field.size(15_000, 1_000)))),
        ("OpenAPI v2", Ask::get("/openapi/v2")),
        ("OpenAPI v3", Ask::get("/openapi/v3/apis/hostile.test/v1")),
    ];
    let attacker = field.caller(Who::Attacker)?;
    field.begin().await;
    let mut seen = Seen::default();
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

fn versions(count: usize) -> Value {
    let mut definition = definition("versions", json!({"type": "object"}));
    let version = definition["spec"]["versions"][0].clone();
    let versions = (0..count).map(|number| {
        let mut version = version.clone();
        version["name"] = json!(format!("v{}", number + 1));
        version["storage"] = json!(number == 0);
        version
    });
    definition["spec"]["versions"] = versions.collect();
    definition
}

fn properties(count: usize) -> Value {
    let properties: Map<String, Value> =
        (0..count).map(|number| (format!("p{number}"), json!({"type": "string"}))).collect();
    definition("properties", json!({"type": "object", "properties": properties}))
}

fn scopes(count: usize) -> Value {
    let scopes: Vec<String> = (0..count).map(|number| format!("S{number}")).collect();
    json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "scopes"},
        "spec": {"hard": {"pods": "1"}, "scopes": scopes},
    })
}

fn csi_node(count: usize) -> Value {
    let keys: Vec<String> = (0..count).map(|number| format!("k{number}")).collect();
    json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": "hostile"},
        "spec": {"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": keys}]},
    })
}

fn taints(count: usize) -> Value {
    let taints: Vec<Value> = (0..count)
        .map(|number| json!({"key": format!("k{number}"), "effect": "NoSchedule"}))
        .collect();
    json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "hostile"},
        "spec": {"taints": taints},
    })
}
