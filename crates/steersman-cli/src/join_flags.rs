//! How `steersman node` becomes a member of a cluster.

use std::path::{Path, PathBuf};

use clap::Args;
use steersman_cluster::join::{Authorities, BootstrapToken, Join, Membership, Trust};

/// What a machine is told about a cluster that it is to join. What kubeadm has too is called as there.
#[derive(Args)]
pub(crate) struct JoinFlags {
    /// Where the API server is, as https://HOST:PORT.
    #[arg(long, value_name = "URL", value_parser = url)]
    pub(crate) server: Option<String>,
    /// The bootstrap token with which a certificate is asked for: `steersman token create` makes one.
    /// It is needed once: the certificate is kept in --node-dir, and renewed before it ends.
    #[arg(long, value_name = "TOKEN", requires = "server", requires = "trust")]
    token: Option<BootstrapToken>,
    /// Who signed the certificate of the server, as a PEM file.
    #[arg(long, value_name = "FILE", group = "trust", requires = "token")]
    ca_cert: Option<PathBuf>,
    /// The hash of the key of who signed it; what else is to be known of the cluster, it tells itself.
    #[arg(long, value_name = "sha256:HEX", group = "trust", requires = "token", value_parser = hash)]
    discovery_token_ca_cert_hash: Vec<String>,
}

impl JoinFlags {
    /// Who this machine is: as it was before, or as it becomes by what it is told. Nobody, if it is
    /// told nothing and was nobody.
    pub(crate) async fn membership(
        &self,
        directory: &Path,
        node: &str,
    ) -> Result<Option<Membership>, String> {
        let failed = |error: steersman_cluster::join::JoinError| error.to_string();
        let kept = Membership::kept(directory, node, self.server.as_deref()).await;
        if let Some(kept) = kept.map_err(failed)? {
            return Ok(Some(kept));
        }
        let (Some(server), Some(token)) = (&self.server, &self.token) else {
            return match &self.server {
                Some(_) => Err(format!(
                    "there is no certificate for the node {node} in {}; it gets one with --token",
                    directory.display()
                )),
                None => Ok(None),
            };
        };
        let trust = match &self.ca_cert {
            Some(file) => Trust::Authorities(authorities(file)?),
            None => Trust::Hashes(self.discovery_token_ca_cert_hash.clone()),
        };
        let join = Join { server: server.clone(), token: token.clone(), trust };
        Membership::of(&join, directory, node).await.map(Some).map_err(failed)
    }
}

fn authorities(file: &Path) -> Result<Authorities, String> {
    let told = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    let pem = std::fs::read(file).map_err(|error| told(&error))?;
    Authorities::from_pem(&pem).map_err(|error| told(&error))
}

fn url(text: &str) -> Result<String, String> {
    let host = text.strip_prefix("https://").map(|rest| rest.trim_end_matches('/'));
    match host.filter(|host| !host.is_empty() && !host.contains('/')) {
        Some(host) => Ok(format!("https://{host}")),
        None => Err("it is not of the form https://HOST:PORT".to_owned()),
    }
}

fn hash(text: &str) -> Result<String, String> {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    match hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(text.to_owned()),
        false => Err("it is not sha256: and 64 hexadecimal digits".to_owned()),
    }
}
