//! What is measured of an informer, in the same order for every system.
//!
//! A [`Subject`] is a system under test in a process of its own. It syncs, settles, is read,
//! and then its handlers hear of writes that the benchmark makes elsewhere. The Go program in
//! `bench/go` does the same for client-go.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman_bench_server::pods::{NODES, node_name};
use tokio::time::Instant;

use super::hearing::{self, Handler};
use crate::processes::wire::{Line, Phase, figure, nanoseconds, tell};
use crate::processes::{connect, usage};
use crate::report::percentile;

/// How long a process rests before its memory is read.
pub(crate) const SETTLE: Duration = Duration::from_secs(3);
/// How many objects are read again and again.
pub(crate) const HOT: usize = 100;
/// How often they are read.
const HOT_READS: usize = 1_000_000;
/// How many objects are read once.
const COLD: usize = 5_000;

/// A cache of Pods that is kept up to date.
pub(crate) trait Subject: Sized {
    /// Names a Pod in the cache.
    type Key;

    /// Starts the informer and waits until its cache has all Pods.
    async fn start(client: kube::Client) -> Self;

    /// How many Pods the cache has.
    fn len(&self) -> usize;

    /// Makes Pods findable by node, if the system can.
    fn index_by_node(&self) {}

    /// How many Pods are on a node; all of them must have been in hand.
    fn count_on_node(&self, node: &str) -> usize;

    /// The same without decoding them, where a system holds them encoded.
    fn count_items_on_node(&self, _node: &str) -> Option<usize> {
        None
    }

    /// The keys of some Pods.
    fn keys(&self, count: usize) -> Vec<Self::Key>;

    /// Reads a Pod.
    fn get(&self, key: &Self::Key) -> Option<Arc<Pod>>;

    /// Adds handlers, which are told the mark of every Pod they hear of.
    async fn listen(&mut self, handlers: Vec<Handler>);
}

/// Measures a subject.
pub(crate) async fn measure<S: Subject>(kubeconfig: &Path, updates: usize) -> Result<(), String> {
    let client = connect::client(kubeconfig).await?;
    let before = usage::resident()?;
    let computed = usage::computed()?;
    let start = Instant::now();
    let mut subject = S::start(client).await;
    figure("sync_seconds", start.elapsed().as_secs_f64())?;
    figure("sync_cpu_seconds", usage::computed()? - computed)?;
    figure("peak_bytes", usage::peak()?)?;
    tokio::time::sleep(SETTLE).await;
    let count = subject.len();
    figure("pods", count as f64)?;
    figure("bytes_per_object", (usage::resident()? - before) / count as f64)?;
    lists(&subject)?;
    reads(&subject)?;
    let (handlers, mut hearing) = hearing::handlers(updates);
    subject.listen(handlers).await;
    for phase in [Phase::Patches, Phase::Burst] {
        tell(&Line::Await(phase))?;
        let latencies = hearing.finish(phase).await?;
        tell(&Line::Heard { phase, at: nanoseconds() })?;
        if phase == Phase::Patches {
            figure("update_p50_ms", percentile(&latencies, 0.50))?;
            figure("update_p99_ms", percentile(&latencies, 0.99))?;
        }
    }
    Ok(())
}

/// Lists the Pods of every node.
fn lists<S: Subject>(subject: &S) -> Result<(), String> {
    subject.index_by_node();
    let took = list(subject.len(), |node| Some(subject.count_on_node(node)))?;
    took.map_or(Ok(()), |took| figure("index_list_us", took))?;
    let took = list(subject.len(), |node| subject.count_items_on_node(node))?;
    took.map_or(Ok(()), |took| figure("index_items_us", took))
}

/// The mean time of a list in microseconds, or `None` if there is no such list.
fn list(all: usize, count: impl Fn(&str) -> Option<usize>) -> Result<Option<f64>, String> {
    let nodes: Vec<String> = (0..NODES).map(node_name).collect();
    let start = Instant::now();
    let found: Option<usize> = nodes.iter().map(|node| black_box(count(node))).sum();
    let took = start.elapsed().as_secs_f64() * 1e6 / nodes.len() as f64;
    match found {
        Some(found) if found != all => Err(format!("{found} Pods are on nodes, of {all}")),
        found => Ok(found.map(|_| took)),
    }
}

/// Reads Pods that were not read before, and some Pods often.
fn reads<S: Subject>(subject: &S) -> Result<(), String> {
    let keys = subject.keys(COLD);
    let start = Instant::now();
    let found = keys.iter().filter(|key| black_box(subject.get(key)).is_some()).count();
    figure("cold_get_ns", start.elapsed().as_nanos() as f64 / found as f64)?;
    let hot = &keys[keys.len().saturating_sub(HOT)..];
    figure("get_ns", hot_reads(hot, |key| subject.get(key)))
}

/// The nanoseconds that a read of one of a few keys takes.
pub(crate) fn hot_reads<K>(hot: &[K], get: impl Fn(&K) -> Option<Arc<Pod>>) -> f64 {
    let rounds = HOT_READS / hot.len().max(1);
    let start = Instant::now();
    for _ in 0..rounds {
        for key in hot {
            black_box(get(black_box(key)));
        }
    }
    start.elapsed().as_nanos() as f64 / (rounds * hot.len()) as f64
}
