//! What containers do before they stop, in a runtime that takes its time.

use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::json;
use tokio::time::Instant;

use super::Scene;
use super::liar::Manner;

#[tokio::test(start_paused = true)]
async fn a_hook_that_takes_longer_than_its_pod_has_has_not_failed_for_that() {
    let scene = Scene::start("hooks").await;
    let hook = json!({"preStop": {"exec": {"command": ["sleep", "60"]}}});
    scene.run_with("web", json!({"lifecycle": hook})).await;
    scene.until("it runs", async || scene.runs("web").await).await;
    scene.liar.behave(Manner::SlowHooks(Duration::from_secs(60)));
    let told = Instant::now();
    scene.pods().delete("web", &DeleteParams::default()).await.expect("deleted");
    scene.until("it is gone", async || scene.pod("web").await.is_none()).await;
    assert!(told.elapsed() < Duration::from_secs(30), "the hook is not waited for");
    scene.until("the hook has ended", async || told.elapsed() > Duration::from_secs(90)).await;
    let events = scene.events("web").await;
    let failed = events.iter().any(|event| event.starts_with("FailedPreStopHook"));
    assert!(!failed, "{events:?}");
    scene.end().await;
}
