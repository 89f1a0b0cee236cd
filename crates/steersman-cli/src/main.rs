//! The program `steersman`.
#![expect(clippy::print_stderr, reason = "a program talks to its user")]

#[macro_use]
mod say;

mod allocator;
mod arguments;
mod audit;
mod authentication;
mod authentication_flags;
mod beside;
mod controller_flags;
mod demo;
mod failure;
mod files;
mod join_flags;
mod kubeconfig;
mod load;
mod node;
mod node_flags;
mod scheduler;
mod snapshot;
mod storage;
mod token;
mod up;
mod user_data;

use std::process::ExitCode;

use arguments::Command;

fn main() -> ExitCode {
    allocator::give_memory_back_at_once();
    let done = arguments::parse().and_then(|command| match command {
        Command::Up(up) => up::run(*up),
        Command::Snapshot(snapshot) => snapshot::run(snapshot),
        Command::Load(load) => load::run(&load),
        Command::Scheduler(scheduler) => scheduler::run(&scheduler),
        Command::Node(node) => node::run(*node),
        Command::Token(token) => token::run(token),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
