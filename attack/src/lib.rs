//! What a hostile client, known or unknown, can send to the running program, and what it does then.
//!
//! The program is started as a user starts it, on the loopback interface with a directory of its
//! own, and looked at from outside: its memory as the system tells it, and an innocent client that
//! asks for little and asks steadily. Nothing here knows how the server works. Everything is
//! bounded in count and time. An attack is one function in a file of [`attacks`] and one line in
//! its list; the attacker is a process of its own at a low priority, since it is not the machine
//! that is to be found out.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the terminal is its interface")]

// The program and those who talk to it.
mod caller;
mod etcd;
mod machine;
mod program;

// An attack, and who suffers from it.
mod attacks;
mod field;
mod innocent;
mod ledger;
mod seen;
mod webhook;

// What is made of it.
mod command;
mod soak;
mod suite;
mod verdict;

use std::process::ExitCode;

/// Runs what the command line names.
pub fn attack() -> ExitCode {
    command::attack()
}

/// Lets everything happen at once, for as long as the command line says.
pub fn soak() -> ExitCode {
    command::soak()
}
