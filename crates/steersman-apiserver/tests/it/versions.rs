//! Kinds that are stored once and served in two versions.

use serde_json::json;

use crate::api::Api;

#[tokio::test(start_paused = true)]
async fn an_event_of_one_group_is_seen_in_the_other() {
    let api = Api::start().await;
    let event = json!({
        "metadata": {"name": "e"}, "reason": "Scheduled", "note": "hello", "type": "Normal",
        "action": "Binding", "reportingController": "scheduler", "reportingInstance": "s-0",
        "eventTime": "2025-01-01T00:00:00.000000Z",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    });
    api.post("/apis/events.k8s.io/v1/namespaces/default/events", &event).await.ok();
    let core = api.get("/api/v1/namespaces/default/events/e").await.ok();
    assert_eq!(core["apiVersion"], "v1");
    assert_eq!(core["message"], "hello");
    assert_eq!(core["involvedObject"]["name"], "p");
    let selected = api
        .get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp")
        .await
        .ok();
    assert_eq!(selected["items"][0]["message"], "hello");
    let other = api
        .get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dq")
        .await
        .ok();
    assert_eq!(other["items"], json!([]));
}
