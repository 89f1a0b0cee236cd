//! The processes of a comparison, and what they say to each other.
//!
//! Each system under test runs in a [child](crate::child) process of its own, so that its memory is its
//! own, against a [`server`] in another. The benchmark [talks](talk) with them in [lines](wire).

pub(crate) mod connect;
pub(crate) mod server;
pub(crate) mod talk;
pub(crate) mod usage;
pub(crate) mod wire;

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use talk::Process;
use wire::Line;

/// This program, as a process that does something for the benchmark.
pub(crate) fn ourselves(arguments: &[String]) -> Result<Command, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(program);
    command.arg("child").args(arguments);
    Ok(command)
}

/// The commands that a process is given: the lines of standard input, which only a thread can read.
pub(crate) fn lines() -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receive
}

/// Runs what a process has to do.
pub(crate) fn until_ended(work: impl Future<Output = Result<(), String>>) -> ExitCode {
    let runtime = Runtime::new().map_err(|error| error.to_string());
    match runtime.and_then(|runtime| runtime.block_on(work)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A server with objects in a process of its own; it ends when dropped.
pub(crate) struct Server {
    process: Process,
    kubeconfig: PathBuf,
}

impl Server {
    /// Starts a server with so many objects of a kind: `pods` or `widgets`.
    pub(crate) async fn start(kind: &str, count: usize) -> Result<Self, String> {
        let name = format!("steersman-bench-{}.kubeconfig", std::process::id());
        let kubeconfig = std::env::temp_dir().join(name);
        let path = kubeconfig.display().to_string();
        let serve = ["serve".to_owned(), path, kind.to_owned(), count.to_string()];
        let mut server = Self { process: Process::start(ourselves(&serve)?)?, kubeconfig };
        match server.process.hear().await? {
            Some(Line::Serving { .. }) => Ok(server),
            _ => Err("the server does not serve".to_owned()),
        }
    }

    /// Where a client finds what it needs.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Lets the server write to so many objects at once; tells when it began.
    pub(crate) async fn burst(&mut self, phase: wire::Phase, count: usize) -> Result<u64, String> {
        self.process.tell(&format!("{} {count}", phase.name())).await?;
        match self.process.hear().await? {
            Some(Line::Begun { at }) => Ok(at),
            _ => Err("the server did not write".to_owned()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}
