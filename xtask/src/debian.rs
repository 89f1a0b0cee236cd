//! Installs what is missing from Debian's packages.

use std::process::{Command, Stdio};

use crate::process;

/// Something from a Debian package.
pub(crate) struct Tool {
    /// A command that succeeds where it is installed.
    pub(crate) probe: &'static [&'static str],
    pub(crate) packages: &'static [&'static str],
    pub(crate) purpose: &'static str,
}

impl Tool {
    fn is_there(&self) -> bool {
        let mut probe = Command::new(self.probe[0]);
        probe.args(&self.probe[1..]).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    }
}

/// Brings a tool unless it is there, and tells whether it had to.
pub(crate) fn need(tool: &Tool) -> Result<bool, String> {
    if tool.is_there() {
        return Ok(false);
    }
    let packages = tool.packages.join(" ");
    process::announce(&format!("{} needs {packages}", tool.purpose));
    if !can_install() {
        return Err(format!("installing needs root and apt-get; please install: {packages}"));
    }
    process::run(apt_get().arg("update"))?;
    let install = ["install", "-y", "--no-install-recommends"];
    process::run(apt_get().args(install).args(tool.packages))?;
    if tool.is_there() {
        return Ok(true);
    }
    Err(format!("{packages} came, but `{}` fails", tool.probe.join(" ")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed() {
        let there = Tool { probe: &["cargo", "--version"], packages: &["none"], purpose: "a test" };
        assert_eq!(need(&there), Ok(false));
    }

    #[test]
    fn a_probe_that_fails_or_is_missing_tells_that_the_tool_is_not_there() {
        for probe in [&["cargo", "no-such-command"], &["no-such-program", "--version"]] {
            let tool = Tool { probe, packages: &["none"], purpose: "a test" };
            assert!(!tool.is_there());
        }
    }
}
