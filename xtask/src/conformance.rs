//! `cargo xtask conformance`: the clients of other languages against the program, and our own
//! tests that can run on any cluster.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::clients;
use crate::process::{self, OPTIMISED, Outcome};

/// The tests written with one client.
struct Suite {
    name: &'static str,
    /// The command that runs it, or nothing where it cannot run.
    prepare: fn() -> Result<Option<Command>, String>,
}

const SUITES: [Suite; 4] = [
    Suite { name: "python", prepare: python },
    Suite { name: "javascript", prepare: javascript },
    Suite { name: "go", prepare: go },
    Suite { name: "rust", prepare: rust },
];

/// Builds the program and runs the suites that are named, or all.
pub(crate) fn run(names: &[String]) -> Outcome {
    let known = |name: &&String| SUITES.iter().any(|suite| suite.name == name.as_str());
    if let Some(unknown) = names.iter().find(|name| !known(name)) {
        let known = SUITES.map(|suite| suite.name).join(", ");
        return Err(format!("there is no suite `{unknown}`; there are {known}"));
    }
    let program = ["build", "--locked", "--package", "steersman-cli"];
    process::run(process::cargo().args(program))?;
    run_built(names)
}

/// As `run`, on the program as it was built last.
pub(crate) fn run_built(names: &[String]) -> Outcome {
    for suite in SUITES {
        if !names.is_empty() && !names.iter().any(|name| name == suite.name) {
            continue;
        }
        let name = suite.name;
        if let Some(mut command) = (suite.prepare)()? {
            let program = Program::start(name, &[])?;
            command.env("KUBECONFIG", &program.kubeconfig);
            process::run(command.env("STEERSMAN_TEST_KUBECONFIG", &program.kubeconfig))?;
        } else {
            process::announce(&format!("the {name} suite is skipped: {name} is not installed"));
        }
    }
    Ok(())
}

fn python() -> Result<Option<Command>, String> {
    let mut command = Command::new(clients::python()?);
    command.args(["-m", "unittest", "discover", "-s", "conformance/python"]);
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(Some(command))
}

fn javascript() -> Result<Option<Command>, String> {
    let directory = clients::javascript()?;
    let mut command = Command::new(directory.join("node_modules/.bin/node"));
    command
        .arg("--test")
        .args(["typed", "watch"].map(|name| directory.join(name).with_extension("test.js")));
    Ok(Some(command))
}

fn go() -> Result<Option<Command>, String> {
    let go = process::find("go").map(|go| {
        let mut command = Command::new(go);
        command.args(["-C", "conformance/go", "test", "-count=1", "./..."]);
        command
    });
    Ok(go)
}

/// The tests marked `#[steersman::test(anywhere)]`, built as they are for `cargo xtask test`; there are
/// none within what it builds apart.
#[expect(clippy::unnecessary_wraps, reason = "a suite may fail to be prepared")]
fn rust() -> Result<Option<Command>, String> {
    let mut command = process::cargo();
    command.args(["test", "--workspace", "--locked", "--tests"]);
    command.args(OPTIMISED.iter().flat_map(|package| ["--exclude", package]));
    command.args(["--", "::anywhere"]);
    Ok(Some(command))
}

/// `steersman up` on a free port, stopped when dropped.
pub(crate) struct Program {
    child: Child,
    pub(crate) kubeconfig: PathBuf,
}

impl Program {
    /// Starts the program that stands beside this one, with further flags, and waits until it is
    /// ready.
    pub(crate) fn start(name: &str, flags: &[&str]) -> Result<Self, String> {
        let myself = env::current_exe().map_err(|error| format!("cannot find myself: {error}"))?;
        let kubeconfig = clients::directory()?.join(format!("kubeconfig-{name}"));
        let mut child = Command::new(myself.with_file_name("steersman"))
            .args(["up", "--memory", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(flags)
            // Clients delete what controllers work on, which these would warn of.
            .env("RUST_LOG", "error")
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start steersman: {error}"))?;
        let output = child.stdout.take().ok_or("steersman has no output")?;
        let program = Self { child, kubeconfig };
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        if lines.any(|line| line.contains("Ctrl-C stops it")) {
            return Ok(program);
        }
        Err("steersman ended before it was ready".to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_that_does_not_exist_is_refused_before_anything_is_built() {
        let refused = run(&["cobol".to_owned()]).unwrap_err();
        assert!(refused.contains("cobol") && refused.contains("python"), "{refused}");
    }

    #[test]
    fn each_suite_of_another_language_has_its_directory() {
        for suite in SUITES.iter().filter(|suite| suite.name != "rust") {
            let directory = process::root().join("conformance").join(suite.name);
            assert!(directory.is_dir(), "{}", directory.display());
        }
    }
}
