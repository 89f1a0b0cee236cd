//! How long a write takes to reach everyone who watches: from sending it to each watcher's
//! having read it, one write at a time.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use super::measured::Figures;
use super::requests;
use super::target::{Stream, Target};
use crate::report::percentile_of;

const ROUNDS: usize = 200;
/// A watcher that hears nothing for so long has lost something.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures few and many watchers.
pub(super) async fn both(target: &Target, figures: &mut Figures) -> Result<(), String> {
    // One that everybody sees; the lines before have deleted theirs.
    target.connect().await?.ask(requests::create(0)).await?;
    measure(target, 50, figures, ["50 watchers, p50", "50 watchers, p99"]).await?;
    measure(target, 500, figures, ["500 watchers, p50", "500 watchers, p99"]).await
}

async fn measure(
    target: &Target,
    watchers: usize,
    figures: &mut Figures,
    [p50, p99]: [&'static str; 2],
) -> Result<(), String> {
    let mut writer = target.connect().await?;
    let start = writer.ask(requests::mark(0)).await?;
    let version = resource_version(&start)?;
    let (seen, mut heard) = mpsc::channel(watchers);
    let mut watching = JoinSet::new();
    for _ in 0..watchers {
        let stream = target.connect().await?.open(requests::watch(&version)).await?;
        watching.spawn(listen(stream, seen.clone()));
    }
    let mut times = Vec::with_capacity(watchers * ROUNDS);
    for round in 1..=ROUNDS {
        let begun = Instant::now();
        let write = writer.ask(requests::mark(round));
        let arrivals = async {
            for _ in 0..watchers {
                let at = heard.recv().await.ok_or("a watch ended")?;
                times.push(at - begun);
            }
            Ok::<(), String>(())
        };
        let both = timeout(PATIENCE, async { tokio::try_join!(write, arrivals) });
        both.await.map_err(|_| "a watcher missed an event")??;
    }
    figures.insert(p50, percentile_of(&mut times, 0.5));
    figures.insert(p99, percentile_of(&mut times, 0.99));
    Ok(())
}

/// Says when each event has arrived whole.
async fn listen(mut stream: Stream, seen: mpsc::Sender<Instant>) {
    while let Some(piece) = stream.next().await {
        for _ in piece.iter().filter(|byte| **byte == b'\n') {
            if seen.send(Instant::now()).await.is_err() {
                return;
            }
        }
    }
}

fn resource_version(object: &[u8]) -> Result<String, String> {
    let object: serde_json::Value =
        serde_json::from_slice(object).map_err(|error| error.to_string())?;
    let version = object["metadata"]["resourceVersion"].as_str();
    version.map(str::to_owned).ok_or_else(|| "an object without a resourceVersion".to_owned())
}
