//! What a test can see of requests and of what is counted, its own and the cluster's.

use http::Request;
use k8s_openapi::api::apps::v1::Deployment;
use serde_json::json;
use steersman::Result;
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
