//! Programs in Go, built where Go is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program with the systems that are written in Go.
pub(crate) const RIVALS: &str = "steersman-bench-go";

/// Builds the program of a folder of this benchmark beside it and gives its path, or why it
/// could not be built.
pub(crate) fn build(folder: &str, name: &str) -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = here.with_file_name(name);
    let built = Command::new("go")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder))
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .output()
        .map_err(|error| format!("cannot run `go`: {error}"))?;
    if built.status.success() {
        return Ok(program);
    }
    Err(format!("`go build` failed: {}", String::from_utf8_lossy(&built.stderr).trim()))
}
