//! What happens when the machine runs out of something, or a Pod takes more than it may.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use serde_json::{Value, json};

use crate::containerd;
use crate::machine::{Machine, is_ready, phase, shell, spec};

const SERVE: &str = "trap 'exit 0' TERM; while true; do sleep 0.1; done";
const OFTEN: Duration = Duration::from_millis(500);

/// A Pod with an empty volume that writes so many KiB into it.
fn fills(kilobytes: u32, limit: Option<&str>) -> Value {
    let script = format!("dd if=/dev/zero of=/v/file bs=1024 count={kilobytes}; {SERVE}");
    let mut pod = spec("Always", &json!([shell("main", &script)]));
    pod["containers"][0]["volumeMounts"] = json!([{"name": "v", "mountPath": "/v"}]);
    pod["volumes"] = json!([{"name": "v", "emptyDir": {"sizeLimit": limit}}]);
    pod
}

fn why(pod: &Pod) -> (&str, &str) {
    let status = pod.status.as_ref().expect("a status");
    (status.reason.as_deref().unwrap_or(""), status.message.as_deref().unwrap_or(""))
}

fn disrupted(pod: &Pod) -> Option<&k8s_openapi::api::core::v1::PodCondition> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == "DisruptionTarget")
}

fn has(node: &Node, type_: &str) -> bool {
    let conditions = node.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    conditions.into_iter().any(|it| it.type_ == type_ && it.status == "True")
}

fn taints(node: &Node) -> Vec<String> {
    let taints = node.spec.iter().filter_map(|spec| spec.taints.as_ref()).flatten();
    taints.map(|taint| format!("{}:{}", taint.key, taint.effect)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_has_more_on_the_disk_than_it_may_is_evicted() {
    let machine =
        Machine::start_kept("limited", |keep| keep.eviction_monitoring_period = OFTEN).await;
    machine.run("within", fills(100, Some("1Mi"))).await;
    machine.until("within", is_ready).await;
    machine.run("volume", fills(4000, Some("1Mi"))).await;
    // Its log grows.
    let talks =
        format!("head -c 3000000 /dev/zero | busybox tr '\\0' 'x' | busybox fold -w 100; {SERVE}");
    let mut log = spec("Always", &json!([shell("main", &talks)]));
    log["containers"][0]["resources"] = json!({"limits": {"ephemeral-storage": "1Mi"}});
    machine.run("log", log).await;
    let pod = machine.until_phase("volume", "Failed").await;
    let message = "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". ";
    assert_eq!(why(&pod), ("Evicted", message));
    assert!(disrupted(&pod).is_none());
    let events = machine.events("volume").await;
    assert!(events.contains(&format!("Evicted: {message}")), "{events:?}");
    let pod = machine.until_phase("log", "Failed").await;
    let message = "Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ";
    assert_eq!(why(&pod), ("Evicted", message));
    assert!(is_ready(&machine.until("within", is_ready).await));
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn under_disk_pressure_the_largest_pod_goes_and_no_other_comes() {
    const DISK: u64 = 64 << 20;
    let root = containerd::shared().room("pressed").join("root");
    std::fs::create_dir_all(&root).expect("a directory of our own");
    containerd::mount_memory(&root, DISK);
    let machine = Machine::start_kept("pressed", |keep| {
        keep.eviction_hard = [("nodefs.available".into(), "50%".into())].into();
        keep.eviction_monitoring_period = OFTEN;
        keep.eviction_pressure_transition_period = Duration::from_secs(25);
    })
    .await;
    machine.run("small", fills(1000, None)).await;
    machine.until("small", is_ready).await;
    assert!(!has(&machine.node().await, "DiskPressure"));
    machine.run("large", fills(40_000, None)).await;
    let pod = machine.until_phase("large", "Failed").await;
    let (reason, message) = why(&pod);
    assert_eq!(reason, "Evicted");
    let low = "The node was low on resource: ephemeral-storage. Threshold quantity: 32Mi, ";
    assert!(message.starts_with(low), "{message}");
    let condition = disrupted(&pod).expect("it was disrupted");
    assert_eq!(condition.reason.as_deref(), Some("TerminationByKubelet"));
    let pressure = "node.kubernetes.io/disk-pressure:NoSchedule".to_owned();
    machine
        .until_true("the Node says so", async || {
            let node = machine.node().await;
            has(&node, "DiskPressure") && taints(&node).contains(&pressure)
        })
        .await;
    let mut late = spec("Never", &json!([shell("main", "true")]));
    late["nodeName"] = json!("pressed");
    machine.run("late", late).await;
    let pod = machine.until("late", |pod| phase(pod) == "Failed").await;
    assert_eq!(
        why(&pod),
        ("Evicted", "Pod was rejected: The node had condition: [DiskPressure]. ")
    );
    let events = machine.events("pressed").await;
    for text in [
        "EvictionThresholdMet: Attempting to reclaim ephemeral-storage",
        "NodeHasDiskPressure: Node pressed status is now: NodeHasDiskPressure",
    ] {
        assert!(events.iter().any(|event| event == text), "{text}: {events:?}");
    }
    machine
        .until_true("the pressure is over", async || {
            let node = machine.node().await;
            !has(&node, "DiskPressure") && !taints(&node).contains(&pressure)
        })
        .await;
    machine.run("next", spec("Never", &json!([shell("main", "true")]))).await;
    machine.until_phase("next", "Succeeded").await;
    assert_eq!(phase(&machine.until("small", is_ready).await), "Running", "it asked for little");
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn under_memory_pressure_pods_go_by_rank_and_critical_ones_stay() {
    let mut machine = Machine::start("starved").await;
    let serve = || spec("Always", &json!([shell("main", SERVE)]));
    let mut moderate = serve();
    moderate["containers"][0]["resources"] = json!({"requests": {"memory": "64Mi"}});
    let mut critical = serve();
    critical["priorityClassName"] = json!("system-node-critical");
    let pods = [("moderate", moderate), ("greedy", serve()), ("critical", critical)];
    for (name, pod) in pods {
        machine.run(name, pod).await;
        machine.until(name, is_ready).await;
    }
    // All of the machine's memory would have to be free: nothing has to be starved for this.
    machine
        .restart_kept(|keep| {
            let memory = |text: &str| [("memory.available".to_owned(), text.to_owned())].into();
            keep.eviction_soft = memory("99.99%");
            keep.eviction_soft_grace_period = memory("1s");
            keep.eviction_max_pod_grace_period = Duration::from_secs(5);
            keep.eviction_monitoring_period = OFTEN;
        })
        .await;
    let greedy = machine.until_phase("greedy", "Failed").await;
    let (reason, message) = why(&greedy);
    assert_eq!(reason, "Evicted");
    assert!(message.starts_with("The node was low on resource: memory. Threshold"), "{message}");
    assert!(message.contains("Container main was using "), "{message}");
    assert!(message.ends_with("request is 0, has larger consumption of memory. "), "{message}");
    let annotations = machine.annotations("greedy", "Evicted").await;
    assert_eq!(annotations["offending_containers"], "main");
    assert_eq!(annotations["starved_resource"], "memory");
    assert!(message.contains(&annotations["offending_containers_usage"]), "{annotations:?}");
    let moderate = machine.until_phase("moderate", "Failed").await;
    let since = |pod: &Pod| disrupted(pod).expect("it was disrupted").last_transition_time.clone();
    assert!(since(&greedy) <= since(&moderate), "who asked for what it has goes later");
    let mut late = serve();
    late["nodeName"] = json!("starved");
    machine.run("late", late).await;
    let pod = machine.until_phase("late", "Failed").await;
    let message = "Pod was rejected: The node had condition: [MemoryPressure]. ";
    assert_eq!(why(&pod), ("Evicted", message));
    machine
        .until_true("the Node says so", async || has(&machine.node().await, "MemoryPressure"))
        .await;
    assert!(is_ready(&machine.until("critical", is_ready).await));
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_takes_most_files_goes_when_a_disk_has_no_room_for_more() {
    const FILES: u64 = 1000;
    let root = containerd::shared().room("counted").join("root");
    std::fs::create_dir_all(&root).expect("a directory of our own");
    containerd::mount_for_files(&root, FILES);
    let machine = Machine::start_kept("counted", |keep| {
        keep.eviction_hard = [("nodefs.inodesFree".into(), "50%".into())].into();
        keep.eviction_monitoring_period = OFTEN;
    })
    .await;
    machine.run("few", fills(1, None)).await;
    machine.until("few", is_ready).await;
    let script = format!("i=0; while [ $i -lt 600 ]; do : > /v/$i; i=$((i+1)); done; {SERVE}");
    let mut many = fills(1, None);
    many["containers"][0]["command"] = json!(["sh", "-c", script]);
    machine.run("many", many).await;
    let pod = machine.until_phase("many", "Failed").await;
    let (reason, message) = why(&pod);
    assert_eq!(reason, "Evicted");
    let low = "The node was low on resource: inodes. Threshold quantity: 500, available: ";
    assert!(message.starts_with(low), "{message}");
    let annotations = machine.annotations("many", "Evicted").await;
    assert_eq!(annotations["starved_resource"], "inodes");
    assert_eq!(annotations["offending_containers"], "", "nobody asks for files");
    machine
        .until_true("the Node says so", async || has(&machine.node().await, "DiskPressure"))
        .await;
    let events = machine.events("counted").await;
    let attempt = "EvictionThresholdMet: Attempting to reclaim inodes".to_owned();
    assert!(events.contains(&attempt), "{events:?}");
    assert_eq!(phase(&machine.until("few", is_ready).await), "Running");
    machine.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_most_processes_goes_when_there_are_no_numbers_for_more() {
    let mut machine = Machine::start("numbered").await;
    let quiet = || spec("Always", &json!([shell("main", SERVE)]));
    let forks = format!("for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; {SERVE}");
    let mut critical = quiet();
    critical["priorityClassName"] = json!("system-node-critical");
    let busy = spec("Always", &json!([shell("main", &forks)]));
    for (name, pod) in [("quiet", quiet()), ("busy", busy), ("critical", critical)] {
        machine.run(name, pod).await;
        machine.until(name, is_ready).await;
    }
    // Nearly all numbers would have to be free: nothing has to be starved for this.
    machine
        .restart_kept(|keep| {
            keep.eviction_hard = [("pid.available".into(), "99.999%".into())].into();
            keep.eviction_monitoring_period = OFTEN;
        })
        .await;
    let busy = machine.until_phase("busy", "Failed").await;
    let (reason, message) = why(&busy);
    assert_eq!(reason, "Evicted");
    let low = "The node was low on resource: pids. Threshold quantity: ";
    assert!(message.starts_with(low), "{message}");
    assert_eq!(machine.annotations("busy", "Evicted").await["starved_resource"], "pids");
    let quiet = machine.until_phase("quiet", "Failed").await;
    let since = |pod: &Pod| disrupted(pod).expect("it was disrupted").last_transition_time.clone();
    assert!(since(&busy) <= since(&quiet), "who has fewer goes later");
    let pressure = "node.kubernetes.io/pid-pressure:NoSchedule".to_owned();
    machine
        .until_true("the Node says so", async || {
            let node = machine.node().await;
            has(&node, "PIDPressure") && taints(&node).contains(&pressure)
        })
        .await;
    let mut late = spec("Never", &json!([shell("main", "true")]));
    late["nodeName"] = json!("numbered");
    machine.run("late", late).await;
    let pod = machine.until_phase("late", "Failed").await;
    let message = "Pod was rejected: The node had condition: [PIDPressure]. ";
    assert_eq!(why(&pod), ("Evicted", message));
    assert!(is_ready(&machine.until("critical", is_ready).await));
    machine.end().await;
}
