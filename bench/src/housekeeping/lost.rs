//! How soon the Pods of a node that is lost run elsewhere. In this process, where a simulated node can be
//! lost, and over HTTPS.
//!
//! How long nobody gives a node up that is silent, and how long Pods stay on it then, is a choice: 50 seconds
//! and five minutes in Kubernetes, two seconds and none here. What is measured is what comes after.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use steersman_cluster::{Cluster, ControllerSettings, NodeLifecycleSettings};
use tokio::time::Instant;

use super::found::{PODS, is_ready};
use super::{DEPLOYMENTS, deployment, milliseconds, tell};
use crate::report::Report;
use crate::rollout::user::User;

const NODES: &str = "/api/v1/nodes";
/// How many nodes there are: the others have room for the Pods of one.
const COUNT: usize = 10;
/// The node that is lost.
const LOST: &str = "node-0";
/// How long it may be silent, and how often it is looked at.
const GRACE: Duration = Duration::from_secs(2);
const LOOKED_EVERY: Duration = Duration::from_millis(100);

/// Loses a node with about so many Pods.
pub(super) async fn measure(pods: usize, report: &mut Report) -> Result<(), String> {
    let node_lifecycle = NodeLifecycleSettings {
        monitor_grace_period: GRACE,
        monitor_period: LOOKED_EVERY,
        ..NodeLifecycleSettings::default()
    };
    let settings = ControllerSettings { node_lifecycle, ..ControllerSettings::default() };
    let cluster = Cluster::builder().nodes(COUNT).controller_settings(settings);
    let cluster = cluster.listen(SocketAddr::from(([127, 0, 0, 1], 0))).start().await;
    let cluster = cluster.map_err(|error| error.to_string())?;
    let endpoint = cluster.endpoint().ok_or("the cluster does not listen")?;
    let user = User::of_text(&endpoint.kubeconfig).await?;
    let all = pods * COUNT;
    let mut web = deployment(all);
    web["spec"]["template"]["spec"]["tolerations"] = json!([
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute",
         "tolerationSeconds": 0},
    ]);
    let mut followed = user.follow(DEPLOYMENTS, "web").await?;
    user.create(DEPLOYMENTS, &web).await?;
    followed.until_one(|web| web["status"]["availableReplicas"] == all).await?;
    let mut running = user.follow_selected(PODS, "labelSelector=app%3Dweb").await?;
    let mut node = user.follow(NODES, LOST).await?;
    let there = running.objects().filter(|pod| is_on_lost(pod)).count();

    cluster.nodes().named(LOST).lost();
    let begun = Instant::now();
    node.until_one(is_given_up).await?;
    tell(
        report,
        &format!("node of {there} Pods lost, until it is given up"),
        milliseconds(begun),
        "ms",
    );
    let begun = Instant::now();
    running.until(|pods| !pods.values().any(|pod| is_on_lost(pod) && !is_going(pod))).await?;
    tell(report, "  from then until its Pods are evicted", milliseconds(begun), "ms");
    let elsewhere = |pod: &&Value| !is_on_lost(pod) && is_ready(pod);
    running.until(|pods| pods.values().filter(elsewhere).count() >= all).await?;
    tell(report, "  and until all are ready elsewhere", milliseconds(begun), "ms");
    cluster.stop().await;
    Ok(())
}

fn is_on_lost(pod: &Value) -> bool {
    pod["spec"]["nodeName"] == LOST
}

fn is_going(pod: &Value) -> bool {
    !pod["metadata"]["deletionTimestamp"].is_null()
}

/// Whether nobody knows of a node whether it is ready.
fn is_given_up(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == "Ready" && it["status"] == "Unknown")
}
