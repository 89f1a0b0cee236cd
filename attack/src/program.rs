//! The program `steersman`, started as a user would, ended as nobody would.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Who is known to the program: tokens, users, groups. Only the first is beyond all fairness.
const USERS: &str = "\
admin-token,admin,1,\"system:masters\"
attacker-token,attacker,2
innocent-token,innocent,3
";

/// Where a program keeps what it has, and what it is started with. Gone when dropped.
pub(crate) struct Place {
    program: PathBuf,
    directory: PathBuf,
    flags: Vec<String>,
}

/// A running `steersman up`; it is killed when dropped.
pub(crate) struct Program {
    child: Child,
    address: String,
    kubeconfig: PathBuf,
    log: PathBuf,
}

impl Place {
    /// A new place for a program.
    pub(crate) fn new(program: &Path, flags: &[&str]) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("steersman-attack-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).map_err(|error| format!("cannot make a place: {error}"))?;
        let users = directory.join("users.csv");
        fs::write(users, USERS).map_err(|error| format!("cannot write users: {error}"))?;
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Ok(Self { program: program.to_owned(), directory, flags })
    }

    /// Where the store's files are.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Where other files may be.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The program, to be run for something else than a cluster.
    pub(crate) fn command(&self) -> Command {
        Command::new(&self.program)
    }

    /// Starts the program and returns once it serves; else says what it said.
    pub(crate) fn start(&self) -> Result<Program, String> {
        self.start_on(&self.data())
    }

    /// The same with the store in another directory.
    pub(crate) fn start_on(&self, data: &Path) -> Result<Program, String> {
        let kubeconfig = self.directory.join("kubeconfig");
        let log = self.directory.join("log");
        let errors = File::create(&log).map_err(|error| format!("cannot write a log: {error}"))?;
        let elsewhere = self.flags.iter().any(|flag| flag == "--etcd" || flag == "--memory");
        let mut command = self.command();
        command.args(["up", "--listen", "127.0.0.1:0", "--kubeconfig"]).arg(&kubeconfig);
        command.arg("--token-auth-file").arg(self.directory.join("users.csv")).args(&self.flags);
        if !elsewhere {
            command.arg("--data-dir").arg(data);
        }
        let started = command.stdout(Stdio::piped()).stderr(errors).spawn();
        let mut child =
            started.map_err(|error| format!("cannot start {}: {error}", self.program.display()))?;
        let output = child.stdout.take().ok_or("no output")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let mut address = None;
        for line in lines.by_ref() {
            if let Some(url) = line.trim().strip_prefix("address ") {
                address = Some(url.trim().trim_start_matches("https://").to_owned());
            }
            if line.contains("Ctrl-C stops it") {
                break;
            }
        }
        std::thread::spawn(move || lines.for_each(drop)); // keeps the pipe from filling up
        let program = Program { child, address: address.unwrap_or_default(), kubeconfig, log };
        if program.address.is_empty() { Err(program.refused()) } else { Ok(program) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl Program {
    /// Its process.
    pub(crate) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Its host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// How to reach it as its administrator, by certificate.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Ends it at once, as a crash does.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The first line about a panic, if there was one.
    pub(crate) fn panicked(&self) -> Option<String> {
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let mut lines = log.lines().skip_while(|line| !line.contains("panicked at"));
        let first = lines.next()?;
        Some(format!("{first} {}", lines.next().unwrap_or_default()))
    }

    /// What a program said that did not begin to serve.
    fn refused(mut self) -> String {
        let status = self.child.wait().map_or_else(|error| error.to_string(), |s| s.to_string());
        let panicked = self.panicked();
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last = panicked.unwrap_or_else(|| log.lines().last().unwrap_or_default().to_owned());
        format!("{status}: {last}")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}
