//! The server of a kubeconfig, reached over [`steersman_bench_wire`].

use std::path::Path;

use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
pub(super) use steersman_bench_wire::{Connection, Server};

/// The server of a kubeconfig.
pub(super) async fn server(kubeconfig: &Path) -> Result<Server, String> {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(|error| error.to_string())?;
    let token = token(&kubeconfig)?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let config = config.map_err(|error| error.to_string())?;
    let tls = config.rustls_client_config().map_err(|error| error.to_string())?;
    Server::new(&config.cluster_url.to_string(), tls, token.as_deref())
}

/// The token of the kubeconfig's user, if it is known by one.
fn token(kubeconfig: &Kubeconfig) -> Result<Option<String>, String> {
    let users = serde_json::to_value(&kubeconfig.auth_infos).map_err(|error| error.to_string())?;
    Ok(users[0]["user"]["token"].as_str().map(str::to_owned))
}
