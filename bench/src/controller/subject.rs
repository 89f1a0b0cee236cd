//! What is measured of a controller, in the same order for every system.
//!
//! A subject is a system under test in a process of its own. The Go program in `bench/go` does
//! the same for controller-runtime.

use std::any::Any;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use tokio::time::{Instant, sleep};

use super::tally::Tally;
use super::{Order, System, Workload, kube_runtime, steersman};
use crate::informer::subject::SETTLE;
use crate::processes::wire::{Line, Phase, figure, nanoseconds, tell};
use crate::processes::{self, connect, usage};
use crate::report::percentile;

/// How long reconciles that come again and again are counted.
const SPINNING: Duration = Duration::from_secs(4);

/// Measures the controller that the command line names.
pub(crate) fn run() -> ExitCode {
    processes::until_ended(measure(&Order::parse()))
}

async fn measure(order: &Order) -> Result<(), String> {
    let client = connect::client(&order.kubeconfig).await?;
    let tally = Arc::new(Tally::new(order));
    let start = nanoseconds();
    let computed = usage::computed()?;
    let _running: Box<dyn Any> = match order.system {
        System::Steersman => Box::new(steersman::start(client, order.workers, &tally)),
        System::KubeRuntime => Box::new(kube_runtime::start(client, order.workers, &tally)),
    };
    let seconds = tally.all_done().await.saturating_sub(start) as f64 / 1e9;
    let computed = usage::computed()? - computed;
    match order.workload {
        Workload::Idle => return idle().await,
        Workload::Noop => figure("start_seconds", seconds)?,
        Workload::Spin => return spin(order, &tally).await,
        Workload::Status => {
            figure("status_reconciles_per_second", order.objects as f64 / seconds)?;
            figure("status_cpu_us", computed * 1e6 / order.objects as f64)?;
        }
    }
    if order.updates > 0 {
        patches(order, &tally).await?;
    }
    if order.workload == Workload::Noop {
        tally.expect(order.objects);
        tell(&Line::Await(Phase::Burst))?;
        let at = tally.all_done().await;
        tell(&Line::Heard { phase: Phase::Burst, at })?;
    }
    Ok(())
}

async fn idle() -> Result<(), String> {
    sleep(SETTLE).await;
    figure("idle_bytes", usage::resident()?)
}

async fn patches(order: &Order, tally: &Tally) -> Result<(), String> {
    tally.expect(order.updates);
    tell(&Line::Await(Phase::Patches))?;
    tally.all_done().await;
    let latencies = tally.latencies();
    let prefix = if order.workload == Workload::Status { "status_" } else { "" };
    figure(&format!("{prefix}latency_p50_ms"), percentile(&latencies, 0.50))?;
    figure(&format!("{prefix}latency_p99_ms"), percentile(&latencies, 0.99))
}

async fn spin(order: &Order, tally: &Tally) -> Result<(), String> {
    tell(&Line::Await(Phase::Spin))?;
    while tally.spins() < 2 * order.objects as u64 {
        sleep(Duration::from_millis(10)).await;
    }
    let spins = tally.spins();
    let computed = usage::computed()?;
    let start = Instant::now();
    sleep(SPINNING).await;
    let spins = (tally.spins() - spins) as f64;
    figure("reconciles_per_second", spins / start.elapsed().as_secs_f64())?;
    figure("reconcile_cpu_us", (usage::computed()? - computed) * 1e6 / spins)?;
    tally.stop();
    Ok(())
}
