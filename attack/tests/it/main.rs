//! The program that attacks, by its command line. That the tests build it is on purpose, too: the
//! short attacks at their end then need not build it, and all that it is made of, with fewer features.

use std::process::{Command, Output};

fn attack(argument: &str) -> Output {
    let program = env!("CARGO_BIN_EXE_steersman-attack");
    Command::new(program).arg(argument).output().expect("the attack starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn attacks_that_there_are_are_told_also_to_those_who_name_another() {
    let listed = attack("--list");
    assert!(listed.status.success());
    let listed = text(&listed.stdout);
    assert!(listed.lines().count() >= 30, "{listed}");

    let unknown = attack("flood");
    assert!(!unknown.status.success());
    let why = text(&unknown.stderr);
    assert!(why.contains("there is no attack `flood`"), "{why}");
    assert!(listed.lines().all(|name| why.contains(name)), "{why}");
}
