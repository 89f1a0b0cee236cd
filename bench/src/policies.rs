//! What policies cost a write that none of them is about, through the whole write: ConfigMaps are
//! created in process, by turns on a server without policies and on one with a thousand.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use steersman_cluster::{ApiServer, Cluster, Controllers};
use tokio::runtime::Builder;
use tokio::time::Instant;
use tower::ServiceExt;

use crate::report::{Figure, Report, median};

const POLICIES: usize = 1000;
const ROUNDS: usize = 21;
/// How many writes are timed together.
const WRITES: usize = 500;
/// Writes before anything is timed.
const WARM_UP: usize = 2000;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// Runs the benchmark.
pub(crate) fn run(report: &mut Report) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let [without, with] = runtime.map_err(|error| error.to_string())?.block_on(measure())?;
    let figures = [
        ("ConfigMap created in process, no policies", without, ""),
        ("the same, 1,000 policies about something else", with, ""),
        ("what they cost a write", with - without, "goal: under 20"),
    ];
    for (metric, value, goal) in figures {
        report.figure(&Figure { metric, value, unit: "us", goal });
    }
    Ok(())
}

/// The median time of a write in microseconds, without and with policies.
async fn measure() -> Result<[f64; 2], String> {
    let clusters = [cluster().await?, cluster().await?];
    for number in 0..POLICIES {
        register(clusters[1].api(), number).await?;
    }
    for cluster in &clusters {
        create(cluster.api(), 0..WARM_UP).await?;
    }
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..ROUNDS {
        let first = WARM_UP + round * WRITES;
        for (cluster, times) in clusters.iter().zip(&mut times) {
            let took = create(cluster.api(), first..first + WRITES).await?;
            times.push(took.as_secs_f64() * 1e6 / WRITES as f64);
        }
    }
    for cluster in clusters {
        cluster.stop().await;
    }
    Ok(times.map(median))
}

/// Nothing but the API server: whoever else works would be measured, too.
async fn cluster() -> Result<Cluster, String> {
    let cluster = Cluster::builder().nodes(0).controllers(Controllers::NONE).start().await;
    cluster.map_err(|error| error.to_string())
}

/// A policy about objects that do not exist, and its binding.
async fn register(api: &ApiServer, number: usize) -> Result<(), String> {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": format!("policy-{number}")},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [format!("group-{number}.example.com")], "apiVersions": ["*"],
                "operations": ["*"], "resources": ["configmaps"],
            }]},
            "validations": [{"expression": "object.metadata.name != 'x'"}],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": format!("binding-{number}")},
        "spec": {"policyName": format!("policy-{number}"), "validationActions": ["Deny"]},
    });
    post(api, &format!("{GROUP}/validatingadmissionpolicies"), &policy).await?;
    post(api, &format!("{GROUP}/validatingadmissionpolicybindings"), &binding).await
}

/// Creates ConfigMaps of one kilobyte, one after the other.
async fn create(api: &ApiServer, numbers: std::ops::Range<usize>) -> Result<Duration, String> {
    let documents: Vec<Value> = numbers.map(config_map).collect();
    let start = Instant::now();
    for document in &documents {
        post(api, CONFIG_MAPS, document).await?;
    }
    Ok(start.elapsed())
}

fn config_map(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("load-{number:05}")},
        "data": {"payload": "x".repeat(1000)},
    })
}

async fn post(api: &ApiServer, path: &str, document: &Value) -> Result<(), String> {
    let request = Request::post(path)
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(document.to_string())))
        .map_err(|error| error.to_string())?;
    let response = api.clone().oneshot(request).await.map_err(|error| error.to_string())?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
    match status.is_success() {
        true => Ok(()),
        false => Err(format!("{path}: {}", String::from_utf8_lossy(&body.to_bytes()))),
    }
}
