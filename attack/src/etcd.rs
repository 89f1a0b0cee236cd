//! An etcd of our own, for the same attacks on another storage.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A running etcd; it is killed when dropped.
pub(crate) struct Etcd {
    child: Child,
    directory: PathBuf,
    /// Where it is.
    pub(crate) url: String,
}

impl Etcd {
    /// Starts one on free ports.
    pub(crate) fn start() -> Result<Self, String> {
        let name = format!("steersman-attack-etcd-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let url = format!("http://127.0.0.1:{}", free_port()?);
        let peer = format!("http://127.0.0.1:{}", free_port()?);
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(&directory)
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("default={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start etcd: {error}"))?;
        Ok(Self { child, directory, url })
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn free_port() -> Result<u16, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|error| error.to_string())?;
    listener.local_addr().map(|address| address.port()).map_err(|error| error.to_string())
}
