//! `cargo xtask test`: installs what the tests need, then runs all of them.

use std::process::Command;

use crate::process::{self, Outcome};

/// A program that tests start, and the Debian package that brings it.
struct Tool {
    program: &'static str,
    package: &'static str,
    purpose: &'static str,
}

const TOOLS: [Tool; 1] = [Tool {
    program: "kubectl",
    package: "kubernetes-client",
    purpose: "the tests that drive the API server as its users do",
}];

/// Runs every test of the workspace; further arguments go to `cargo test`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let missing: Vec<&Tool> =
        TOOLS.iter().filter(|tool| process::find(tool.program).is_none()).collect();
    if !missing.is_empty() {
        install(&missing)?;
    }
    process::run(process::cargo().args(["test", "--workspace", "--locked"]).args(arguments))?;
    process::announce("every test passed");
    Ok(())
}

fn install(missing: &[&Tool]) -> Outcome {
    for Tool { program, package, purpose } in missing {
        process::announce(&format!("{program} is missing; {purpose} need it, from {package}"));
    }
    let packages: Vec<&str> = missing.iter().map(|tool| tool.package).collect();
    if !can_install() {
        let packages = packages.join(" ");
        return Err(format!("installing needs root and apt-get; please install: {packages}"));
    }
    process::run(apt_get().arg("update"))?;
    process::run(apt_get().args(["install", "-y", "--no-install-recommends"]).args(packages))?;
    match missing.iter().find(|tool| process::find(tool.program).is_none()) {
        None => Ok(()),
        Some(tool) => {
            Err(format!("{} is installed, but brought no {}", tool.package, tool.program))
        }
    }
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn can_install() -> bool {
    let user = Command::new("id").arg("-u").output();
    let root = user.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    root && process::find("apt-get").is_some()
}
