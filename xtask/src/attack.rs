//! `cargo xtask attack`: builds the program, attacks it, and says what it withstood.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::process::{self, Outcome};

/// Every argument goes to the attack. In short the program is the one of the tests; else it is
/// optimised, as users run it, unless `--program` names another.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let short = arguments.iter().any(|argument| argument == "--short");
    let (profile, folder): (&[&str], _) =
        if short { (&[], "debug") } else { (&["--release"], "release") };
    // Together, so that both share what they are made of, whichever program is attacked.
    let parts = ["--locked", "--package", "steersman-attack", "--package", "steersman-cli"];
    process::run(process::cargo().arg("build").args(profile).args(parts))?;
    process::run(Command::new(built(folder)?).args(arguments))
}

/// The short form, with both programs as the tests have built them.
pub(crate) fn run_short() -> Outcome {
    process::run(Command::new(built("debug")?).arg("--short"))
}

/// Where cargo puts the attack, seen from this program. `cargo run` would build it alone, with
/// fewer features, and all that it is made of anew.
fn built(folder: &str) -> Result<PathBuf, String> {
    let myself = env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
    let target = myself.ancestors().nth(2).ok_or("this program stands in no target directory")?;
    Ok(target.join(folder).join("steersman-attack"))
}
