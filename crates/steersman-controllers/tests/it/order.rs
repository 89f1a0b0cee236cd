//! Who writes what, and in which order, when a Deployment becomes a running Pod.

use std::collections::HashSet;

use k8s_openapi::api::apps::v1::Deployment;
use serde_json::Value;
use steersman::Result;
use steersman_testkit::{AuditRecord, Cluster};

use crate::objects::deployment;

/// The way from a Deployment to its Pod and back, each step by the one who takes it.
const WAY: [&str; 7] = [
    "admin create deployments",
    "deployment-controller create replicasets",
    "replicaset-controller create pods",
    "kube-scheduler create pods/binding",
    "node patch pods/status",
    "replicaset-controller update replicasets/status",
    "deployment-controller update deployments/status",
];

/// The resources whose writes are looked at.
const WORKLOADS: [&str; 4] = ["deployments", "replicasets", "statefulsets", "pods"];

/// What was written to workloads and Pods: by whom, how and to what, in the order in
/// which it was asked for. (That of the answers is another: who watches may be told before.)
pub(crate) fn writes(record: &AuditRecord) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = record.documents();
    let is_done = |event: &&Value| {
        let code = event["responseStatus"]["code"].as_u64();
        event["stage"] == "ResponseComplete" && matches!(code, Some(200 | 201))
    };
    let done: HashSet<&str> =
        events.iter().filter(is_done).filter_map(|event| event["auditID"].as_str()).collect();
    let mut writes = Vec::new();
    for event in events.iter().filter(|event| event["stage"] == "RequestReceived") {
        let object = &event["objectRef"];
        let is_read = ["get", "list", "watch"].contains(&&*text(&event["verb"]));
        let is_step = WORKLOADS.contains(&&*text(&object["resource"]));
        if is_read || !is_step || !done.contains(&&*text(&event["auditID"])) {
            continue;
        }
        let user = text(&event["user"]["username"]);
        let who = user.rsplit(':').next().unwrap_or_default();
        let who = if user.starts_with("system:node:") { "node" } else { who };
        let below = object["subresource"].as_str().map(|name| format!("/{name}"));
        let what = text(&object["resource"]) + below.as_deref().unwrap_or_default();
        writes.push(format!("{who} {} {what}", text(&event["verb"])));
    }
    writes
}

#[steersman::test]
async fn each_writes_when_the_one_before_it_has_written(cluster: Cluster) -> Result<()> {
    let record = cluster.audit();
    cluster.client().create(&deployment("web", 1, "nginx")).await?;
    let available = |web: &Deployment| {
        web.status.as_ref().and_then(|status| status.available_replicas) == Some(1)
    };
    cluster.eventually("web", available).await?;
    let writes = writes(&record);
    // What is made is made once. On the way back everybody tells last what the one before told; a
    // node may tell more of a Pod than that it is ready.
    let step = |step: &str| {
        let mut places = writes.iter().enumerate().filter(|(_, write)| *write == step);
        let is_made = step.contains(" create ");
        let is_first = is_made || step.starts_with("node ");
        let place = if is_first { places.next() } else { places.next_back() };
        assert!(!is_made || places.next().is_none(), "{step} more than once in {writes:#?}");
        place.unwrap_or_else(|| panic!("nobody did: {step}; what was done: {writes:#?}")).0
    };
    let places: Vec<usize> = WAY.iter().map(|what| step(what)).collect();
    assert!(places.is_sorted(), "{WAY:#?} stand at {places:?} of {writes:#?}");
    assert_eq!(places.last(), Some(&(writes.len() - 1)), "it ends with the Deployment's status");
    Ok(())
}
