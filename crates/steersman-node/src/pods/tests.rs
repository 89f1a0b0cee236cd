use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::status::{Surroundings, has_ended, rejected, running};
use crate::addresses::OutOfPods;
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
        containers: Simulated.run(pod).await.unwrap(),
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
    let full = OutOfPods { used: 110, capacity: 110 };
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
