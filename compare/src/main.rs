//! `cargo xtask compare`: where our API server answers otherwise than a real kube-apiserver.

use std::process::ExitCode;

fn main() -> ExitCode {
    steersman_compare::main()
}
