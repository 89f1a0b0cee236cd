//! `cargo xtask soak`: what the tests run briefly, for as long as one likes: sweeps over seeds, the
//! fuzzer, and a cluster on which everything happens at once.

use crate::containerd;
use crate::fuzz;
use crate::process::{self, Outcome};

/// So many seeds unless said otherwise.
const SEEDS: &str = "2000";
/// So many minutes of everything at once.
const MINUTES: &str = "30";
/// How many faults there are, about.
const FAULTS: u32 = 20;
/// How many Pods are started and stopped while the agent of a real node is killed.
const PODS: &str = "100";
/// How long the fuzzer looks at each target.
const FUZZED: [&str; 2] = ["--seconds", "20"];

/// Runs the parts that are named (`sweeps`, `node`, `fuzz`, `mixed`), or all.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let mut seeds = SEEDS;
    let mut minutes = MINUTES;
    let mut parts = Vec::new();
    let mut rest = arguments.iter().map(String::as_str);
    while let Some(argument) = rest.next() {
        match argument {
            "--minutes" => minutes = rest.next().ok_or("--minutes of how many?")?,
            "sweeps" | "node" | "fuzz" | "mixed" => parts.push(argument),
            number if number.parse::<u32>().is_ok() => seeds = number,
            other => return Err(format!("there is no part `{other}` of the soak")),
        }
    }
    let wanted = |part: &str| parts.is_empty() || parts.contains(&part);
    if wanted("sweeps") {
        sweep(seeds)?;
    }
    if wanted("node") {
        kill()?;
    }
    if wanted("fuzz") {
        fuzz::run(&FUZZED.map(str::to_owned))?;
    }
    if wanted("mixed") {
        mix(minutes)?;
    }
    Ok(())
}

/// Runs the sweeps of the framework's and the controllers' tests over so many seeds. Each reports
/// the seed with which it fails, and runs with that one alone if `STEERSMAN_SEED` names it.
fn sweep(seeds: &str) -> Outcome {
    let sweep = |package: &str, seeds: &str, names: &[&str]| {
        let test = ["test", "--package", package, "--test", "it", "--locked", "--"];
        process::run(process::cargo().env("STEERSMAN_SEEDS", seeds).args(test).args(names))
    };
    sweep("steersman", seeds, &["whatever_the_network_does", "once_all_faults_are_over"])?;
    // Each of these runs every seed with every fault.
    let fewer = seeds.parse::<u32>().map_or(1, |many| many.div_ceil(FAULTS));
    sweep("steersman", &fewer.to_string(), &["survived"])?;
    // Half as many here: a thousand trees unless said otherwise, and those of ten thousand objects.
    let trees = seeds.parse::<u32>().map_or(1, |many| many.div_ceil(2));
    sweep("steersman-controllers", &trees.to_string(), &["owner_trees"])?;
    // Each of these takes a few seconds.
    let placements = seeds.parse::<u32>().map_or(1, |many| many.div_ceil(FAULTS));
    sweep("steersman-controllers", &placements.to_string(), &["placement"])
}

/// Kills the agent of a real node and containerd while Pods come and go. `STEERSMAN_SEED` says when.
fn kill() -> Outcome {
    containerd::need()?;
    let test = ["test", "--package", "steersman-cli", "--test", "it", "--locked", "--"];
    let name = "whenever_the_agent_and_containerd_are_killed";
    let only = [name, "--nocapture"];
    process::run(process::cargo().env("STEERSMAN_PODS", PODS).args(test).args(only))
}

/// Load, churn of definitions, watches that come and go, and kills, on the optimised program.
fn mix(minutes: &str) -> Outcome {
    let both = ["--package", "steersman-cli", "--package", "steersman-attack"];
    process::run(process::cargo().args(["build", "--release", "--locked"]).args(both))?;
    let soak = ["--package", "steersman-attack", "--bin", "steersman-soak", "--"];
    let mut command = process::cargo();
    command.args(["run", "--release", "--locked"]).args(soak).args(["--minutes", minutes]);
    process::run(&mut command)
}
