//! kube-controller-manager, which works on a cluster of ours.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

/// What it logs, among its files.
const LOG: &str = "kube-controller-manager.log";

/// Nobody else is elected and its requests are not slowed down; what it does is as by default.
const FLAGS: [&str; 4] =
    ["--leader-elect=false", "--secure-port=0", "--kube-api-qps=2000", "--kube-api-burst=4000"];

/// The running program; it ends when dropped.
pub(super) struct Upstream {
    child: Child,
    /// Where its files are.
    work: PathBuf,
}

impl Upstream {
    /// Starts the program of a directory.
    pub(super) fn start(directory: &Path, kubeconfig: &str) -> Result<Self, String> {
        let work = std::env::temp_dir().join(format!("steersman-compare-{}", std::process::id()));
        std::fs::create_dir_all(&work).map_err(|error| format!("{}: {error}", work.display()))?;
        let path = work.join("kubeconfig");
        std::fs::write(&path, kubeconfig)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        let log = work.join(LOG);
        let log = File::create(&log).map_err(|error| format!("{}: {error}", log.display()))?;
        let program = directory.join("kube-controller-manager");
        let child = Command::new(&program)
            .arg(format!("--kubeconfig={}", path.display()))
            .args(FLAGS)
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn();
        let child =
            child.map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        Ok(Self { child, work })
    }

    /// Fails if it does not run any more: whatever differs then says nothing.
    pub(super) fn runs(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                let log = self.work.join(LOG);
                Err(format!("kube-controller-manager has ended, {status}; see {}", log.display()))
            }
            Err(error) => Err(format!("cannot look at kube-controller-manager: {error}")),
        }
    }

    /// Removes its files, which nobody needs to look at.
    pub(super) fn forget(self) {
        let _ = std::fs::remove_dir_all(&self.work);
    }
}
