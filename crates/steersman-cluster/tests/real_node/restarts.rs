//! What survives when the agent or containerd goes away for a while.

use kube::api::DeleteParams;
use serde_json::json;

use crate::machine::{Machine, is_ready, shell, spec, status};

const SERVE: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";

#[tokio::test(flavor = "multi_thread")]
async fn containers_run_on_without_the_agent_and_what_was_missed_is_done() {
    let mut machine = Machine::start("without").await;
    for name in ["stays", "ends", "goes"] {
        let script = if name == "ends" { "sleep 2; exit 5" } else { SERVE };
        let policy = if name == "ends" { "Never" } else { "Always" };
        machine.run(name, spec(policy, &json!([shell("main", script)]))).await;
    }
    let before = machine.until("stays", is_ready).await;
    for name in ["ends", "goes"] {
        machine
            .until(name, |pod| status(pod, "main").is_some_and(|it| it.container_id.is_some()))
            .await;
    }
    machine.kill_agent();
    let by_force = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    machine.delete("goes", &by_force).await;
    machine.until_gone("goes").await;
    machine.start_agent().await;
    let ended = machine.until_phase("ends", "Failed").await;
    let code = status(&ended, "main").unwrap().state.clone().unwrap().terminated.unwrap().exit_code;
    assert_eq!(code, 5);
    let after = machine.until("stays", is_ready).await;
    let id = |pod| status(pod, "main").and_then(|it| it.container_id.clone());
    assert_eq!(id(&before), id(&after));
    assert_eq!(status(&after, "main").unwrap().restart_count, 0);
    machine.end().await; // nothing is left of the Pod that went meanwhile either
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_whose_sandbox_died_begins_anew() {
    let machine = Machine::start("anew").await;
    let mut pod = spec("Always", &json!([shell("main", SERVE)]));
    pod["initContainers"] = json!([shell("setup", "echo setup")]);
    machine.run("web", pod).await;
    machine.until("web", is_ready).await;
    let own = "labels.\"steersman.dev/node\"==anew";
    let kind = "labels.\"io.cri-containerd.kind\"==sandbox";
    let sandbox = machine.containerd.ctr(&["containers", "ls", "-q", &format!("{own},{kind}")]);
    machine.containerd.ctr(&["tasks", "kill", "-s", "KILL", sandbox.trim()]);
    let pod = machine
        .until("web", |pod| status(pod, "main").is_some_and(|it| it.restart_count == 1 && it.ready))
        .await;
    assert_eq!(status(&pod, "setup").unwrap().restart_count, 1, "it was set up again");
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_run_on_when_containerd_is_killed() {
    let machine = Machine::start("killed").await;
    machine.run("web", spec("Always", &json!([shell("main", SERVE)]))).await;
    let before = machine.until("web", is_ready).await;
    machine.containerd.kill();
    machine.run("next", spec("Always", &json!([shell("main", SERVE)]))).await;
    machine.until("next", is_ready).await;
    let after = machine.until("web", is_ready).await;
    let id = |pod| status(pod, "main").and_then(|it| it.container_id.clone());
    assert_eq!(id(&before), id(&after));
    machine.end().await;
}
