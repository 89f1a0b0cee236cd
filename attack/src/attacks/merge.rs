//! Patches that merge long lists by key.

use http::Method;
use serde_json::{Value, json};

use super::variables::variables;
use crate::caller::{Ask, Who};
use crate::field::{Field, HOSTILE, storm};
use crate::seen::Seen;

/// Thirty thousand variables into thirty thousand others.
pub(super) async fn run(field: Field) -> Result<Seen, String> {
    let count = field.size(30_000, 1_500);
    let all = format!("/apis/apps/v1/namespaces/{HOSTILE}/deployments");
    let one = format!("{all}/merged");
    let attacker = field.caller(Who::Attacker)?;
    attacker.ask(&Ask::post(all, &deployment(&variables('a', count)))).await?.good()?;
    let containers = json!([{"name": "c", "env": variables('b', count)}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let strategic = "application/strategic-merge-patch+json";
    let ask = Ask::new(Method::PATCH, one, patch.to_string()).of(strategic);
    field.begin().await;
    let asks = std::iter::repeat_n(ask, field.size(4, 2));
    let mut seen = storm(&attacker, 2, field.seconds(60, 10), asks).await;
    seen.fault_if(seen.slowest > 5.0, format!("an answer took {:.1} s", seen.slowest));
    Ok(seen)
}

fn deployment(variables: &[Value]) -> Value {
    let labels = json!({"app": "merged"});
    let container = json!({"name": "c", "image": "x", "env": variables});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "merged"},
        "spec": {
            "replicas": 0, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    })
}
