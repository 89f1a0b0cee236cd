//! The chores of this repository, as `cargo xtask COMMAND`; one file per command.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the terminal is its interface")]

mod attack;
mod bench;
mod clients;
mod compare;
mod conformance;
mod containerd;
mod debian;
mod etcd;
mod fuzz;
mod help;
mod package;
mod process;
mod schemas;
mod soak;
mod test;
mod tidy;
mod upstream;

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_else(|| "help".to_owned());
    let rest: Vec<String> = arguments.collect();
    let outcome = match command.as_str() {
        "test" => test::run(&rest),
        "conformance" => conformance::run(&rest),
        "upstream" => upstream::run(&rest),
        "soak" => soak::run(&rest),
        "attack" => attack::run(&rest),
        "fuzz" => fuzz::run(&rest),
        "bench" => bench::run(&rest),
        "compare" => compare::run(&rest),
        "compare-scheduler" => compare::scheduler(&rest),
        "compare-controllers" => compare::controllers(&rest),
        "tidy" => tidy::run(&rest),
        "circles" => tidy::circles(),
        "package" => package::run(&rest),
        "schemas" => schemas::generate(),
        "help" | "--help" | "-h" => help::run(),
        unknown => Err(format!("there is no command `{unknown}`; try `cargo xtask help`")),
    };
    process::exit_code(outcome)
}
