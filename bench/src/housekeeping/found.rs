//! How soon a Pod of a large Service is found: from when it is ready until a slice says so.

use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{DEPLOYMENTS, PODS_PER_NODE, SETTLE_TIME, deployment, tell};
use crate::program::Program;
use crate::report::{Figure, Report, percentile_of};
use crate::rollout::user::{User, text};

pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
/// How many Pods come to a large Service, and how much time is between two of them.
const FRESH: usize = 500;
const FRESH_EVERY: Duration = Duration::from_millis(20);

/// How soon a Pod that is ready stands in a slice of its Service, which has many.
pub(super) async fn measure(pods: usize, report: &mut Report) -> Result<(), String> {
    let nodes = ((pods + FRESH) / PODS_PER_NODE + 2).to_string();
    let program = Program::start(&["--nodes", &nodes])?;
    program.ready().await.map_err(|error| error.to_string())?;
    let user = User::of(program.kubeconfig()).await?;
    let service = json!({"metadata": {"name": "web"},
                         "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    user.create(SERVICES, &service).await?;
    let mut web = user.follow(DEPLOYMENTS, "web").await?;
    user.create(DEPLOYMENTS, &deployment(pods)).await?;
    web.until_one(|web| web["status"]["availableReplicas"] == pods).await?;
    tokio::time::sleep(SETTLE_TIME).await;
    let (ready, told) = (RefCell::new(HashMap::new()), RefCell::new(HashMap::new()));
    let mut fresh = user.follow_selected(PODS, "labelSelector=fresh%3Dyes").await?;
    let of_web = "labelSelector=kubernetes.io%2Fservice-name%3Dweb";
    let mut slices = user.follow_selected(SLICES, of_web).await?;
    let writes = RefCell::new(0_u32);
    let seen = fresh.each(|_, pod| {
        let mut ready = ready.borrow_mut();
        if let Some(pod) = pod.filter(|pod| is_ready(pod)) {
            ready.entry(text(&pod["metadata"]["name"])).or_insert_with(Instant::now);
        }
        ready.len() < FRESH
    });
    let found = slices.each(|_, slice| {
        let mut told = told.borrow_mut();
        *writes.borrow_mut() += u32::from(slice.is_some());
        let endpoints = slice.and_then(|slice| slice["endpoints"].as_array());
        for endpoint in endpoints.into_iter().flatten() {
            let pod = text(&endpoint["targetRef"]["name"]);
            if pod.starts_with("fresh-") && endpoint["conditions"]["ready"] == true {
                told.entry(pod).or_insert_with(Instant::now);
            }
        }
        told.len() < FRESH
    });
    let come = async {
        for number in 0..FRESH {
            let labels = json!({"app": "web", "fresh": "yes"});
            let pod = json!({"metadata": {"name": format!("fresh-{number}"), "labels": labels},
                             "spec": {"containers": [{"name": "main", "image": "nginx"}]}});
            user.create(PODS, &pod).await?;
            tokio::time::sleep(FRESH_EVERY).await;
        }
        Ok::<(), String>(())
    };
    futures::try_join!(seen, found, come)?;
    let (ready, told) = (ready.into_inner(), told.into_inner());
    let late = |(pod, at): (&String, &Instant)| {
        told.get(pod).map(|told| told.saturating_duration_since(*at))
    };
    let mut late: Vec<Duration> = ready.iter().filter_map(late).collect();
    let metric = format!("Pod ready to slice, Service of {pods} Pods, p50");
    tell(report, &metric, percentile_of(&mut late, 0.50), "ms");
    let value = percentile_of(&mut late, 0.99);
    report.figure(&Figure { metric: "  p99", value, unit: "ms", goal: "goal: under 20" });
    tell(report, "  slices written for each Pod", f64::from(*writes.borrow()) / FRESH as f64, "");
    Ok(())
}

/// Whether a Pod says that it is ready.
pub(super) fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|it| it["type"] == "Ready" && it["status"] == "True")
}
