//! `cargo xtask upstream`: kube-controller-manager and kube-scheduler, which somebody brings
//! along, work on a cluster of ours that runs no controllers of its own.
//!
//! Every kind of workload is created, and must come to what it asks for. Nothing is downloaded or
//! built, so this is no part of the tests: it is for whoever has the programs.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::clients;
use crate::conformance::Program;
use crate::process::{self, Outcome};

/// How often it is looked whether everything is as it must be, a second apart.
const LOOKS: usize = 150;
const NAMESPACE: &str = "upstream";
const USAGE: &str =
    "it needs --controller-manager COMMAND and --scheduler COMMAND, and takes --kubectl COMMAND";

/// What each object must come to: the object, a field of it, and its value in the end.
const STATES: [(&str, &str, &str); 9] = [
    ("configmap/kube-root-ca.crt", "{.metadata.name}", "kube-root-ca.crt"),
    ("serviceaccount/default", "{.metadata.name}", "default"),
    ("deployment/web", "{.status.availableReplicas}", "3"),
    ("statefulset/db", "{.status.readyReplicas}", "2"),
    ("daemonset/agent", "{.status.numberReady}", "5"),
    ("endpoints/web", "{.subsets[0].ports[0].port}", "80"),
    ("poddisruptionbudget/web", "{.status.disruptionsAllowed}", "1"),
    ("job/once", "{.status.succeeded}", "2"),
    ("cronjob/often", "{.status.lastSuccessfulTime}", ""),
];

/// The programs, each as a command whose words are separated by spaces.
struct Programs {
    controller_manager: String,
    scheduler: String,
    kubectl: String,
}

/// Runs the scenario.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let programs = Programs::of(arguments)?;
    process::run(process::cargo().args(["build", "--locked", "--package", "steersman-cli"]))?;
    let cluster = Program::start("upstream", &["--controllers=none", "--nodes", "5"])?;
    let own = ["--leader-elect=false", "--secure-port=0"];
    let logs = clients::directory()?;
    let programs_beside = [&programs.controller_manager, &programs.scheduler];
    let started = programs_beside
        .map(|program| Background::start(program, &own, &cluster.kubeconfig, &logs))
        .into_iter();
    let _running = started.collect::<Result<Vec<_>, _>>()?;
    let user = User { kubectl: programs.kubectl, kubeconfig: cluster.kubeconfig.clone() };
    user.kubectl(&["create", "namespace", NAMESPACE])?;
    let workloads = process::root().join("conformance/upstream/workloads.yaml");
    user.kubectl(&["apply", "-f", &workloads.display().to_string()])?;
    user.wait_for_all()?;
    user.kubectl(&["delete", "namespace", NAMESPACE, "--timeout=120s"])?;
    process::announce("every workload came to what it asks for, and the namespace is gone");
    Ok(())
}

impl Programs {
    fn of(arguments: &[String]) -> Result<Self, String> {
        let mut programs = Self {
            controller_manager: String::new(),
            scheduler: String::new(),
            kubectl: "kubectl".to_owned(),
        };
        for pair in arguments.chunks(2) {
            let [flag, command] = pair else { return Err(USAGE.to_owned()) };
            match flag.as_str() {
                "--controller-manager" => programs.controller_manager.clone_from(command),
                "--scheduler" => programs.scheduler.clone_from(command),
                "--kubectl" => programs.kubectl.clone_from(command),
                _ => return Err(USAGE.to_owned()),
            }
        }
        let missing = programs.controller_manager.is_empty() || programs.scheduler.is_empty();
        if missing { Err(USAGE.to_owned()) } else { Ok(programs) }
    }
}

/// A command of several words.
fn command(words: &str) -> Command {
    let mut words = words.split_whitespace();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words);
    command
}

/// A program that runs beside, stopped when dropped.
struct Background(Child);

impl Background {
    fn start(
        program: &str,
        flags: &[&str],
        kubeconfig: &Path,
        logs: &Path,
    ) -> Result<Self, String> {
        let name = program.rsplit(['/', ' ']).next().unwrap_or(program);
        let log = logs.join(format!("upstream-{name}.log"));
        process::announce(&format!("starting {program}, which logs to {}", log.display()));
        let log = File::create(&log).map_err(|error| format!("cannot write its log: {error}"))?;
        let child = command(program)
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(flags)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        child.map(Self).map_err(|error| format!("cannot start {program}: {error}"))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Who drives the cluster.
struct User {
    kubectl: String,
    kubeconfig: PathBuf,
}

impl User {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.kubectl);
        command.env("KUBECONFIG", &self.kubeconfig).args(arguments);
        command
    }

    fn kubectl(&self, arguments: &[&str]) -> Outcome {
        process::run(&mut self.command(arguments))
    }

    /// What a command prints; nothing if it fails.
    fn ask(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).stderr(Stdio::null()).output();
        output.map_or_else(
            |_| String::new(),
            |output| String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        )
    }

    /// Waits until every object is as it must be, and says what is not.
    #[expect(clippy::disallowed_methods, reason = "programs of others go by the real clock")]
    fn wait_for_all(&self) -> Outcome {
        let mut waiting = STATES.to_vec();
        for _ in 0..LOOKS {
            self.complete_pods_of_jobs();
            waiting.retain(|state| !self.holds(*state));
            if waiting.is_empty() {
                return Ok(());
            }
            sleep(Duration::from_secs(1));
        }
        Err(format!("not as they must be: {waiting:?}"))
    }

    fn holds(&self, (object, path, wanted): (&str, &str, &str)) -> bool {
        let path = format!("jsonpath={path}");
        let found = self.ask(&["get", object, "-n", NAMESPACE, "-o", &path]);
        // An empty value stands for any that is there.
        let holds = if wanted.is_empty() { !found.is_empty() } else { found == wanted };
        if holds {
            process::announce(&format!("{object} has {found}"));
        }
        holds
    }

    /// Simulated Pods run for ever, so those of Jobs are told that they have succeeded.
    fn complete_pods_of_jobs(&self) {
        let running = "--field-selector=status.phase=Running";
        let jobs = "--selector=batch.kubernetes.io/job-name";
        let names = self.ask(&["get", "pods", "-n", NAMESPACE, jobs, running, "-o", "name"]);
        for name in names.lines() {
            let done = r#"{"status": {"phase": "Succeeded"}}"#;
            let status = ["--subresource=status", "--type=merge", "-p", done];
            self.ask(&[&["patch", name, "-n", NAMESPACE][..], &status].concat());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_programs_are_needed() {
        let words = |line: &str| line.split('|').map(str::to_owned).collect::<Vec<_>>();
        let both = "--controller-manager|/opt/hyper kcm|--scheduler|/opt/kube-scheduler";
        let programs = Programs::of(&words(both)).unwrap();
        assert_eq!(
            (programs.kubectl.as_str(), &*programs.scheduler),
            ("kubectl", "/opt/kube-scheduler")
        );
        for line in ["--scheduler|/opt/kube-scheduler", "--scheduler", "--bogus|x"] {
            assert!(Programs::of(&words(line)).is_err(), "{line}");
        }
    }
}
