//! Kubernetes' own programs on this machine, over an etcd, in a directory of their own: the rival.
//!
//! Nobody is refused anything, and everybody is the same administrator.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use http::Request;

use crate::processes::connect;
use crate::program::{peak, resident};

/// The running programs; they end when dropped.
pub(crate) struct Kubernetes {
    processes: Vec<(&'static str, Child)>,
    directory: PathBuf,
    kubeconfig: PathBuf,
}

impl Kubernetes {
    /// Starts the etcd of the path, and over it this kube-apiserver.
    pub(crate) fn start(apiserver: &Path) -> Result<Self, String> {
        let name = format!("steersman-rival-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let kubeconfig = directory.join("kubeconfig");
        let mut kubernetes = Self { processes: Vec::new(), directory, kubeconfig };
        let [client, peer, https] = free_ports()?;
        write(&kubernetes.kubeconfig, &kubeconfig_text(https))?;
        kubernetes.run("etcd", etcd(&kubernetes.directory, client, peer))?;
        let server = server(apiserver, &kubernetes.directory, client, https)?;
        kubernetes.run("kube-apiserver", server)?;
        Ok(kubernetes)
    }

    /// Starts another program beside them, which logs to a file of its name.
    pub(crate) fn run(&mut self, name: &'static str, mut command: Command) -> Result<(), String> {
        let log = fs::File::create(self.log(name)).map_err(|error| error.to_string())?;
        command.stdout(Stdio::null()).stderr(log);
        let child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
        self.processes.push((name, child));
        Ok(())
    }

    /// How to reach it.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Waits until the API server answers that it is ready.
    pub(crate) async fn ready(&self) -> Result<(), String> {
        let client = connect::client(&self.kubeconfig).await?;
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let request = Request::get("/readyz").body(Vec::new());
            let request = request.map_err(|error| error.to_string())?;
            if client.request_text(request).await.is_ok() {
                return Ok(());
            }
        }
        Err(format!("not ready after a minute: {}", self.last_words()))
    }

    /// What each program has said last.
    pub(crate) fn last_words(&self) -> String {
        let last = |name: &str| {
            let log = fs::read_to_string(self.log(name)).unwrap_or_default();
            format!("{name}: {}", log.lines().last().unwrap_or_default())
        };
        let all: Vec<String> = self.processes.iter().map(|(name, _)| last(name)).collect();
        all.join("; ")
    }

    fn log(&self, name: &str) -> PathBuf {
        self.directory.join(name).with_extension("log")
    }

    /// The memory of all processes, in megabytes.
    pub(crate) fn resident(&self) -> Result<f64, String> {
        self.processes.iter().map(|(_, child)| resident(child.id())).sum()
    }

    /// The sum of the most that each has had.
    pub(crate) fn peak(&self) -> Result<f64, String> {
        self.processes.iter().map(|(_, child)| peak(child.id())).sum()
    }
}

impl Drop for Kubernetes {
    fn drop(&mut self) {
        for (_, child) in self.processes.iter_mut().rev() {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn etcd(directory: &Path, client: u16, peer: u16) -> Command {
    let client = url(client);
    let peer = url(peer);
    let mut command = Command::new("etcd");
    command
        .arg("--data-dir")
        .arg(directory.join("etcd"))
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("default={peer}")]);
    command
}

fn server(program: &Path, directory: &Path, etcd: u16, https: u16) -> Result<Command, String> {
    let [private, public] = ["sa.key", "sa.pub"].map(|name| directory.join(name));
    let [private_key, public_key] = steersman_bench_server::signing_keys()?;
    write(&private, &private_key)?;
    write(&public, &public_key)?;
    let tokens = directory.join("tokens.csv");
    write(&tokens, "bench,admin,admin,system:masters\n")?;
    let mut command = Command::new(program);
    command
        .args(["--etcd-servers", &url(etcd), "--secure-port", &https.to_string()])
        .args(["--bind-address", "127.0.0.1", "--service-cluster-ip-range", "10.96.0.0/16"])
        .args(["--authorization-mode", "AlwaysAllow", "--advertise-address", "10.0.0.1"])
        .args(["--service-account-issuer", "https://kubernetes.default.svc"])
        .arg("--cert-dir")
        .arg(directory.join("certificates"))
        .arg("--token-auth-file")
        .arg(&tokens)
        .arg("--service-account-key-file")
        .arg(&public)
        .arg("--service-account-signing-key-file")
        .arg(&private);
    Ok(command)
}

fn free_ports() -> Result<[u16; 3], String> {
    // Held together, so that they differ.
    let listeners: Result<Vec<_>, _> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let listeners = listeners.map_err(|error| error.to_string())?;
    let ports: Result<Vec<u16>, _> =
        listeners.iter().map(|listener| listener.local_addr().map(|a| a.port())).collect();
    let ports = ports.map_err(|error| error.to_string())?;
    ports.try_into().map_err(|_| "three ports".to_owned())
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn kubeconfig_text(port: u16) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: rival
  cluster: {{server: 'https://127.0.0.1:{port}', insecure-skip-tls-verify: true}}
users:
- name: admin
  user: {{token: bench}}
contexts:
- name: rival
  context: {{cluster: rival, user: admin}}
current-context: rival
"
    )
}
