//! What a test can see of requests and of what is counted, its own and the cluster's.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Event, Node};
use serde_json::json;
use steersman::{ListOptions, Result};
use steersman_testkit::Cluster;

use crate::config_map;

fn web() -> Deployment {
    let template = json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": "nginx"}]},
    });
    let spec =
        json!({"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec})).unwrap()
}

#[steersman::test]
async fn who_did_what_is_kept(cluster: Cluster) -> Result<()> {
    let record = cluster.audit();
    cluster.client().create(&config_map("a")).await?;
    cluster.client().create(&web()).await?;
    let available = |web: &Deployment| {
        web.status.as_ref().and_then(|status| status.available_replicas) == Some(2)
    };
    cluster.eventually("web", available).await?;
    let events = record.documents();
    let made = |resource: &str| {
        let of_resource = events.iter().filter(|event| {
            event["objectRef"]["resource"] == resource
                && event["verb"] == "create"
                && event["stage"] == "ResponseComplete"
                && event["objectRef"]["subresource"].is_null()
        });
        let users = of_resource.map(|event| event["user"]["username"].as_str().unwrap().to_owned());
        users.collect::<Vec<_>>()
    };
    let controller = |name: &str| format!("system:serviceaccount:kube-system:{name}");
    // The publisher of kube-root-ca.crt may be at work yet.
    let publisher = controller("root-ca-cert-publisher");
    let maps: Vec<String> = made("configmaps").into_iter().filter(|it| *it != publisher).collect();
    assert_eq!(maps, ["system:admin"]);
    assert_eq!(made("replicasets"), [controller("deployment-controller")]);
    assert_eq!(made("pods"), vec![controller("replicaset-controller"); 2]);
    Ok(())
}

#[steersman::test(nodes = 1)]
async fn events_are_told_by_those_whose_they_are(cluster: Cluster) -> Result<()> {
    let record = cluster.audit();
    cluster.client().create(&web()).await?;
    let available = |web: &Deployment| {
        web.status.as_ref().and_then(|status| status.available_replicas) == Some(2)
    };
    cluster.eventually("web", available).await?;
    cluster.advance(Duration::from_secs(1)).await; // they are written in the background
    let documents = record.documents();
    let told = documents.iter().filter(|event| {
        event["objectRef"]["resource"] == "events"
            && event["stage"] == "ResponseComplete"
            && event["responseStatus"]["code"].as_u64().is_some_and(|code| code < 300)
    });
    let users: BTreeSet<&str> =
        told.map(|event| event["user"]["username"].as_str().unwrap()).collect();
    let account = "system:serviceaccount:kube-system";
    let [deployments, sets, nodes] =
        ["deployment", "replicaset", "node"].map(|name| format!("{account}:{name}-controller"));
    let node =
        cluster.client().list::<Node>(&ListOptions::default()).await?.remove(0).metadata.name;
    let kubelet = format!("system:node:{}", node.unwrap());
    let scheduler = "system:kube-scheduler";
    assert_eq!(users, BTreeSet::from([&*deployments, &sets, &nodes, &kubelet, scheduler]));

    let events = cluster.client().list::<Event>(&ListOptions::namespace("default")).await?;
    let told = events.into_iter().map(|event| {
        let manager = event.metadata.managed_fields.unwrap().remove(0).manager.unwrap();
        (event.reason.unwrap(), manager)
    });
    let managers: BTreeMap<String, String> = told.collect();
    for (reason, manager) in [
        ("ScalingReplicaSet", "kube-controller-manager"),
        ("SuccessfulCreate", "kube-controller-manager"),
        ("Scheduled", "kube-scheduler"),
        ("Started", "kubelet"),
    ] {
        assert_eq!(managers.get(reason).map(String::as_str), Some(manager), "{reason}");
    }
    Ok(())
}

/// The metrics of controller-runtime's dashboard, and of work queues in kubernetes-mixin's.
const OF_CONTROLLERS: &[&str] = &[
    "workqueue_adds_total",
    "workqueue_depth",
    "workqueue_queue_duration_seconds_bucket",
    "workqueue_work_duration_seconds_bucket",
    "workqueue_retries_total",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_time_seconds_bucket",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_max_concurrent_reconciles",
    "controller_runtime_active_workers",
];

#[steersman::test]
async fn what_controllers_count_is_told_beside_what_the_server_counts(
    cluster: Cluster,
) -> Result<()> {
    cluster.client().create(&web()).await?;
    cluster
        .eventually("web", |web: &Deployment| {
            web.status.as_ref().and_then(|status| status.available_replicas) == Some(2)
        })
        .await?;
    let request = Request::get("/metrics").body(Vec::new()).unwrap();
    let page = cluster.client().kube().request_text(request).await?;
    for name in OF_CONTROLLERS {
        let is_there = page
            .lines()
            .any(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' '])));
        assert!(is_there, "{name}\n{page}");
    }
    let mut families: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .filter_map(|line| line.split(' ').next())
        .collect();
    let number = families.len();
    families.sort_unstable();
    families.dedup();
    assert_eq!(families.len(), number, "a family is told twice");
    Ok(())
}
