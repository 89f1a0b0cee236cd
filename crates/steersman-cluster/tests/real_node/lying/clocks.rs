//! The clock of the machine is set, by hours, forward and back. Nothing that is waited for comes
//! sooner or later for it, and nobody has to go.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::Scene;

/// How late something may be noticed.
const LATE: Duration = Duration::from_secs(5);

/// How long it takes until a container that crashes now has been started so often.
async fn restarted(scene: &Scene, times: i32) -> Duration {
    let crashed = Instant::now();
    scene.liar.crash("main");
    let again = async || scene.restarts("crashes").await == Some(times);
    scene.until(&format!("restart {times}"), again).await;
    crashed.elapsed()
}

/// What happens around a clock that is set by so much, and back later.
async fn set_by(name: &str, hours: i64) {
    let scene = Scene::start(name).await;
    let other = |name: &str| json!({"name": name});
    scene.run_with("stays", other("stays")).await;
    scene.run("crashes").await;
    scene.until("one runs", async || scene.runs("stays").await).await;
    scene.until("the other too", async || scene.runs("crashes").await).await;
    let took = restarted(&scene, 1).await;
    assert!(took < LATE, "the first time at once, not after {took:?}");
    scene.liar.set_clock(hours);
    let [ten, twenty] = [10, 20].map(Duration::from_secs);
    let took = restarted(&scene, 2).await;
    assert!(took + LATE > ten && took < ten + LATE, "after ten seconds, not {took:?}");
    scene.liar.set_clock(0);
    let took = restarted(&scene, 3).await;
    assert!(took + LATE > twenty && took < twenty + LATE, "after twenty, not {took:?}");

    scene.liar.set_clock(hours);
    let command = json!({"command": ["true"]});
    let probe = json!({"exec": command, "initialDelaySeconds": 20, "periodSeconds": 2});
    let begun = Instant::now();
    scene.run_with("probed", json!({"name": "probed", "readinessProbe": probe})).await;
    scene.until("it is ready", async || scene.runs("probed").await).await;
    let took = begun.elapsed();
    assert!(took + LATE > twenty && took < twenty + LATE, "looked at after twenty, not {took:?}");

    assert_eq!(scene.not_ready().await, None);
    assert_eq!(scene.restarts("stays").await, Some(0));
    assert_eq!(scene.restarts("probed").await, Some(0));
    scene.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_delays_nothing() {
    set_by("forward", 5).await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_hastens_nothing() {
    set_by("back", -5).await;
}
