//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// A Kubernetes-compatible cluster in one process, for people who write and test controllers.
#[derive(Parser)]
#[command(name = "steersman", version, subcommand_required = true, arg_required_else_help = true)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a cluster and serve it until Ctrl-C.
    Up(Up),
}

/// What `steersman up` is told.
#[derive(Args)]
pub(crate) struct Up {
    /// Where to serve the API, over HTTPS; port 0 takes any free port.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:6443")]
    pub(crate) listen: SocketAddr,
    /// Where to write the kubeconfig [default: the user's data directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// How many simulated nodes the cluster has.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(0..=250))]
    pub(crate) nodes: u16,
    /// Keep everything in memory only. So far there is no other store, so this is also what
    /// happens without it.
    #[arg(long)]
    pub(crate) memory: bool,
    /// How many seconds of history watches and paged lists can go back to.
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) history: u64,
    /// Run the AppService controller and show an AppService becoming running Pods.
    #[arg(long)]
    pub(crate) demo: bool,
}

/// Reads the command line. Help and version are printed here and end the program.
pub(crate) fn parse() -> Result<Up, String> {
    match CommandLine::try_parse() {
        Ok(CommandLine { command: Command::Up(up) }) => Ok(up),
        Err(error) if error.use_stderr() && std::env::args().len() > 1 => Err(one_line(&error)),
        Err(error) => error.exit(),
    }
}

/// The first line of what clap has to say, and where to read more.
fn one_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    let first = first.strip_prefix("error: ").unwrap_or(first);
    format!("{first}; see `steersman --help`")
}
