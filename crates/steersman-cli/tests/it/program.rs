//! Starts the program and kubectl.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

/// How long anything that really happens may take on a slow machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How long servers that share an etcd wait for their leader.
pub(crate) const LEASE_SECONDS: u64 = 3;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// `steersman up` with a directory of its own, stopped when dropped.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) directory: PathBuf,
    /// With which it is started again.
    arguments: Vec<String>,
    output: Mutex<Receiver<String>>,
}

/// The program with these arguments, not started yet. The variable `STEERSMAN_PROGRAM` names
/// another that takes the same flags, to see what a different server says to a scenario.
pub(crate) fn steersman(arguments: &[&str]) -> Command {
    let ours = || env!("CARGO_BIN_EXE_steersman").into();
    let mut command = Command::new(std::env::var_os("STEERSMAN_PROGRAM").unwrap_or_else(ours));
    command.args(arguments);
    // Nothing of a test may come to lie among the user's own data.
    command.env("XDG_DATA_HOME", unused_path());
    command
}

/// The program that is nothing but a node, not started yet.
pub(crate) fn steersman_node() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_steersman-node"));
    command.env("XDG_DATA_HOME", unused_path());
    command
}

/// A path that is nobody else's.
fn unused_path() -> PathBuf {
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("steersman-cli-{}-{number}", std::process::id()))
}

fn spawn(arguments: &[String], directory: &Path) -> (Child, Receiver<String>) {
    let mut command = steersman(&["up", "--kubeconfig"]);
    command.arg(directory.join("kubeconfig")).args(arguments).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let output = lines(child.stdout.take().unwrap());
    (child, output)
}

/// A port that is free now, given once, and below those of outgoing connections, so that a
/// program that is down keeps it.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let n = std::process::id() * 17 + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 8000 + u16::try_from(n % 4000).unwrap();
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// A new empty directory.
pub(crate) fn directory() -> PathBuf {
    let directory = unused_path();
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

impl Program {
    /// Starts `steersman up` on a free port, in memory, and waits until it is ready.
    pub(crate) fn up(arguments: &[&str]) -> Self {
        Self::start([&["--listen", "127.0.0.1:0", "--memory"], arguments].concat(), directory())
    }

    /// The same where other machines reach it.
    pub(crate) fn up_at(address: &str, arguments: &[&str]) -> Self {
        let listen = format!("{address}:0");
        Self::start([&["--listen", &listen, "--memory"], arguments].concat(), directory())
    }

    /// The same on disk, with a port of its own, so that it can be started
    /// [again](Self::start_again) as it was.
    pub(crate) fn up_on_disk(arguments: &[&str]) -> Self {
        let directory = directory();
        let data = directory.join("data").display().to_string();
        let listen = format!("127.0.0.1:{}", free_port());
        let own = ["--listen", &listen, "--data-dir", &data];
        Self::start([&own, arguments].concat(), directory)
    }

    /// The same on etcd.
    pub(crate) fn up_on_etcd(endpoints: &[String], arguments: &[&str]) -> Self {
        let listen = format!("127.0.0.1:{}", free_port());
        let (endpoints, lease) = (endpoints.join(","), LEASE_SECONDS.to_string());
        let own = ["--listen", &listen, "--etcd", &endpoints];
        let own = [&own[..], &["--leader-elect-lease-duration", &lease]].concat();
        Self::start([&own, arguments].concat(), directory())
    }

    fn start(arguments: Vec<&str>, directory: PathBuf) -> Self {
        let arguments: Vec<String> = arguments.into_iter().map(str::to_owned).collect();
        let (child, output) = spawn(&arguments, &directory);
        let program = Self { child, directory, arguments, output: Mutex::new(output) };
        program.read_until("Ctrl-C stops it.");
        program
    }

    /// Starts it again, as it was started, and returns what it says.
    pub(crate) fn start_again(&mut self) -> String {
        let (child, output) = spawn(&self.arguments, &self.directory);
        (self.child, self.output) = (child, Mutex::new(output));
        self.read_until("Ctrl-C stops it.")
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends it as its user would.
    pub(crate) fn stop(&mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// A client of its administrator that does not try again by itself.
    pub(crate) async fn kube(&self) -> kube::Client {
        let text = std::fs::read_to_string(self.directory.join("kubeconfig")).unwrap();
        let kubeconfig = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        let options = kube::config::KubeConfigOptions::default();
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.unwrap();
        config.default_retry = false;
        kube::Client::try_from(config).unwrap()
    }

    /// Everything printed up to the line that contains this.
    pub(crate) fn read_until(&self, text: &str) -> String {
        read_until(&self.output.lock().unwrap(), text)
    }

    /// Runs kubectl against this program and returns what it printed; it must succeed.
    pub(crate) fn kubectl(&self, arguments: &[&str]) -> String {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
        assert!(status.success(), "kubectl {arguments:?}: {stdout}{stderr}");
        stdout.into_owned()
    }

    /// Runs a kubectl command line; what it prints must contain each part.
    pub(crate) fn says(&self, line: &str, parts: &[&str]) -> String {
        let words = words(line);
        let printed = self.kubectl(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_contains(line, &printed, parts);
        printed
    }

    /// As `says`, with a file on the standard input.
    pub(crate) fn says_to(&self, input: &str, line: &str, parts: &[&str]) -> String {
        let (status, printed) = self.run(input, line);
        assert!(status, "kubectl {line}:\n{printed}");
        assert_contains(line, &printed, parts);
        printed
    }

    /// Runs a kubectl command line that must fail, for reasons that contain each part.
    pub(crate) fn refuses(&self, line: &str, parts: &[&str]) -> String {
        self.refuses_to("", line, parts)
    }

    /// As `refuses`, with a file on the standard input.
    pub(crate) fn refuses_to(&self, input: &str, line: &str, parts: &[&str]) -> String {
        let (status, printed) = self.run(input, line);
        assert!(!status, "kubectl {line} was to fail:\n{printed}");
        assert_contains(line, &printed, parts);
        printed
    }

    /// The flags with which kubectl shows this token and no certificate.
    pub(crate) fn bearing(&self, token: &str) -> String {
        let kubeconfig = std::fs::read_to_string(self.directory.join("kubeconfig")).unwrap();
        let server = kubeconfig.lines().find_map(|line| line.trim().strip_prefix("server: "));
        let (server, token) = (server.unwrap().trim(), token.trim());
        format!(
            "--kubeconfig=/dev/null --server={server} --insecure-skip-tls-verify --token={token}"
        )
    }

    /// Writes a file into this program's directory and returns its path.
    pub(crate) fn file(&self, name: &str, content: &str) -> String {
        let path = self.directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }

    /// Whether it succeeded, and both outputs.
    pub(crate) fn run(&self, input: &str, line: &str) -> (bool, String) {
        let words = words(line);
        let mut command = self.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Before 1.33, kubectl takes for JSON what begins with a brace.
        let mark = if input.starts_with("{a") { "---\n" } else { "" };
        // kubectl may end without reading all of it, which is its right.
        let _ = child.stdin.take().unwrap().write_all((mark.to_owned() + input).as_bytes());
        let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
        let printed = [stdout, stderr].concat();
        (status.success(), String::from_utf8_lossy(&printed).into_owned())
    }

    /// Starts kubectl against this program and reads its lines as they come.
    pub(crate) fn kubectl_in_background(&self, arguments: &[&str]) -> (Child, Receiver<String>) {
        let mut child = self.command(arguments).stdout(Stdio::piped()).spawn().unwrap();
        let output = lines(child.stdout.take().unwrap());
        (child, output)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.client("kubectl");
        command.arg("--request-timeout=60s").args(arguments);
        command
    }

    /// A client that finds this program and has a home of its own, for it keeps a cache there.
    pub(crate) fn client(&self, name: &str) -> Command {
        let mut command = Command::new(installed(name));
        command.env("HOME", &self.directory).env("KUBECONFIG", self.directory.join("kubeconfig"));
        command.env("KUBE_EDITOR", self.directory.join("editor"));
        command.env("TMPDIR", &self.directory);
        command
    }
}

/// Where `cargo xtask test` put a client, or its bare name, to be found on the PATH. The
/// variable `STEERSMAN_CLIENTS` names another directory, to try other versions.
pub(crate) fn installed(name: &str) -> PathBuf {
    let usual = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("clients").join("bin");
    let directory = std::env::var_os("STEERSMAN_CLIENTS").map_or(usual, PathBuf::from);
    Some(directory.join(name)).filter(|path| path.is_file()).unwrap_or_else(|| name.into())
}

/// The words of a command line; quotes keep spaces together.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '\'' => quoted = !quoted,
            ' ' | '\n' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("begins with one").push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Fails unless each part is in what the command line printed.
pub(crate) fn assert_contains(line: &str, printed: &str, parts: &[&str]) {
    for part in parts {
        assert!(printed.contains(part), "{line}: {part:?} is not in:\n{printed}");
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
