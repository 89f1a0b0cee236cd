//! The controller under study: the process that `steersman-bench child study` is.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steersman::Manager;
use steersman::informer::Event;
use steersman::manager::Running;
use steersman::shard::Sharding;
use steersman_examples::app_service::{AppService, app_services_with};
use tokio::sync::broadcast::error::RecvError;
use tokio::time::sleep;

use super::WRITTEN;
use super::tally::Tally;
use crate::processes::wire::{Line, tell};
use crate::processes::{self, connect, usage};

/// How many AppServices each shard reconciles at once.
const WORKERS: usize = 4;
/// The time after which shards have found each other.
const MET: Duration = Duration::from_secs(10);
const MEGABYTE: f64 = 1024.0 * 1024.0;

/// Runs a controller of so many shards for so many AppServices, and says how far it is when it is asked.
pub(crate) async fn run(kubeconfig: &Path, shards: usize, most: usize) -> Result<(), String> {
    let tally = Arc::new(Tally::new(most));
    let mut running = Vec::new();
    for shard in 0..shards {
        running.push(start(kubeconfig, shard, shards, &tally).await?);
    }
    if shards > 1 {
        sleep(MET).await;
    }
    tell(&Line::Serving { kubeconfig: kubeconfig.display().to_string() })?;
    let mut commands = processes::lines();
    while let Some(command) = commands.recv().await {
        match command.as_str() {
            "begin" => tally.begin(),
            _ => tell(&Line::Figures(figures(&tally, &running)?))?,
        }
    }
    Ok(())
}

/// Starts one shard, with a connection and caches of its own, as a replica elsewhere would have.
async fn start(
    kubeconfig: &Path,
    shard: usize,
    shards: usize,
    tally: &Arc<Tally>,
) -> Result<Running, String> {
    let client = connect::client(kubeconfig).await?;
    let hears = Arc::clone(tally);
    let controller = app_services_with(|builder| {
        let builder = builder.concurrency(WORKERS).observes(move |event| hear(event, &hears));
        if shards == 1 {
            return builder;
        }
        let sharding = Sharding::new("default", "app-services");
        builder.sharded(sharding.identity(format!("shard-{shard}")))
    });
    let running = Manager::new(client).with(controller).start();
    let mut records = running.reconciles();
    let tally = Arc::clone(tally);
    tokio::spawn(async move {
        loop {
            match records.recv().await {
                Ok(record) => tally.reconciled(&record),
                Err(RecvError::Lagged(records)) => tally.lost(records),
                Err(RecvError::Closed) => return,
            }
        }
    });
    Ok(running)
}

/// Notes when an AppService was changed that says so.
fn hear(event: &Event<AppService>, tally: &Tally) {
    let Event::Updated { new, .. } = event else { return };
    let Some(app) = new.object() else { return };
    let annotations = app.metadata.annotations.as_ref();
    let written = annotations.and_then(|annotations| annotations.get(WRITTEN)?.parse().ok());
    if let Some(written) = written {
        tally.heard(new.key(), written);
    }
}

fn figures(tally: &Tally, running: &[Running]) -> Result<BTreeMap<String, f64>, String> {
    let depth: f64 = running.iter().map(|shard| depth(&shard.metrics().render_text())).sum();
    let own = [
        ("depth", depth),
        ("resident_mb", usage::resident()? / MEGABYTE),
        ("computed_seconds", usage::computed()?),
    ];
    let all = tally.figures().into_iter().chain(own);
    Ok(all.map(|(metric, value)| (metric.to_owned(), value)).collect())
}

/// How many keys wait, as the metrics say.
fn depth(metrics: &str) -> f64 {
    let lines = metrics.lines().filter(|line| line.starts_with("workqueue_depth{"));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::depth;

    #[test]
    fn what_waits_in_all_queues_is_counted() {
        let metrics = "# TYPE workqueue_depth gauge\n\
                       workqueue_depth{name=\"a\",priority=\"0\"} 3\n\
                       workqueue_depth{name=\"a\",priority=\"-100\"} 4\n\
                       workqueue_adds_total{name=\"a\"} 9\n";
        assert!((depth(metrics) - 7.0).abs() < f64::EPSILON);
    }
}
