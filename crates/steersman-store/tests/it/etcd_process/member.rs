//! One member of a cluster: its process, and what can be asked of it over plain HTTP.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::ports;

/// Where a member listens.
#[derive(Clone, Debug)]
pub(super) struct Address {
    name: String,
    client: String,
    peer: String,
    /// Tells of its health without TLS.
    metrics: u16,
}

impl Address {
    pub(super) fn new(number: usize, scheme: &str) -> Self {
        Self {
            name: format!("m{number}"),
            client: format!("{scheme}://127.0.0.1:{}", ports::free()),
            peer: format!("http://127.0.0.1:{}", ports::free()),
            metrics: ports::free(),
        }
    }
}

/// One member, running or not.
#[derive(Debug)]
pub(super) struct Member {
    address: Address,
    arguments: Vec<String>,
    data: PathBuf,
    log: PathBuf,
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    etcd: Child,
    /// Kills etcd when its input ends, which it does at the latest when this process dies.
    guard: Child,
}

impl Member {
    pub(super) fn new(
        address: &Address,
        all: &[Address],
        directory: &Path,
        arguments: &[String],
    ) -> Self {
        let name = &address.name;
        let data = directory.join(name);
        let log = directory.join(format!("{name}.log"));
        let cluster: Vec<String> =
            all.iter().map(|member| format!("{}={}", member.name, member.peer)).collect();
        let mut own = vec![
            format!("--name={name}"),
            format!("--data-dir={}", data.display()),
            format!("--listen-client-urls={}", address.client),
            format!("--advertise-client-urls={}", address.client),
            format!("--listen-peer-urls={}", address.peer),
            format!("--initial-advertise-peer-urls={}", address.peer),
            format!("--listen-metrics-urls=http://127.0.0.1:{}", address.metrics),
            format!("--initial-cluster={}", cluster.join(",")),
            "--initial-cluster-state=new".into(),
            "--logger=zap".into(),
        ];
        own.extend_from_slice(arguments);
        Self { address: address.clone(), arguments: own, data, log, running: None }
    }

    pub(super) fn client(&self) -> &str {
        &self.address.client
    }

    /// Starts the process.
    pub(super) fn spawn(&mut self) {
        assert!(self.running.is_none(), "{} runs already", self.address.name);
        let program = program("ETCD", "etcd");
        let log = File::options().create(true).append(true).open(&self.log).expect("our own file");
        let etcd = Command::new(&program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| {
                panic!(
                    "cannot start {program}: {error}. Install it (apt-get install etcd-server \
                     etcd-client) or name the program in the environment's ETCD"
                )
            });
        let directory = self.log.parent().expect("it lies in the cluster's directory");
        let guard = Command::new("sh")
            .args(["-c", "read line; kill -9 $0; rm -rf $1", &etcd.id().to_string()])
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a shell");
        self.running = Some(Running { etcd, guard });
    }

    /// Waits until the member answers; says why it does not.
    pub(super) async fn ready(&mut self, max: Duration) -> Result<(), String> {
        let waited = tokio::time::timeout(max, async {
            let mut tick = tokio::time::interval(Duration::from_millis(10));
            while !self.get("/health").await.contains("\"true\"") {
                tick.tick().await;
                let running = self.running.as_mut().ok_or("it was not started")?;
                if running.etcd.try_wait().map_err(|error| error.to_string())?.is_some() {
                    return Err(self.last_words());
                }
            }
            Ok(())
        });
        waited.await.unwrap_or_else(|_| Err(format!("not ready in {max:?}: {}", self.last_words())))
    }

    pub(super) async fn is_leader(&self) -> bool {
        self.get("/metrics").await.contains("\netcd_server_is_leader 1\n")
    }

    pub(super) fn stop(&mut self) {
        self.signal("TERM");
        self.end();
    }

    pub(super) fn kill(&mut self) {
        if let Some(running) = &mut self.running {
            let _ = running.etcd.kill();
            self.end();
        }
    }

    /// Waits for the process to end. The guard goes first: it must not outlive the number.
    fn end(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let _ = running.guard.kill();
        let _ = running.guard.wait();
        let _ = running.etcd.wait();
    }

    /// Removes what the member stored.
    pub(super) fn forget(&self) {
        std::fs::remove_dir_all(&self.data).expect("the member's directory");
    }

    /// Copies what the member stored.
    pub(super) fn save(&self) -> PathBuf {
        assert!(self.running.is_none(), "{} writes", self.address.name);
        let saved = self.data.with_extension("saved");
        copy(&self.data, &saved);
        saved
    }

    pub(super) fn put_back(&self, saved: &Path) {
        assert!(self.running.is_none(), "{} writes", self.address.name);
        self.forget();
        copy(saved, &self.data);
    }

    pub(super) fn signal(&self, signal: &str) {
        let running = self.running.as_ref().expect("the member runs");
        let pid = running.etcd.id().to_string();
        let status = Command::new("kill").args([&format!("-{signal}"), &pid]).status();
        assert!(status.expect("the command `kill`").success(), "cannot send {signal}");
    }

    /// Makes it stand still; not before all its threads do is this over.
    pub(super) fn pause(&self) {
        self.signal("STOP");
        let running = self.running.as_ref().expect("the member runs");
        let threads = format!("/proc/{}/task", running.etcd.id());
        let stands = |thread: std::io::Result<std::fs::DirEntry>| {
            let stat =
                thread.and_then(|thread| std::fs::read_to_string(thread.path().join("stat")));
            // The state follows the name, which is in brackets.
            stat.is_ok_and(|stat| {
                stat.rsplit(')').next().is_some_and(|rest| rest.starts_with(" T"))
            })
        };
        while !std::fs::read_dir(&threads).expect("the member's threads").all(stands) {
            std::thread::yield_now();
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let from = log.lines().count().saturating_sub(5);
        log.lines().skip(from).collect::<Vec<_>>().join("\n")
    }

    /// What the member answers; nothing if it does not.
    async fn get(&self, path: &str) -> String {
        let asked = tokio::time::timeout(Duration::from_secs(2), async {
            let mut stream = TcpStream::connect(("127.0.0.1", self.address.metrics)).await?;
            let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await?;
            Ok::<_, std::io::Error>(String::from_utf8_lossy(&answer).into_owned())
        });
        asked.await.ok().and_then(Result::ok).unwrap_or_default()
    }
}

/// The program of this name, unless the environment names another.
pub(super) fn program(variable: &str, name: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| name.to_owned())
}

/// Runs a command to its end with this input.
pub(super) fn run(command: &mut Command, input: &str) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(input.as_bytes()).expect("it reads its input");
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").args([from, to]).status();
    assert!(status.expect("the command `cp`").success(), "cannot copy {}", from.display());
}
