//! What our controllers make of objects otherwise than kube-controller-manager: `cargo xtask
//! compare-controllers`.
//!
//! There are two [clusters of ours](cluster), alike but for who controls: in one it is
//! [kube-controller-manager](upstream), in the other our own controllers. Both are given the same
//! [scenarios](scenario), each in a namespace of its own and all at once, step by step; whenever nothing
//! moves any more, every object and Event is [read](snapshot), made comparable [in its canonical
//! form](canonical), and [compared](findings). Scheduler and nodes are ours in both.

mod canonical;
mod cluster;
mod findings;
mod play;
mod scenario;
mod snapshot;
mod upstream;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use crate::expected::Expected;
use cluster::Ours;
use findings::Findings;
use play::Side;
use scenario::Scenario;
use upstream::Upstream;

/// The differences that are known, and why.
const EXPECTED: &str = include_str!("../../expected-of-controllers.txt");

/// Lets kube-controller-manager and our controllers work on the same objects, and prints where they
/// differ.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask compare-controllers")]
struct Arguments {
    /// The directory with the program kube-controller-manager; without it, our controllers are compared
    /// with themselves, which shows what chance does.
    #[arg(long, value_name = "DIR")]
    kube: Option<PathBuf>,
    /// Only scenarios whose name fits, such as `job-*`.
    #[arg(long, value_name = "PATTERN", default_value = "*")]
    only: String,
    /// Compares who wrote which field as well.
    #[arg(long)]
    managed_fields: bool,
    /// How many scenarios to name of each difference.
    #[arg(long, value_name = "N", default_value_t = 4)]
    show: usize,
}

/// The program.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the terminal is its interface")]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string());
    let Arguments { kube, only, managed_fields, show } = &arguments;
    let compared = |runtime: tokio::runtime::Runtime| {
        runtime.block_on(compare(kube.as_deref(), only, *managed_fields))
    };
    match runtime.and_then(compared) {
        Ok(findings) => {
            println!("{}", findings.text(*show));
            if findings.agree() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Compares our controllers with themselves in the scenarios whose names fit. Gives how many objects and
/// Events were compared, and where they differ.
pub async fn compare_with_itself(only: &str) -> Result<(usize, Option<String>), String> {
    let findings = compare(None, only, true).await?;
    Ok((findings.compared(), (!findings.agree()).then(|| findings.text(1))))
}

async fn compare(
    kube: Option<&Path>,
    only: &str,
    managed_fields: bool,
) -> Result<Findings, String> {
    let expected = Expected::read("expected-of-controllers.txt", EXPECTED)?;
    let scenarios = Scenario::all(only)?;
    let ours = Ours::start(true).await?;
    let theirs = Ours::start(kube.is_none()).await?;
    let mut upstream = match kube {
        Some(directory) => Some(Upstream::start(directory, &theirs.kubeconfig)?),
        None => None,
    };
    let sides = [Side::of(theirs.api.clone()).await?, Side::of(ours.api.clone()).await?];
    let played = play::both(&sides, &scenarios).await;
    upstream.as_mut().map_or(Ok(()), Upstream::runs)?;
    let [theirs, ours] = played?;
    let mut findings = Findings::new(expected, scenarios.len());
    for (theirs, ours) in theirs.iter().zip(&ours) {
        findings.compare(theirs, ours, managed_fields);
    }
    if let Some(upstream) = upstream.filter(|_| findings.agree()) {
        upstream.forget();
    }
    Ok(findings)
}
