//! The program `steersman-node`: what `steersman node` is, for machines that are nothing else.
//!
//! It has the same flags and does the same. A cluster is not in it, so it is a fraction as large, on
//! the disk and in memory: of a large program much is resident that merely lies beside what runs.
#![expect(clippy::print_stderr, reason = "a program talks to its user")]

#[macro_use]
#[path = "../say.rs"]
mod say;

#[path = "../allocator.rs"]
mod allocator;
#[path = "../join_flags.rs"]
mod join_flags;
#[allow(dead_code, reason = "the other program writes kubeconfigs too")]
#[path = "../kubeconfig.rs"]
mod kubeconfig;
#[allow(dead_code, reason = "the other program is a node beside something else too")]
#[path = "../node.rs"]
mod node;
#[path = "../node_flags.rs"]
mod node_flags;
#[allow(dead_code, reason = "the other program keeps clusters there")]
#[path = "../user_data.rs"]
mod user_data;

use std::process::ExitCode;

use clap::Parser;

use node_flags::NodeCommand;

/// Be a node of any cluster: run Pods in real containers on this machine.
///
/// Needs root, and a container runtime that speaks CRI, such as containerd. Pods run on when this
/// stops, and are found again when it starts. It acts as the user of a kubeconfig, or joins the cluster
/// with a bootstrap token.
#[derive(Parser)]
#[command(name = "steersman-node", version)]
struct CommandLine {
    #[command(flatten)]
    node: NodeCommand,
}

fn main() -> ExitCode {
    allocator::give_memory_back_at_once();
    let CommandLine { node } = CommandLine::parse();
    match node::run(node) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
