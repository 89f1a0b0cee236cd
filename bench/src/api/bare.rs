//! The ceiling as a process of its own, so that it has its own threads as a server does.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use steersman_bench_server::bare::Bare;

/// The running server; it ends when dropped.
pub(super) struct Process {
    child: Child,
    kubeconfig: PathBuf,
}

impl Process {
    /// Starts it and waits until it can be reached.
    pub(super) fn start() -> Result<Self, String> {
        let here = std::env::current_exe().map_err(|error| error.to_string())?;
        let kubeconfig =
            std::env::temp_dir().join(format!("steersman-bare-{}.kubeconfig", std::process::id()));
        let child = Command::new(here).arg("bare").arg(&kubeconfig).stdout(Stdio::piped()).spawn();
        let mut process = Self { child: child.map_err(|error| error.to_string())?, kubeconfig };
        let output = process.child.stdout.take().ok_or("no output")?;
        let mut line = String::new();
        match BufReader::new(output).read_line(&mut line) {
            Ok(1..) => Ok(process),
            _ => Err("the bare server does not start".to_owned()),
        }
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}

/// Is that process.
pub(crate) fn run(mut words: impl Iterator<Item = String>) -> ExitCode {
    let Some(kubeconfig) = words.next() else {
        eprintln!("error: the bare server needs the path of a kubeconfig to write");
        return ExitCode::FAILURE;
    };
    let served = super::runtime().and_then(|runtime| {
        runtime.block_on(async {
            let bare = Bare::listen(Path::new(&kubeconfig)).await?;
            println!("listening");
            bare.serve().await
        })
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
