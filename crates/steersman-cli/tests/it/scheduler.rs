//! `steersman scheduler` beside a cluster that has none.

use std::process::Child;

use crate::program::{Program, steersman};
use crate::workload::{deploy, rolled_out};

/// A scheduler in a process of its own, which ends with this.
struct Scheduler(Child);

impl Scheduler {
    fn start(arguments: &[&str]) -> Self {
        Self(steersman(arguments).spawn().unwrap())
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_scheduler_in_a_process_of_its_own_does_the_work() {
    let cluster = Program::up(&["--controllers", "*,-kube-scheduler"]);
    let kubeconfig = cluster.directory.join("kubeconfig").display().to_string();
    let client = cluster.kube().await;
    deploy(&client, "web", 3).await;
    let _scheduler = Scheduler::start(&["scheduler", "--kubeconfig", &kubeconfig]);
    rolled_out(&client, "web", 3).await;
}

#[test]
fn a_configuration_that_makes_no_sense_is_one_clear_line() {
    let file = crate::program::directory().join("scheduler.yaml");
    let text = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n\
                percentageOfNodesToScore: 200\n";
    std::fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    for arguments in [
        vec!["scheduler", "--config", &file],
        vec!["up", "--memory", "--listen", "127.0.0.1:0", "--scheduler-config", &file],
    ] {
        let output = steersman(&arguments).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        let told = "percentageOfNodesToScore: Invalid value: 200: not in valid range [0-100]";
        assert!(said.contains(told) && said.contains(&file), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
