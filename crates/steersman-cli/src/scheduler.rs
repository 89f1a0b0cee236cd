//! `steersman scheduler`: schedules the Pods of any cluster.

use std::path::Path;

use steersman::election::LeaderElection;
use steersman::manager::Site;
use steersman::{Manager, shutdown_signal};
use steersman_cluster::{Scheduler, SchedulerConfiguration};

use crate::arguments::SchedulerCommand;
use crate::kubeconfig;

/// Reads a configuration from a file.
pub(crate) fn configuration(file: &Path) -> Result<SchedulerConfiguration, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let text = std::fs::read_to_string(file).map_err(|error| told(&error))?;
    SchedulerConfiguration::parse(&text).map_err(|error| told(&error))
}

/// Schedules until it is asked to stop.
pub(crate) fn run(command: &SchedulerCommand) -> Result<(), String> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env();
    let filter = filter.unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let runtime = tokio::runtime::Runtime::new();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(schedule(command))
}

async fn schedule(command: &SchedulerCommand) -> Result<(), String> {
    let chosen = command.config.as_deref().map(configuration).transpose()?.unwrap_or_default();
    let manager = Manager::from_config(kubeconfig::cluster(command.kubeconfig.as_deref()).await?)
        .map_err(|error| error.to_string())?;
    let manager = match chosen.elects_leader() {
        true => {
            let (namespace, name) = command
                .lease
                .split_once('/')
                .ok_or_else(|| format!("--lease {:?}: expected NAMESPACE/NAME", command.lease))?;
            manager.leader_election(LeaderElection::new(namespace, name))
        }
        false => manager,
    };
    let manager = match command.metrics {
        Some(address) => manager.serve(Site::all(address)),
        None => manager,
    };
    let manager = Scheduler::configured(chosen).install(manager);
    let manager = manager.map_err(|error| error.to_string())?;
    manager.run_until(shutdown_signal()).await.map_err(|error| error.to_string())
}
