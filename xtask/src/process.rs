//! Running other programs so that one sees what happens.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What a chore comes to; the text is for a person.
pub(crate) type Outcome = Result<(), String>;

/// What `Cargo.toml` optimises also in tests. Their unit tests are as quick without, and the compiler
/// takes a quarter of the time to build them.
pub(crate) const OPTIMISED: [&str; 3] =
    ["steersman-apiserver", "steersman-rules", "steersman-store"];

/// Says what is about to happen.
pub(crate) fn announce(step: &str) {
    eprintln!("xtask: {step}");
}

/// Says which command runs, runs it in the repository's root, and fails if it fails.
pub(crate) fn run(command: &mut Command) -> Outcome {
    let shown = shown(command);
    announce(&shown);
    let status = command
        .current_dir(root())
        .status()
        .map_err(|error| format!("cannot run `{shown}`: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("`{shown}` failed: {status}"))
}

/// The cargo that started this program, so that the toolchain stays the same, without what it
/// told this program about its package: build scripts that look at it (`ring`'s does) would run
/// again, and everything above them would be built again, whenever somebody changes between
/// `cargo` and `cargo xtask`.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy();
        if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
            cargo.env_remove(&*name);
        }
    }
    cargo
}

/// Where a program is found, if it is.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// Reports a failure in one line.
pub(crate) fn exit_code(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            announce(&why);
            ExitCode::FAILURE
        }
    }
}

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The command as one would type it.
fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_types_it() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "--workspace"]);
        assert_eq!(shown(&command), "cargo test --workspace");
    }

    #[test]
    fn a_program_is_found_on_the_path_or_not_at_all() {
        assert!(find("cargo").is_some());
        assert!(find("no-such-program").is_none());
    }
}
