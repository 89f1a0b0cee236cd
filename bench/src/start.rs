//! How long a cluster in a test takes: to its first served request, and for a whole scenario.

use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use steersman::{Client, Manager};
use steersman_cluster::Cluster;
use steersman_examples::app_service::{AppService, app_service, app_services};
use tokio::runtime::Builder;
use tokio::time::Instant;

use crate::report::{Figure, Report, median};

const ROUNDS: usize = 21;

/// Runs the benchmark.
pub(crate) fn run(report: &mut Report) -> Result<(), String> {
    let first = measure(first_request)?;
    report.figure(&Figure {
        metric: "start in process, to the first served request",
        value: first,
        unit: "ms",
        goal: "goal: under 50",
    });
    let scenario = measure(scenario)?;
    report.figure(&Figure {
        metric: "start, AppService, 3 of 3 replicas available",
        value: scenario,
        unit: "ms",
        goal: "",
    });
    report.figure(&Figure {
        metric: "the same as a test, in debug",
        value: debug_test()?,
        unit: "ms",
        goal: "goal: under 1000",
    });
    Ok(())
}

/// The median time of a scenario in milliseconds, each round on a fresh runtime.
fn measure<F>(scenario: fn() -> F) -> Result<f64, String>
where
    F: Future<Output = steersman::Result<Duration>>,
{
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let took = runtime.block_on(scenario()).map_err(|error| error.to_string())?;
        times.push(took.as_secs_f64() * 1000.0);
    }
    Ok(median(times))
}

async fn first_request() -> steersman::Result<Duration> {
    let start = Instant::now();
    let cluster = Cluster::builder().nodes(3).start().await?;
    let client = Client::new(cluster.client(), "bench");
    client.get::<Namespace>("default").await?;
    Ok(start.elapsed())
}

async fn scenario() -> steersman::Result<Duration> {
    use kube::CustomResourceExt;
    let start = Instant::now();
    let cluster = Cluster::builder().nodes(3).start().await?;
    let client = Client::new(cluster.client(), "bench");
    client.apply(&AppService::crd()).await?;
    let _controllers = Manager::new(cluster.client()).with(app_services()).start();
    client.create(&app_service("shop", 3)).await?;
    loop {
        let app = client.get::<AppService>("shop").await?;
        if app.is_some_and(|app| app.available() == 3) {
            return Ok(start.elapsed());
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// What `cargo test` says the documented test took.
fn debug_test() -> Result<f64, String> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--package", "steersman-examples", "--test", "it"])
        .args(["--", "--exact", "app_service::an_app_service_becomes_available"])
        .output()
        .map_err(|error| format!("cannot run cargo test: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let seconds = text
        .lines()
        .find(|line| line.starts_with("test result: ok. 1 passed"))
        .and_then(|line| line.rsplit("finished in ").next())
        .and_then(|time| time.trim().strip_suffix('s'))
        .and_then(|time| time.parse::<f64>().ok());
    seconds.map(|seconds| seconds * 1000.0).ok_or_else(|| {
        format!("the test did not pass: {text}{}", String::from_utf8_lossy(&output.stderr))
    })
}
