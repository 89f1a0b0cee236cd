//! `steersman token`: lets machines join a cluster.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use steersman::Client;
use steersman_cluster::join::{Authorities, BootstrapToken, Invitation};

use crate::controller_flags::duration;
use crate::failure::told;
use crate::kubeconfig;

/// What `steersman token` is told.
#[derive(Args)]
pub(crate) struct TokenCommand {
    #[command(subcommand)]
    action: TokenAction,
}

#[derive(Subcommand)]
enum TokenAction {
    /// Create a bootstrap token, by which machines can join as nodes, and print it.
    ///
    /// What a cluster needs beside it is written too unless it is there, as by
    /// `kubeadm init phase bootstrap-token`: the ConfigMap kube-public/cluster-info, and the rights
    /// of those who join.
    Create(Create),
}

#[derive(Args)]
struct Create {
    /// The token, such as abcdef.0123456789abcdef [default: one that nobody can guess].
    token: Option<BootstrapToken>,
    /// Which cluster, as its administrator [default: as kubectl finds it].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// For how long it counts; 0 is for ever.
    #[arg(long, value_name = "DURATION", default_value = "24h0m0s", value_parser = duration)]
    ttl: Duration,
    /// What it is for.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// How machines reach the API server [default: as the kubeconfig does].
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// Print the whole command that makes a machine a node, instead of the token alone.
    #[arg(long)]
    print_join_command: bool,
}

pub(crate) fn run(command: TokenCommand) -> Result<(), String> {
    let TokenAction::Create(create) = command.action;
    let runtime = tokio::runtime::Runtime::new().map_err(|error| told(&error))?;
    runtime.block_on(invite(create))
}

async fn invite(create: Create) -> Result<(), String> {
    let config = kubeconfig::cluster(create.kubeconfig.as_deref()).await?;
    let url = config.cluster_url.to_string();
    let server = create.server.unwrap_or_else(|| url.trim_end_matches('/').to_owned());
    let authorities = Authorities::from_der(config.root_cert.clone().unwrap_or_default());
    let authorities = authorities
        .map_err(|_| "the kubeconfig does not say who signs for the server".to_owned())?;
    let client = kube::Client::try_from(config).map_err(|error| told(&error))?;
    let invitation = Invitation {
        token: create.token.unwrap_or_else(BootstrapToken::random),
        ttl: (!create.ttl.is_zero()).then_some(create.ttl),
        description: create.description,
        server,
        authorities,
    };
    let client = Client::new(client, "steersman");
    let invited = invitation.write(&client).await.map_err(|error| error.to_string())?;
    match create.print_join_command {
        true => say!("{}", invited.command),
        false => say!("{}", invitation.token),
    }
    Ok(())
}
