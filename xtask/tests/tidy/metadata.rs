//! What cargo knows of the packages.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::source;

/// The packages of this workspace.
pub(crate) fn ours() -> Vec<Value> {
    packages(&["--no-deps"])
}

/// The packages of this workspace and all that they are built from here. Those for other
/// platforms are not among them: nothing may be downloaded for a check.
pub(crate) fn built_from() -> Vec<Value> {
    packages(&["--locked", "--filter-platform", &host()])
}

fn packages(arguments: &[&str]) -> Vec<Value> {
    let metadata =
        cargo(&[&["metadata", "--format-version", "1", "--offline"], arguments].concat());
    let mut metadata: Value = serde_json::from_str(&metadata).unwrap();
    serde_json::from_value(metadata["packages"].take()).unwrap()
}

/// The platform that this is.
fn host() -> String {
    let version = cargo(&["--version", "--verbose"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.expect("cargo tells its platform").to_owned()
}

fn cargo(arguments: &[&str]) -> String {
    cargo_in(&source::root(), arguments)
}

/// What cargo prints in this folder.
pub(crate) fn cargo_in(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
