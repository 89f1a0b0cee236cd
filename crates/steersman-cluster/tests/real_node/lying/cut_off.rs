//! Agents that are killed in the midst of something: those who come after them finish it.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::Scene;
use super::liar::Manner;
use crate::machine::phase;

#[tokio::test(start_paused = true)]
async fn what_was_killed_in_the_midst_of_a_start_has_not_failed() {
    let mut scene = Scene::start("cut-off").await;
    scene.liar.behave(Manner::KillsStarts);
    scene.run_so("once", "Never", json!({})).await;
    scene.until("it is killed", async || scene.liar.killed() == 1).await;
    scene.kill_agent();
    scene.liar.behave(Manner::Honest);
    scene.start_agent().await;
    scene.until("it runs", async || scene.runs("once").await).await;
    assert_eq!(scene.restarts("once").await, Some(0), "it was never started before");
    // What ends like this later has ended.
    scene.liar.crash("main");
    let failed = async || scene.pod("once").await.is_some_and(|pod| phase(&pod) == "Failed");
    scene.until("it has failed", failed).await;
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_was_stopped_to_be_resized_is_started_by_the_next_agent() {
    let mut scene = Scene::start("resized").await;
    let amounts = |memory: &str| {
        let amounts = json!({"cpu": "10m", "memory": memory});
        json!({"requests": amounts, "limits": amounts})
    };
    let policy = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
    let main = json!({"resources": amounts("16Mi"), "resizePolicy": policy});
    // What ends well is not started again with this policy, but for another reason.
    scene.run_so("web", "OnFailure", main).await;
    scene.until("it runs", async || scene.runs("web").await).await;
    scene.liar.behave(Manner::NeverCreates);
    let main = json!({"name": "main", "resources": amounts("32Mi")});
    let patch = Patch::Strategic(json!({"spec": {"containers": [main]}}));
    let params = PatchParams::default();
    scene.pods().patch_subresource("resize", "web", &params, &patch).await.expect("resized");
    scene.until("it has stopped", async || scene.liar.running() == 0).await;
    scene.kill_agent();
    scene.liar.behave(Manner::Honest);
    scene.start_agent().await;
    let memory = |pod: &Pod| {
        let main = pod.status.as_ref()?.container_statuses.as_ref()?.first()?.resources.as_ref()?;
        main.limits.as_ref()?.get("memory").map(|memory| memory.0.clone())
    };
    let resized = async || {
        let pod = scene.pod("web").await;
        scene.restarts("web").await == Some(1)
            && pod.as_ref().and_then(memory).as_deref() == Some("32Mi")
    };
    scene.until("it runs with more", resized).await;
    // The next time it ends well it has ended.
    scene.liar.succeed("main");
    let done = async || scene.pod("web").await.is_some_and(|pod| phase(&pod) == "Succeeded");
    scene.until("it has succeeded", done).await;
    scene.end().await;
}
