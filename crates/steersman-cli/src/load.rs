//! `steersman load`: runs a scenario on the cluster of a kubeconfig, shows how far it is, and tells
//! what it came to.

use std::io::{IsTerminal, Write as _};
use std::path::Path;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use steersman::Client;
use steersman_load::{Load, Report, Scenario};
use tokio::signal;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::arguments;
use crate::failure::told;

/// How often the table on a terminal is drawn anew.
const DRAW: Duration = Duration::from_millis(500);
/// How often a line is written where there is no terminal.
const LINE: Duration = Duration::from_secs(10);

pub(crate) fn run(arguments: &arguments::Load) -> Result<(), String> {
    let text = read(&arguments.file)?;
    let scenario: Scenario =
        text.parse().map_err(|error| format!("{}: {error}", arguments.file.display()))?;
    let beside = arguments.beside.as_deref().map(read_report).transpose()?;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| told(&error))?;
    let report = runtime.block_on(run_on_cluster(arguments, scenario))?;
    say!("{}", report.table());
    if let Some(file) = &arguments.json {
        let json = serde_json::to_string(&report).map_err(|error| told(&error))?;
        write(file, &json)?;
    }
    if let Some(file) = &arguments.report {
        write(file, &report.html(beside.as_ref()))?;
    }
    Ok(())
}

async fn run_on_cluster(arguments: &arguments::Load, scenario: Scenario) -> Result<Report, String> {
    let client = Client::new(client(arguments).await?, "steersman-load");
    let load = Load::new(client, scenario);
    let load = if arguments.keep { load.keep() } else { load };
    let stop = CancellationToken::new();
    tokio::select! {
        report = load.run(&stop) => report.map_err(|error| error.to_string()),
        () = show(&load) => Err("the progress cannot be shown".to_owned()),
        () = interrupted(&stop) => Err("stopped; namespaces of the run are left".to_owned()),
    }
}

/// The client of the cluster that was named. Its requests are not held back, as many as there are.
async fn client(arguments: &arguments::Load) -> Result<kube::Client, String> {
    let options = KubeConfigOptions { context: arguments.context.clone(), ..Default::default() };
    let config = match &arguments.kubeconfig {
        Some(file) => {
            let kubeconfig = Kubeconfig::read_from(file).map_err(|error| told(&error))?;
            kube::Config::from_custom_kubeconfig(kubeconfig, &options).await
        }
        None => kube::Config::from_kubeconfig(&options).await,
    };
    let config = config.map_err(|error| told(&error))?;
    kube::Client::try_from(config).map_err(|error| told(&error))
}

/// The first Ctrl-C lets the run clean up; the second ends it.
async fn interrupted(stop: &CancellationToken) {
    for again in [false, true] {
        if signal::ctrl_c().await.is_err() {
            return std::future::pending().await;
        }
        if !again {
            eprintln!("stopping and cleaning up; Ctrl-C again leaves everything as it is");
            stop.cancel();
        }
    }
}

/// Shows how far the run is, for as long as it is polled.
async fn show(load: &Load) {
    let mut terminal = std::io::stderr();
    if !terminal.is_terminal() {
        loop {
            sleep(LINE).await;
            eprintln!("{}", load.progress().line());
        }
    }
    let mut drawn = 0;
    loop {
        sleep(DRAW).await;
        let table = load.progress().table();
        // Back to where the last table began, and nothing of it stays.
        let _ = write!(terminal, "\x1b[{drawn}A\x1b[J{table}");
        drawn = table.lines().count().max(1);
        let _ = terminal.flush();
    }
}

fn read_report(file: &Path) -> Result<Report, String> {
    let text = read(file)?;
    serde_json::from_str(&text)
        .map_err(|error| format!("{} is no report of a run: {error}", file.display()))
}

fn read(file: &Path) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
    say!("  written: {}", file.display());
    Ok(())
}
