//! ConfigMaps over HTTPS: how fast ten thousand are created, and whether the memory they took
//! comes back when they are deleted and history is compacted; and what a minute of updates of
//! large ones leaves behind.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use steersman::Client;
use tokio::runtime::Runtime;
use tokio::time::Instant;

use crate::program::Program;
use crate::report::{Figure, Report};

const COUNT: usize = 10_000;
const CONCURRENCY: usize = 16;
/// How much history the program keeps here, so that compaction comes soon.
const HISTORY_SECONDS: &str = "2";
/// How many large ones there are, how large, and how long they are updated.
const LARGE_COUNT: usize = 500;
const LARGE_SIZE: usize = 20_000;
const UPDATE_TIME: Duration = Duration::from_secs(60);
/// After this, what is older than history is compacted and given back.
const SETTLE_TIME: Duration = Duration::from_secs(8);

/// Runs the benchmark.
pub(crate) fn run(report: &mut Report) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| error.to_string())?;
    let options = ["--memory", "--history", HISTORY_SECONDS];
    let program = Program::start(&options)?;
    runtime.block_on(load(&program, report)).map_err(|error| error.to_string())?;
    drop(program);
    let program = Program::start(&options)?;
    runtime.block_on(update(&program, report)).map_err(|error| error.to_string())
}

async fn load(program: &Program, report: &mut Report) -> steersman::Result<()> {
    program.ready().await?;
    let client = Client::new(program.client().await?, "bench");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let resident = || program.resident().map_err(steersman::Error::message);
    let before = resident()?;
    let start = Instant::now();
    let creates = (0..COUNT).map(|number| {
        let client = client.clone();
        async move { client.create(&config_map(number, 1000)).await.map(drop) }
    });
    stream::iter(creates).buffer_unordered(CONCURRENCY).try_collect::<()>().await?;
    let rate = COUNT as f64 / start.elapsed().as_secs_f64();
    let full = resident()?;
    let api: Api<ConfigMap> = Api::default_namespaced(client.kube().clone());
    api.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    let left = api.list(&ListParams::default()).await?.items.len();
    tokio::time::sleep(SETTLE_TIME).await;
    let after = resident()?;
    let figures = [
        ("ConfigMaps of 1 KB created over HTTPS, concurrency 16", rate, "/s", ""),
        ("resident before", before, "MB", ""),
        ("resident with 10,000 of them", full, "MB", ""),
        ("left after deletecollection", left as f64, "", "goal: 0"),
        ("resident after deletion and compaction", after, "MB", "goal: near the first"),
    ];
    for (metric, value, unit, goal) in figures {
        report.figure(&Figure { metric, value, unit, goal });
    }
    Ok(())
}

/// Updates large objects for a while, each of sixteen clients its own.
async fn update(program: &Program, report: &mut Report) -> steersman::Result<()> {
    program.ready().await?;
    let client = Client::new(program.client().await?, "bench");
    for number in 0..LARGE_COUNT {
        client.create(&config_map(number, LARGE_SIZE)).await?;
    }
    tokio::time::sleep(SETTLE_TIME).await;
    let resident = || program.resident().map_err(steersman::Error::message);
    let before = resident()?;
    let start = Instant::now();
    let updates = (0..CONCURRENCY).map(|first| {
        let client = client.clone();
        async move {
            let mut count = 0;
            for number in (first..LARGE_COUNT).step_by(CONCURRENCY).cycle() {
                if start.elapsed() >= UPDATE_TIME {
                    break;
                }
                client.update(&config_map(number, LARGE_SIZE + count % 100)).await?;
                count += 1;
            }
            Ok::<usize, steersman::Error>(count)
        }
    });
    let counts: Vec<usize> = futures::future::try_join_all(updates).await?;
    let rate = counts.iter().sum::<usize>() as f64 / start.elapsed().as_secs_f64();
    tokio::time::sleep(SETTLE_TIME).await;
    let after = resident()?;
    let figures = [
        ("ConfigMaps of 20 KB updated over HTTPS for a minute, concurrency 16", rate, "/s", ""),
        ("resident before", before, "MB", ""),
        ("resident after compaction", after, "MB", "goal: within 100 MB of the first"),
    ];
    for (metric, value, unit, goal) in figures {
        report.figure(&Figure { metric, value, unit, goal });
    }
    Ok(())
}

/// A ConfigMap of about so many bytes.
fn config_map(number: usize, size: usize) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(format!("load-{number:05}"));
    map.data = Some(BTreeMap::from([("payload".to_owned(), "x".repeat(size))]));
    map
}
