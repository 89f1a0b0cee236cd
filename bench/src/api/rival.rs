//! kube-apiserver over etcd, started as small as it goes: no controllers, nobody is refused.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http::Request;

use super::target::Target;
use crate::go;
use crate::program::resident;

/// The running rival; it ends when dropped.
pub(super) struct Rival {
    etcd: Child,
    server: Child,
    directory: PathBuf,
    kubeconfig: PathBuf,
}

impl Rival {
    /// Builds and starts it.
    pub(super) fn start() -> Result<Self, String> {
        eprintln!("api: building kube-apiserver (minutes, the first time)");
        let program = go::build("kube-apiserver", "steersman-bench-kube-apiserver")?;
        let name = format!("steersman-rival-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let [client, peer, https] = free_ports()?;
        let etcd = start_etcd(&directory, client, peer)?;
        let server = match start_server(&program, &directory, client, https) {
            Ok(server) => server,
            Err(error) => {
                stop(etcd);
                return Err(error);
            }
        };
        let kubeconfig = directory.join("kubeconfig");
        write(&kubeconfig, &kubeconfig_text(https))?;
        Ok(Self { etcd, server, directory, kubeconfig })
    }

    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Waits until it answers that it is ready.
    pub(super) async fn ready(&self, target: &Target) -> Result<(), String> {
        for _ in 0..600 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let Ok(mut connection) = target.connect().await else { continue };
            let request = Request::get("/readyz").body(Bytes::new());
            let request = request.map_err(|error| error.to_string())?;
            if connection.ask(request).await.is_ok() {
                return Ok(());
            }
        }
        let log = self.directory.join("kube-apiserver.log");
        let log = fs::read_to_string(log).unwrap_or_default();
        let last = log.lines().last().unwrap_or_default();
        Err(format!("not ready after a minute: {last}"))
    }

    /// The memory of both processes, in megabytes.
    pub(super) fn resident(&self) -> Result<f64, String> {
        Ok(resident(self.server.id())? + resident(self.etcd.id())?)
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        for child in [&mut self.server, &mut self.etcd] {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn start_etcd(directory: &Path, client: u16, peer: u16) -> Result<Child, String> {
    let client = url(client);
    let peer = url(peer);
    let mut command = Command::new("etcd");
    command
        .arg("--data-dir")
        .arg(directory.join("etcd"))
        .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
        .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
        .args(["--initial-cluster", &format!("default={peer}")]);
    spawn(command, "etcd (Debian package etcd-server)", &directory.join("etcd.log"))
}

fn start_server(program: &Path, directory: &Path, etcd: u16, https: u16) -> Result<Child, String> {
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
    spawn(command, "kube-apiserver", &directory.join("kube-apiserver.log"))
}

fn spawn(mut command: Command, name: &str, log: &Path) -> Result<Child, String> {
    let log = fs::File::create(log).map_err(|error| error.to_string())?;
    command.stdout(Stdio::null()).stderr(log);
    command.spawn().map_err(|error| format!("cannot start {name}: {error}"))
}

fn stop(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
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
