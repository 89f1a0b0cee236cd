//! A client of the server, made as a user makes one.

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};

/// A client that speaks HTTPS to the server of a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Result<kube::Client, String> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(|error| error.to_string())?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.map_err(|error| error.to_string())?;
    kube::Client::try_from(config).map_err(|error| error.to_string())
}
