//! A client of the server, made as a user makes one.

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};

/// A client that speaks HTTPS to the server of a kubeconfig.
pub(crate) async fn client(kubeconfig: &Path) -> Result<kube::Client, String> {
    connect(Kubeconfig::read_from(kubeconfig).map_err(|error| error.to_string())?).await
}

/// The same for a kubeconfig that is not in a file.
pub(crate) async fn client_of(kubeconfig: &str) -> Result<kube::Client, String> {
    connect(Kubeconfig::from_yaml(kubeconfig).map_err(|error| error.to_string())?).await
}

async fn connect(kubeconfig: Kubeconfig) -> Result<kube::Client, String> {
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.map_err(|error| error.to_string())?;
    kube::Client::try_from(config).map_err(|error| error.to_string())
}
