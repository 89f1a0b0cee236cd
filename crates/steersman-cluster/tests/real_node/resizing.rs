//! Other resources for containers that run.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::machine::{Machine, is_ready, shell, spec, status};

/// A container that asks for little and may use more.
fn limited(script: &str, cpu: &str, memory: &str) -> Value {
    let mut container = shell("main", script);
    container["resources"] = json!({
        "requests": {"cpu": "50m", "memory": "8Mi"}, "limits": {"cpu": cpu, "memory": memory},
    });
    container
}

async fn resize(machine: &Machine, cpu: &str, memory: &str) {
    let resources = json!({"limits": {"cpu": cpu, "memory": memory}});
    let patch = json!({"spec": {"containers": [{"name": "main", "resources": resources}]}});
    let patch = Patch::Strategic(patch);
    let params = PatchParams::default();
    machine.pods().patch_subresource("resize", "web", &params, &patch).await.expect("resized");
}

/// What the container may use, as its status says.
fn limits(pod: &Pod) -> [String; 2] {
    let resources = status(pod, "main").and_then(|main| main.resources.as_ref());
    let limits = resources.and_then(|resources| resources.limits.as_ref());
    ["cpu", "memory"].map(|name| limits.map_or("", |limits| limits[name].0.as_str()).to_owned())
}

fn condition<'a>(pod: &'a Pod, type_: &str) -> Option<&'a PodCondition> {
    let status = pod.status.as_ref()?;
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

/// What the kernel lets the container use, and the Pod: microseconds of each tenth of a second, and
/// bytes.
fn kernel(machine: &Machine, pod: &Pod) -> [[String; 2]; 2] {
    let id = status(pod, "main").and_then(|main| main.container_id.clone()).expect("it runs");
    let id = id.trim_start_matches("containerd://");
    [format!("{id}/"), String::new()].map(|part| {
        let of = |controller: &str, first: &str, second: &str| {
            let [first, second] = [first, second].map(|file| format!("{part}{file}"));
            let text = machine.cgroup(pod, controller, &first, &second);
            text.split(' ').next().unwrap_or_default().to_owned()
        };
        [
            of("cpu", "cpu.cfs_quota_us", "cpu.max"),
            of("memory", "memory.limit_in_bytes", "memory.max"),
        ]
    })
}

fn both(quota: &str, mebibytes: u64) -> [[String; 2]; 2] {
    [(); 2].map(|()| [quota.to_owned(), (mebibytes << 20).to_string()])
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_change_while_a_container_runs_and_while_its_agent_is_away() {
    let mut machine = Machine::start("resizing").await;
    let main = limited("while true; do sleep 0.1; done", "100m", "64Mi");
    machine.run("web", spec("Always", &json!([main]))).await;
    let before = machine.until("web", is_ready).await;
    assert_eq!(kernel(&machine, &before), both("10000", 64));
    for (cpu, memory, quota, mebibytes) in
        [("200m", "128Mi", "20000", 128), ("150m", "32Mi", "15000", 32)]
    {
        resize(&machine, cpu, memory).await;
        let pod = machine.until("web", |pod| limits(pod) == [cpu, memory]).await;
        assert_eq!(kernel(&machine, &pod), both(quota, mebibytes));
        assert_eq!(condition(&pod, "PodResizeInProgress"), None);
    }
    machine.kill_agent();
    resize(&machine, "300m", "96Mi").await;
    machine.start_agent().await;
    let pod = machine.until("web", |pod| limits(pod) == ["300m", "96Mi"]).await;
    assert_eq!(kernel(&machine, &pod), both("30000", 96));
    let [old, new] = [&before, &pod].map(|pod| status(pod, "main").unwrap().clone());
    assert_eq!((new.restart_count, &new.container_id), (0, &old.container_id));
    let events = machine.events("web").await;
    for reason in ["ResizeStarted: Pod resize started", "ResizeCompleted: Pod resize completed"] {
        assert!(events.iter().any(|event| event.starts_with(reason)), "{reason}: {events:?}");
    }
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_whose_policy_says_so_is_started_again_with_its_new_limits() {
    let machine = Machine::start("restarting").await;
    let mut main = limited("trap 'exit 0' TERM; while true; do sleep 0.1; done", "100m", "64Mi");
    main["resizePolicy"] = json!([{"resourceName": "memory", "restartPolicy": "RestartContainer"}]);
    // With this policy what ends well is not started again for another reason.
    machine.run("web", spec("OnFailure", &json!([main]))).await;
    let before = machine.until("web", is_ready).await;
    resize(&machine, "200m", "128Mi").await;
    let pod = machine.until("web", |pod| limits(pod) == ["200m", "128Mi"] && is_ready(pod)).await;
    assert_eq!(kernel(&machine, &pod), both("20000", 128));
    let [old, new] = [&before, &pod].map(|pod| status(pod, "main").unwrap().clone());
    assert_eq!(new.restart_count, 1);
    assert_ne!(new.container_id, old.container_id);
    let ended = new.last_state.unwrap().terminated.unwrap();
    assert_eq!(ended.container_id, old.container_id);
    let events = machine.events("web").await;
    let killing = "Killing: Container main resize requires restart";
    assert!(events.iter().any(|event| event == killing), "{events:?}");
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_that_is_in_use_is_not_taken_away_until_it_is_free() {
    let machine = Machine::start("shrinking").await;
    let script = "dd if=/dev/zero of=/dev/shm/used bs=1M count=24; echo filled; \
                  while true; do sleep 0.1; done";
    let main = limited(script, "100m", "64Mi");
    machine.run("web", spec("Always", &json!([main]))).await;
    let pod = machine.until("web", is_ready).await;
    machine
        .until_true("memory is used", async || machine.log(&pod, "main", 0).contains("filled"))
        .await;
    resize(&machine, "100m", "16Mi").await;
    let failed = |pod: &Pod| {
        condition(pod, "PodResizeInProgress")
            .is_some_and(|condition| condition.reason.as_deref() == Some("Error"))
    };
    let pod = machine.until("web", failed).await;
    let progress = condition(&pod, "PodResizeInProgress").unwrap();
    let message = progress.message.as_deref().unwrap_or_default();
    assert!(message.starts_with("cannot decrease memory limits: "), "{message}");
    let of_container = "attempting to set container \"main\" memory limit (16777216) below current";
    assert!(message.contains(of_container), "{message}");
    assert_eq!(progress.observed_generation, Some(2));
    assert_eq!(
        (limits(&pod), kernel(&machine, &pod)),
        (["100m", "64Mi"].map(str::to_owned), both("10000", 64))
    );
    let events = machine.events("web").await;
    assert!(events.iter().any(|event| event.starts_with("ResizeError: Pod resize error: {")));
    machine.exec(&pod, "main", &["rm", "/dev/shm/used"]);
    let pod = machine.until("web", |pod| limits(pod) == ["100m", "16Mi"]).await;
    assert_eq!(kernel(&machine, &pod), both("10000", 16));
    assert_eq!(condition(&pod, "PodResizeInProgress"), None);
    assert_eq!(status(&pod, "main").unwrap().restart_count, 0);
    machine.end().await;
}
