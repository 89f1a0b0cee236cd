//! Where the kubeconfig goes, and where one leads to.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::user_data;

/// Where Kubernetes is usually served.
const USUAL_PORT: u16 = 6443;

/// The path asked for, or one in the user's data directory. Clusters on other ports than the
/// usual one get files of their own, so that two can run side by side.
pub(crate) fn path(asked: Option<PathBuf>, port: u16) -> PathBuf {
    let name = if port == USUAL_PORT { "kubeconfig".into() } else { format!("kubeconfig-{port}") };
    asked.unwrap_or_else(|| match user_data::directory() {
        Some(directory) => directory.join(name),
        None => PathBuf::from("steersman.kubeconfig"),
    })
}

/// The cluster that a file leads to, or the one that kubectl would find.
pub(crate) async fn cluster(file: Option<&Path>) -> Result<kube::Config, String> {
    let Some(file) = file else {
        return kube::Config::infer().await.map_err(|error| error.to_string());
    };
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let kubeconfig = Kubeconfig::read_from(file).map_err(|error| told(&error))?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    config.map_err(|error| told(&error))
}

/// Writes the file, readable by its owner alone: there is a private key in it.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    let written = (|| {
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(path)?.write_all(text.as_bytes())
    })();
    written.map_err(|error: std::io::Error| {
        format!(
            "cannot write the kubeconfig to {}: {error}; choose another file with --kubeconfig",
            path.display()
        )
    })
}
