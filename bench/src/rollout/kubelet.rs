//! The kubelet of all nodes that Kubernetes' own programs are given: Pods run and are ready as soon
//! as they are bound, or are done, and are gone as soon as they are told to end.
//!
//! It writes less than a kubelet does, and less than our own nodes, which tell Events and how each
//! container ended: what is measured is the control plane, and this shares its processors.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Value, json};
use steersman::clock;
use tokio::sync::Semaphore;

use super::user::{User, text};
use super::workloads::{DONE_AT_ONCE, NODES, PODS};

/// How many writes are under way at once.
const CONCURRENCY: usize = 16;
/// How much a node has, as our simulated ones.
const PODS_OF_NODE: &str = "110";

/// Registers so many nodes, ready for Pods.
pub(super) async fn register(user: &User, nodes: usize) -> Result<(), String> {
    for number in 0..nodes {
        let name = format!("node-{number}");
        user.create(NODES, &node(&name)?).await?;
        // Nobody watches over nodes here who would take away what says that they are not ready.
        user.merge(&format!("{NODES}/{name}"), &json!({"spec": {"taints": null}})).await?;
    }
    Ok(())
}

fn node(name: &str) -> Result<Value, String> {
    let now = now()?;
    let amounts = json!({"cpu": "8", "memory": "32Gi", "pods": PODS_OF_NODE});
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady",
                            "lastHeartbeatTime": now, "lastTransitionTime": now}],
        },
    }))
}

/// What is to be done about a Pod.
enum Action {
    Report(Value),
    Remove,
}

/// Works on all Pods that are bound, until it is dropped.
pub(super) async fn run(user: User) -> Result<(), String> {
    let mut pods = user.follow_selected(PODS, "fieldSelector=spec.nodeName%21%3D").await?;
    let permits = Arc::new(Semaphore::new(CONCURRENCY));
    let mut reported = HashSet::new();
    let mut removed = HashSet::new();
    let mut work = |pod: &Value| {
        let uid = text(&pod["metadata"]["uid"]);
        let is_ending = pod["metadata"]["deletionTimestamp"].is_string();
        let action = match is_ending {
            true => removed.insert(uid.clone()).then_some(Action::Remove),
            false if pod["status"]["phase"] != "Pending" => None,
            false => {
                reported.insert(uid.clone()).then(|| status(pod).map(Action::Report).ok()).flatten()
            }
        };
        if let Some(action) = action {
            let path = format!("{PODS}/{}", text(&pod["metadata"]["name"]));
            tokio::spawn(act(user.clone(), Arc::clone(&permits), path, uid, action));
        }
    };
    pods.objects().for_each(&mut work);
    pods.each(|_, changed| {
        changed.into_iter().for_each(&mut work);
        true
    })
    .await
}

/// Does it. A Pod may be gone by now, and then there is nothing to be done.
async fn act(user: User, permits: Arc<Semaphore>, path: String, uid: String, action: Action) {
    let Ok(_permit) = permits.acquire().await else { return };
    let _ = match action {
        Action::Report(status) => user.patch(&format!("{path}/status"), &status).await,
        Action::Remove => {
            let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
            user.delete(&path, &options).await
        }
    };
}

/// What is reported of a Pod: it runs, or it is done.
fn status(pod: &Value) -> Result<Value, String> {
    let now = now()?;
    let container = &pod["spec"]["containers"][0];
    let is_done = container["image"] == DONE_AT_ONCE;
    let phase = if is_done { "Succeeded" } else { "Running" };
    let ready = if is_done { "False" } else { "True" };
    let state = match is_done {
        true => json!({"terminated": {"exitCode": 0, "reason": "Completed",
                                      "startedAt": now, "finishedAt": now}}),
        false => json!({"running": {"startedAt": now}}),
    };
    let condition = |name: &str, status: &str| json!({"type": name, "status": status, "lastTransitionTime": now});
    Ok(json!({"status": {
        "phase": phase,
        "startTime": now,
        "hostIP": "10.0.0.1",
        "podIP": "10.244.0.2",
        "podIPs": [{"ip": "10.244.0.2"}],
        "conditions": [
            condition("PodReadyToStartContainers", ready),
            condition("Initialized", "True"),
            condition("Ready", ready),
            condition("ContainersReady", ready),
        ],
        "containerStatuses": [{
            "name": container["name"], "image": container["image"], "imageID": "",
            "ready": !is_done, "started": !is_done, "restartCount": 0, "state": state,
        }],
    }}))
}

fn now() -> Result<Value, String> {
    serde_json::to_value(clock::now_time()).map_err(|error| error.to_string())
}
