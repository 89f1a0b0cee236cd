//! Writes over HTTPS, as any client makes them, while the handlers of a subject listen.

use std::path::Path;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use http::Request;
use serde_json::json;
use steersman_bench_server::pods::Pods;
use steersman_bench_server::{SEED, WRITTEN};
use tokio::time::{Instant, sleep_until};

use crate::processes::connect;
use crate::processes::wire::{Phase, nanoseconds};

/// How many patches are under way at most.
const CONCURRENCY: usize = 8;
/// How many patches begin in a second: as many as the server easily takes beside a subject on
/// two cores, so that latencies are the subject's and not those of a queue before the server.
pub(crate) const RATE: f64 = 1000.0;

/// Patches objects at a steady rate; each patch carries the time at which it was sent.
pub(crate) async fn patch(
    kubeconfig: &Path,
    paths: impl Iterator<Item = String>,
    rate: f64,
) -> Result<(), String> {
    let client = connect::client(kubeconfig).await?;
    let start = Instant::now();
    let patches = paths.enumerate().map(|(number, path)| {
        let client = client.clone();
        async move {
            sleep_until(start + Duration::from_secs_f64(number as f64 / rate)).await;
            let mark = Phase::Patches.mark(nanoseconds());
            let patch = json!({ "metadata": { "annotations": { WRITTEN: mark } } });
            let request = Request::patch(format!("{path}?fieldManager=bench"))
                .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
                .body(patch.to_string().into_bytes())?;
            client.request_text(request).await?;
            Ok::<(), steersman::Error>(())
        }
    });
    let sent = stream::iter(patches).buffered(CONCURRENCY).try_collect::<()>().await;
    sent.map_err(|error| format!("cannot patch: {error}"))
}

/// Where the Pods are, in the order in which they were made.
pub(super) fn pods(count: usize) -> impl Iterator<Item = String> {
    let mut pods = Pods::new(SEED, count);
    (0..count).map(move |_| {
        let pod = pods.next_pod();
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
        let namespace = text("namespace");
        let name = text("name");
        format!("/api/v1/namespaces/{namespace}/pods/{name}")
    })
}
