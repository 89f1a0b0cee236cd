//! `cargo xtask soak`: the sweeps over seeds that the tests run briefly, for as long as one likes.

use crate::process::{self, Outcome};

/// So many seeds unless said otherwise.
const SEEDS: &str = "2000";

/// Runs the sweeps of the framework's tests over so many seeds. Each reports the seed with which
/// it fails, and runs with that one alone if `STEERSMAN_SEED` names it.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let seeds = arguments.first().map_or(SEEDS, String::as_str);
    let sweeps = ["whatever_the_network_does", "once_all_faults_are_over"];
    let test = ["test", "--package", "steersman", "--test", "it", "--locked", "--"];
    process::run(process::cargo().env("STEERSMAN_SEEDS", seeds).args(test).args(sweeps))
}
