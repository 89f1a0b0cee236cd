//! kube-scheduler, which works on our cluster beside our scheduler, for Pods that name it.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, LazyLock};

use regex::Regex;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

use super::scores::Told;

/// The scheduler name of its Pods.
pub(super) const NAME: &str = "kube-scheduler";

/// Nobody else is elected and its requests are not slowed down; what it decides is as by default. It
/// would take a node from an earlier decision about an equal Pod, and then tell no scores.
const CONFIGURATION: &str = "\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: KUBECONFIG, qps: 2000, burst: 4000}
profiles: [{schedulerName: kube-scheduler}]
";
const FLAGS: [&str; 4] = [
    "--secure-port=0",
    "--feature-gates=OpportunisticBatching=false",
    "-v=0",
    "--vmodule=schedule_one=10",
];

/// `"Plugin scored node for pod" pod="ns/p" plugin="ImageLocality" node="n" score=0`
static SCORED: LazyLock<Regex> = LazyLock::new(|| {
    let line =
        r#""Plugin scored node for pod" pod="(\S+)" plugin="(\S+)" node="(\S+)" score=(-?\d+)"#;
    Regex::new(line).expect("it is a pattern")
});
/// `"Successfully bound pod to node" pod="ns/p" node="n" evaluatedNodes=3 feasibleNodes=2`
static BOUND: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#""Successfully bound pod to node" pod="(\S+)""#).expect("it is a pattern")
});

/// The running program; it ends when dropped.
pub(super) struct Upstream {
    pub(super) told: Told,
    /// The Pod that it said last to have bound.
    bound: Arc<watch::Sender<String>>,
    _child: Child,
}

impl Upstream {
    /// Starts the program of a directory.
    pub(super) fn start(directory: &Path, work: &Path, kubeconfig: &str) -> Result<Self, String> {
        let written = |name: &str, text: &str| -> Result<PathBuf, String> {
            let path = work.join(name);
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
            Ok(path)
        };
        let kubeconfig = written("kubeconfig", kubeconfig)?;
        let text = CONFIGURATION.replace("KUBECONFIG", &kubeconfig.display().to_string());
        let configuration = written("scheduler.yaml", &text)?;
        let log = work.join("kube-scheduler.log");
        let mut log = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let program = directory.join("kube-scheduler");
        let child = Command::new(&program)
            .arg(format!("--config={}", configuration.display()))
            .args(FLAGS)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        let mut child =
            child.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let stderr = child.stderr.take().ok_or("its log cannot be read")?;
        let told = Told::default();
        let bound = Arc::new(watch::Sender::new(String::new()));
        let (scores, last) = (told.clone(), Arc::clone(&bound));
        tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                match Said::by(&line) {
                    Said::Score { pod, plugin, node, score } => {
                        scores.note(pod, plugin, node, score);
                    }
                    Said::Bound(pod) => drop(last.send_replace(pod.into())),
                    Said::Other => drop(writeln!(log, "{line}")),
                }
            }
        });
        Ok(Self { told, bound, _child: child })
    }

    /// Forgets what it said.
    pub(super) fn forget(&self, pod: &str) {
        self.bound.send_replace(String::new());
        self.told.take(pod);
    }

    /// Waits until it has told that a Pod is bound, and so all of its scores before.
    pub(super) async fn told_of(&self, pod: &str) {
        let _ = self.bound.subscribe().wait_for(|last| last == pod).await;
    }
}

/// What a line of its log says.
#[derive(Debug, PartialEq, Eq)]
enum Said<'a> {
    Score { pod: &'a str, plugin: &'a str, node: &'a str, score: i64 },
    Bound(&'a str),
    Other,
}

impl<'a> Said<'a> {
    fn by(line: &'a str) -> Self {
        if let Some(found) = SCORED.captures(line) {
            let (_, [pod, plugin, node, score]) = found.extract();
            return Self::Score { pod, plugin, node, score: score.parse().unwrap_or_default() };
        }
        match BOUND.captures(line) {
            Some(found) => Self::Bound(found.extract::<1>().1[0]),
            None => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_log_tells_scores_and_bindings() {
        let line = "I1117 11:30:00.1 12 schedule_one.go:982] \"Plugin scored node for pod\" \
                    pod=\"a/p\" plugin=\"NodeAffinity\" node=\"n-1\" score=200";
        let score = Said::Score { pod: "a/p", plugin: "NodeAffinity", node: "n-1", score: 200 };
        assert_eq!(Said::by(line), score);
        let line = "I1117 11:30:00.1 12 schedule_one.go:390] \"Successfully bound pod to node\" \
                    pod=\"a/p\" node=\"n-1\" evaluatedNodes=3 feasibleNodes=2";
        assert_eq!(Said::by(line), Said::Bound("a/p"));
        assert_eq!(Said::by("anything else"), Said::Other);
    }
}
