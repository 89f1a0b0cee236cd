//! Controllers behind faults: whatever went wrong, every key makes progress once it is over.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use steersman::{Context, Controller, Manager, Next, Result};
use steersman_testkit::{Cluster, Fault, Faults, Settings, run_with};

use crate::reconcile::{config_map, of_the_test};
use crate::replicas::for_seeds;

/// `cargo xtask soak` sweeps over more.
const SEEDS: u64 = 20;
const COUNT: &str = "count";

fn count(map: &ConfigMap) -> u64 {
    map.annotations().get(COUNT).and_then(|count| count.parse().ok()).unwrap_or(0)
}

/// Counts its reconciles in the object itself. It writes the version that the cache shows, so
/// that a stale one is a conflict.
async fn count_up(map: Arc<ConfigMap>, ctx: Context<ConfigMap>) -> Result<Next> {
    let mut counted = ConfigMap::clone(&map);
    counted.annotations_mut().insert(COUNT.into(), (count(&map) + 1).to_string());
    ctx.update(&counted).await?;
    Ok(Next::After(Duration::from_secs(10)))
}

fn counter() -> Controller {
    Controller::of::<ConfigMap>().only(of_the_test).concurrency(4).reconcile(count_up)
}

async fn counts(cluster: &Cluster, names: &[&str]) -> Vec<u64> {
    let mut counts = Vec::new();
    for name in names {
        let map: ConfigMap = cluster.client().get(*name).await.unwrap().unwrap();
        counts.push(count(&map));
    }
    counts
}

#[steersman::test]
async fn a_change_that_could_not_be_decoded_does_not_wedge_its_key(cluster: Cluster) -> Result<()> {
    let faults = Faults::seeded(1).with(Fault::Malformed, 1.0);
    faults.heal();
    let running = Manager::new(cluster.client_with(&faults)).with(counter()).start();
    cluster.client().create(&config_map("a")).await?;
    cluster.advance(Duration::from_secs(30)).await;
    let before = counts(&cluster, &["a"]).await[0];
    assert!(before >= 3, "{before}");
    faults.resume();
    cluster.advance(Duration::from_secs(60)).await;
    assert!(faults.injected(Fault::Malformed) > 0);
    faults.heal();
    cluster.advance(Duration::from_secs(60)).await;
    let healed = counts(&cluster, &["a"]).await[0];
    cluster.advance(Duration::from_secs(3600)).await;
    let after = counts(&cluster, &["a"]).await[0];
    assert!(after >= healed + 350, "{before}, then {healed}, an hour later {after}");
    running.stop().await;
    Ok(())
}

#[test]
fn every_key_makes_progress_once_all_faults_are_over() {
    const NAMES: [&str; 4] = ["a", "b", "c", "d"];
    for_seeds(SEEDS, |seed| {
        run_with(Settings::bare(seed), |cluster| async move {
            let faults = Faults::seeded(seed).all(0.1);
            let running = Manager::new(cluster.client_with(&faults)).with(counter()).start();
            for name in NAMES {
                cluster.client().create(&config_map(name)).await.unwrap();
            }
            cluster.advance(Duration::from_secs(300)).await;
            faults.heal();
            // The longest pauses after failures: of a reflector, a retry, a second reading.
            cluster.advance(Duration::from_secs(600)).await;
            let healed = counts(&cluster, &NAMES).await;
            cluster.advance(Duration::from_secs(300)).await;
            let after = counts(&cluster, &NAMES).await;
            for ((name, healed), after) in NAMES.iter().zip(&healed).zip(&after) {
                assert!(*after >= healed + 10, "{faults}: {name} went from {healed} to {after}");
            }
            running.stop().await;
        });
    });
}
