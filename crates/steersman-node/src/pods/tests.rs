use std::time::Duration;

use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::ended::{End, ended, has_ended, rejected};
use super::status::{Surroundings, observed, running, time_left};
use crate::addresses::Rejection;
use crate::runtime::{ContainerRuntime, Simulated};

fn pod() -> Pod {
    let pod = json!({
        "metadata": {"namespace": "default", "name": "web", "uid": "u1", "generation": 3},
        "spec": {
            "nodeName": "node-0",
            "initContainers": [
                {"name": "setup", "image": "busybox"},
                {"name": "proxy", "image": "envoy", "restartPolicy": "Always"},
            ],
            "containers": [{"name": "main", "image": "nginx:1.27"}],
        },
        "status": {
            "phase": "Pending",
            "qosClass": "BestEffort",
            "conditions": [{"type": "PodScheduled", "status": "True"}],
        },
    });
    serde_json::from_value(pod).unwrap()
}

fn time(text: &str) -> Time {
    Time(text.parse().unwrap())
}

async fn around(pod: &Pod) -> Surroundings {
    Surroundings {
        pod_address: "10.244.0.1".into(),
        host_address: "172.18.0.2".into(),
        containers: Simulated::new(Duration::ZERO).run(pod).await.unwrap(),
    }
}

fn condition<'a>(conditions: &'a Option<Vec<PodCondition>>, type_: &str) -> &'a PodCondition {
    conditions.iter().flatten().find(|condition| condition.type_ == type_).unwrap()
}

fn named<'a>(statuses: &'a Option<Vec<ContainerStatus>>, name: &str) -> &'a ContainerStatus {
    statuses.iter().flatten().find(|status| status.name == name).unwrap()
}

#[tokio::test]
async fn a_pod_that_runs_is_ready_and_has_its_addresses() {
    let status = running(&pod(), &around(&pod()).await, &time("2030-01-01T12:00:00Z"));
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert_eq!(status.pod_ip.as_deref(), Some("10.244.0.1"));
    assert_eq!(status.host_ip.as_deref(), Some("172.18.0.2"));
    assert_eq!(status.observed_generation, Some(3));
    assert_eq!(status.qos_class.as_deref(), Some("BestEffort"));
    for type_ in ["PodScheduled", "Initialized", "ContainersReady", "Ready"] {
        assert_eq!(condition(&status.conditions, type_).status, "True", "{type_}");
    }
}

#[tokio::test]
async fn containers_run_and_init_containers_are_done_unless_they_stay() {
    let status = running(&pod(), &around(&pod()).await, &time("2030-01-01T12:00:00Z"));
    let main = named(&status.container_statuses, "main");
    assert!(main.ready && main.state.as_ref().unwrap().running.is_some());
    assert_eq!(main.container_id.as_deref(), Some("simulated://u1/main"));
    let setup = named(&status.init_container_statuses, "setup").state.as_ref().unwrap();
    assert_eq!(setup.terminated.as_ref().unwrap().reason.as_deref(), Some("Completed"));
    let proxy = named(&status.init_container_statuses, "proxy").state.as_ref().unwrap();
    assert!(proxy.running.is_some());
}

#[tokio::test]
async fn looking_again_changes_nothing() {
    let mut pod = pod();
    let around = around(&pod).await;
    let first = running(&pod, &around, &time("2030-01-01T12:00:00Z"));
    pod.status = Some(first.clone());
    assert_eq!(running(&pod, &around, &time("2030-01-01T13:00:00Z")), first);
}

#[test]
fn a_pod_that_finds_no_room_fails_and_says_why() {
    let full = Rejection::OutOfPods { used: 110, capacity: 110 };
    let mut pod = pod();
    let status = rejected(&pod, &full, &time("2030-01-01T12:00:00Z"));
    assert_eq!(status.reason.as_deref(), Some("OutOfpods"));
    let why = "Node didn't have enough resource: pods, requested: 1, used: 110, capacity: 110";
    assert_eq!(status.message, Some(format!("Pod was rejected: {why}")));
    pod.status = Some(status);
    assert!(has_ended(&pod));
}

#[test]
fn a_pod_ends_by_success_or_failure() {
    let mut pod = pod();
    assert!(!has_ended(&pod));
    for phase in ["Succeeded", "Failed"] {
        pod.status.as_mut().unwrap().phase = Some(phase.into());
        assert!(has_ended(&pod));
    }
}

/// A Pod that runs, with the status that it then has.
async fn running_pod() -> Pod {
    let mut pod = pod();
    pod.status = Some(running(&pod, &around(&pod).await, &time("2030-01-01T12:00:00Z")));
    pod
}

#[tokio::test]
async fn a_pod_that_was_told_to_end_has_completed() {
    let mut pod = running_pod().await;
    pod.metadata.generation = Some(4);
    let status = ended(&pod, &End::Told, &time("2030-01-01T12:00:05Z"));
    assert_eq!(status.phase.as_deref(), Some("Succeeded"));
    assert_eq!(status.observed_generation, Some(4));
    for statuses in [&status.container_statuses, &status.init_container_statuses] {
        for container in statuses.iter().flatten() {
            let state = container.state.as_ref().unwrap().terminated.as_ref().unwrap();
            assert_eq!((state.exit_code, state.reason.as_deref()), (0, Some("Completed")));
            let done_before = container.name == "setup";
            assert_eq!(container.ready, done_before, "{}", container.name);
        }
    }
    let main = named(&status.container_statuses, "main").state.clone().unwrap();
    assert_eq!(main.terminated.unwrap().finished_at, Some(time("2030-01-01T12:00:05Z")));
    let told: Vec<_> = ["Initialized", "Ready", "ContainersReady", "PodReadyToStartContainers"]
        .iter()
        .map(|type_| condition(&status.conditions, type_))
        .map(|condition| (condition.status.as_str(), condition.reason.as_deref()))
        .collect();
    let completed = Some("PodCompleted");
    let no = ("False", completed);
    assert_eq!(told, [("True", completed), no, no, ("False", None)]);
    assert_eq!(status.pod_ip.as_deref(), Some("10.244.0.1"));
}

#[tokio::test]
async fn a_pod_whose_time_is_up_has_failed() {
    let mut pod = running_pod().await;
    let status = pod.status.clone().unwrap();
    let now = |text: &str| time(text).0;
    assert_eq!(time_left(&pod, &status, now("2030-01-01T13:00:00Z")), None);
    pod.spec.as_mut().unwrap().active_deadline_seconds = Some(60);
    for (moment, seconds) in [("12:00:00", 60), ("12:00:59", 1), ("12:01:00", 0), ("13:00:00", 0)] {
        let left = time_left(&pod, &status, now(&format!("2030-01-01T{moment}Z")));
        assert_eq!(left, Some(Duration::from_secs(seconds)), "{moment}");
    }
    let status = ended(&pod, &End::DeadlineExceeded, &time("2030-01-01T12:01:00Z"));
    assert_eq!(status.phase.as_deref(), Some("Failed"));
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
    let message = "Pod was active on the node longer than the specified deadline";
    assert_eq!(status.message.as_deref(), Some(message));
    assert_eq!(condition(&status.conditions, "Ready").reason.as_deref(), Some("PodFailed"));
}

#[tokio::test]
async fn an_ephemeral_container_runs_from_when_it_was_added() {
    let mut pod = running_pod().await;
    let added = json!([{"name": "debugger", "image": "busybox"}]);
    pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(added).unwrap();
    let status = running(&pod, &around(&pod).await, &time("2030-01-01T12:10:00Z"));
    let debugger = named(&status.ephemeral_container_statuses, "debugger");
    let state = debugger.state.as_ref().unwrap().running.as_ref().unwrap();
    assert_eq!(state.started_at, Some(time("2030-01-01T12:10:00Z")));
    assert_eq!(debugger.container_id.as_deref(), Some("simulated://u1/debugger"));
    assert!(!debugger.ready);
    pod.status = Some(status.clone());
    let again = running(&pod, &around(&pod).await, &time("2030-01-01T13:00:00Z"));
    assert_eq!(again, status, "looking again changes nothing");
}

#[tokio::test]
async fn a_pod_that_is_told_to_end_runs_on_and_says_that_it_knows() {
    let mut pod = running_pod().await;
    pod.metadata.generation = Some(4);
    let status = observed(&pod);
    assert_eq!(status.observed_generation, Some(4));
    assert_eq!(condition(&status.conditions, "Ready").observed_generation, Some(4));
    assert_eq!(status.phase.as_deref(), Some("Running"));
}
