//! Starts the program and kubectl.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// How long anything that really happens may take on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

static COUNT: AtomicU32 = AtomicU32::new(0);

/// `steersman up` with a directory of its own, stopped when dropped.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) directory: PathBuf,
    output: Receiver<String>,
}

/// The program with these arguments, not started yet.
pub(crate) fn steersman(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steersman"));
    command.args(arguments);
    command
}

/// A new empty directory.
pub(crate) fn directory() -> PathBuf {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("steersman-cli-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

impl Program {
    /// Starts `steersman up` on a free port and waits until it is ready.
    pub(crate) fn up(arguments: &[&str]) -> Self {
        let directory = directory();
        let kubeconfig = directory.join("kubeconfig");
        let mut child = steersman(&["up", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = lines(child.stdout.take().unwrap());
        let program = Self { child, directory, output };
        program.read_until("Ctrl-C stops it.");
        program
    }

    /// Everything printed up to the line that contains this.
    pub(crate) fn read_until(&self, text: &str) -> String {
        read_until(&self.output, text)
    }

    /// Runs kubectl against this program and returns what it printed; it must succeed.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "kubectl {arguments:?}: {stdout}{stderr}");
        stdout.into_owned()
    }

    /// Starts kubectl against this program and reads its lines as they come.
    pub(crate) fn kubectl_in_background(&self, arguments: &[&str]) -> (Child, Receiver<String>) {
        let mut child = self.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = lines(child.stdout.take().unwrap());
        (child, output)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        // kubectl keeps a cache in its home; each test has its own.
        command.env("HOME", &self.directory).env("KUBECONFIG", self.directory.join("kubeconfig"));
        command.arg("--request-timeout=60s").args(arguments);
        command
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Everything that comes up to the line that contains this text.
pub(crate) fn read_until(output: &Receiver<String>, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        match output.recv_timeout(PATIENCE) {
            Ok(line) => read.push_str(&(line + "\n")),
            Err(_) => panic!("no line with {text:?} came after:\n{read}"),
        }
    }
    read
}

fn lines(stream: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = sync_channel(10_000);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
