//! What is counted.

use serde_json::{Value, json};

use super::{MUTATE, ask, review, shop, shops};
use crate::metrics::Metrics;

#[tokio::test]
async fn requests_and_panics_are_counted_under_controller_runtimes_names() {
    let server = shops();
    let metrics = Metrics::default();
    server.register_metrics(&metrics);
    let review = |owner: &str| review("CREATE", &shop(json!({"owner": owner})), &Value::Null);
    ask(&server, MUTATE, &review("ann")).await;
    ask(&server, MUTATE, &review("panic")).await;
    let text = metrics.render();
    let lines = [
        format!("controller_runtime_webhook_requests_total{{webhook=\"{MUTATE}\",code=\"200\"}} 2"),
        format!("controller_runtime_webhook_requests_total{{webhook=\"{MUTATE}\",code=\"500\"}} 0"),
        format!("controller_runtime_webhook_requests_in_flight{{webhook=\"{MUTATE}\"}} 0"),
        format!("controller_runtime_webhook_latency_seconds_count{{webhook=\"{MUTATE}\"}} 2"),
        "controller_runtime_webhook_panics_total 1".to_owned(),
        "controller_runtime_conversion_webhook_panics_total 0".to_owned(),
    ];
    for line in lines {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}
