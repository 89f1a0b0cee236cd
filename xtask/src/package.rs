//! `cargo xtask package`: makes the packages that would be published, and builds each from what
//! is in it alone.

use std::fs;

use crate::process::{self, Outcome};

/// The program's `--demo` runs the examples, so they are published with it.
const EXAMPLES: &str = "steersman-examples";

/// Packages everything in `crates/`; further arguments go to `cargo package`. All in one go, since
/// each is built against the packages of the others.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let crates = process::root().join("crates");
    let entries =
        fs::read_dir(&crates).map_err(|error| format!("{}: {error}", crates.display()))?;
    let mut packages = vec![EXAMPLES.to_owned()];
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        packages.push(entry.file_name().to_string_lossy().into_owned());
    }
    packages.sort();
    let chosen = packages.iter().flat_map(|package| ["--package", package]);
    process::run(process::cargo().args(["package", "--locked"]).args(chosen).args(arguments))
}
