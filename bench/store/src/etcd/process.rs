//! A process of etcd with one member and its own settings, but for two: where it listens, and a
//! quota that a million writes do not fill.

use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use steersman_store::Store;

use super::Client;
use crate::process_memory;

/// How long etcd may take to answer after its start.
const PATIENCE: Duration = Duration::from_secs(60);

/// The running etcd; killed when dropped.
pub(crate) struct Process {
    child: Child,
    directory: PathBuf,
    urls: [String; 2],
}

impl Process {
    /// Starts etcd on a directory, and returns once it answers a read.
    pub(crate) async fn start(directory: &Path) -> Result<Self, String> {
        let urls = free_urls()?;
        let child = spawn(directory, &urls)?;
        let mut process = Self { child, directory: directory.to_owned(), urls };
        process.answers().await?;
        Ok(process)
    }

    /// Kills it as a crash would, and starts it again; returns once it answers a read.
    pub(crate) async fn crash_and_start(&mut self) -> Result<(), String> {
        self.kill();
        self.child = spawn(&self.directory, &self.urls)?;
        self.answers().await
    }

    pub(crate) async fn client(&self) -> Result<Client, String> {
        Client::connect(self.endpoint(), false).await
    }

    /// A client whose reads may be stale.
    pub(crate) async fn stale_client(&self) -> Result<Client, String> {
        Client::connect(self.endpoint(), true).await
    }

    pub(crate) fn endpoint(&self) -> &str {
        &self.urls[0]
    }

    /// Its resident memory, in megabytes.
    pub(crate) fn resident(&self) -> Result<f64, String> {
        process_memory::resident(&self.child.id().to_string())
    }

    async fn answers(&mut self) -> Result<(), String> {
        let asked = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(status) = self.child.try_wait().map_err(|error| error.to_string())? {
                    return Err(format!("etcd ended: {status}"));
                }
                if let Ok(client) = self.client().await
                    && client.get("/").await.is_ok()
                {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        asked.await.map_err(|_| "etcd does not answer".to_owned())?
    }

    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The first line of what etcd says of its version.
pub(crate) fn version() -> String {
    let output = Command::new("etcd").arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.ok().and_then(|text| text.lines().next().map(str::to_owned)).unwrap_or_default()
}

fn spawn(directory: &Path, [client, peer]: &[String; 2]) -> Result<Child, String> {
    let log = File::options().create(true).append(true).open(directory.join("etcd.log"));
    let log = log.map_err(|error| error.to_string())?;
    Command::new("etcd")
        .arg("--data-dir")
        .arg(directory.join("data"))
        .args(["--listen-client-urls", client, "--advertise-client-urls", client])
        .args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer])
        .args(["--initial-cluster", &format!("default={peer}")])
        .args(["--quota-backend-bytes", "8589934592", "--logger", "zap"])
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|error| format!("cannot start etcd (Debian's package etcd-server): {error}"))
}

fn free_urls() -> Result<[String; 2], String> {
    // Held together, so that they differ.
    let listen = || TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string());
    let listeners = [listen()?, listen()?];
    let url = |listener: &TcpListener| {
        let address = listener.local_addr().map_err(|error| error.to_string());
        address.map(|address| format!("http://{address}"))
    };
    Ok([url(&listeners[0])?, url(&listeners[1])?])
}
