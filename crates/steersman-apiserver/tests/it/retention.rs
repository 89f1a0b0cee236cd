//! What does not stay: history and Events.

use std::time::Duration;

use serde_json::json;

use crate::api::{Api, CONFIG_MAPS, seconds_pass, version};

#[tokio::test(start_paused = true)]
async fn history_is_kept_for_a_while_and_then_forgotten() {
    let api = Api::start().await;
    let server = api.server.clone();
    tokio::spawn(async move { server.run_compaction(Duration::from_secs(300)).await });
    let created = api.config_map("a", &json!({})).await;
    let exact =
        format!("{CONFIG_MAPS}?resourceVersion={}&resourceVersionMatch=Exact", version(&created));
    seconds_pass(200).await;
    api.config_map("b", &json!({})).await;
    seconds_pass(200).await;
    api.get(&exact).await.ok();
    seconds_pass(400).await;
    api.get(&exact).await.refused(410);
}

const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A server that has an Event, which claims to be from the far future.
async fn with_event() -> Api {
    let api = Api::start().await;
    let event = json!({
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
        "reason": "Tested", "message": "hello", "type": "Normal", "count": 1,
        "lastTimestamp": "2099-01-01T00:00:00Z",
    });
    api.post(EVENTS, &event).await.ok();
    api
}

#[tokio::test(start_paused = true)]
async fn events_are_gone_an_hour_after_they_were_seen() {
    let api = with_event().await;
    seconds_pass(3500).await;
    api.get(&format!("{EVENTS}/e")).await.ok();
    seconds_pass(200).await;
    api.get(&format!("{EVENTS}/e")).await.refused(404);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_written_again_lives_an_hour_longer_in_both_groups() {
    let api = with_event().await;
    seconds_pass(3000).await;
    api.merge(&format!("{EVENTS}/e"), &json!({"count": 2})).await.ok();
    seconds_pass(3000).await;
    let new = "/apis/events.k8s.io/v1/namespaces/default/events/e";
    assert_eq!(api.get(new).await.ok()["deprecatedCount"], 2);
    seconds_pass(800).await;
    api.get(new).await.refused(404);
}
