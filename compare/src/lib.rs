//! Where our API server answers otherwise than a real kube-apiserver: `cargo xtask compare`.
//!
//! A [corpus] of requests, generated from the API server's own tables, is sent to both; status
//! codes, headers, bodies and watch events are compared after [masking](mask) what cannot be the
//! same, and what differs is [reported](report), except where it is [known why](expected). This
//! crate knows servers only by their address; ours is [started](ours) unless one is given. Schedulers are
//! compared by their decisions and controllers by what they make of objects, in parts of their own:
//! [`scheduling`] and [`controlling`].

mod api;
mod content;
pub mod controlling;
mod corpus;
mod difference;
mod expected;
mod glob;
mod mask;
mod ours;
mod report;
mod run;
pub mod scheduling;
mod side;
mod step;
mod tree;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use expected::Expected;
use ours::Ours;
use report::{Extent, Findings, Report};
use run::Sides;
use side::Side;

/// Sends the same requests to a real kube-apiserver and to ours, and prints where they differ.
///
/// Neither server's certificate is verified. What is made on them is removed again, as far as
/// they let us: namespaces `cmp-…` and objects with the label `compare`.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask compare")]
pub struct Arguments {
    /// The real server, such as https://127.0.0.1:6443.
    #[arg(long, value_name = "URL")]
    pub server: String,
    /// The bearer token of an administrator there.
    #[arg(long)]
    pub token: String,
    /// A server of ours that runs already, without controllers; otherwise one is started.
    #[arg(long, value_name = "URL", requires = "ours_token")]
    pub ours: Option<String>,
    /// The bearer token of an administrator there.
    #[arg(long, value_name = "TOKEN")]
    pub ours_token: Option<String>,
    /// Only requests whose id fits, such as `pods/*` or `*/update/rv-*`.
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<String>,
    /// Where to write the whole report.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// How many ids to show of each pattern.
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub show: usize,
}

/// The program.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the terminal is its interface")]
pub fn main() -> ExitCode {
    match compare(&Arguments::parse()) {
        Ok((text, agrees)) => {
            println!("{text}");
            if agrees { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Compares; gives the report, and whether the servers agree on status codes and reasons.
fn compare(arguments: &Arguments) -> Result<(String, bool), String> {
    let runtime = tokio::runtime::Runtime::new().map_err(|error| error.to_string())?;
    let expected = Expected::table()?;
    let findings = runtime.block_on(find(arguments))?;
    let report = Report::new(&findings, &expected);
    if let Some(path) = &arguments.report {
        let whole = report.text(Extent { ids: 12, width: 500 });
        std::fs::write(path, whole).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let text = report.text(Extent { ids: arguments.show, width: 300 });
    Ok((text, report.agrees()))
}

async fn find(arguments: &Arguments) -> Result<Findings, String> {
    let theirs = Side::new(&arguments.server, &arguments.token)?;
    let user = theirs.who().await?;
    let only = arguments.only.as_deref();
    match (&arguments.ours, &arguments.ours_token) {
        (Some(url), Some(token)) => {
            let ours = Side::new(url, token)?;
            ours.who().await?;
            Ok(run::all(&Sides { theirs, ours }, only).await)
        }
        _ => {
            let ours = Ours::start(&user).await?;
            Ok(run::all(&Sides { theirs, ours: ours.side.clone() }, only).await)
        }
    }
}

/// Compares a server of ours with another of ours on a part of the corpus, which finds whatever
/// makes answers differ without reason: masks that miss, requests that depend on time or chance.
pub async fn compare_with_itself(only: &str) -> Result<(usize, Vec<String>), String> {
    let user = serde_json::json!({"username": "admin", "groups": ["system:masters"]});
    let theirs = Ours::start(&user).await?;
    let ours = Ours::start(&user).await?;
    let sides = Sides { theirs: theirs.side.clone(), ours: ours.side.clone() };
    let findings = run::all(&sides, Some(only)).await;
    let shown = findings.differences.iter().map(|difference| format!("{difference:?}"));
    Ok((findings.requests, shown.collect()))
}
