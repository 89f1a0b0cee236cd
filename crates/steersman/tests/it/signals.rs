//! How a program ends that is asked to stop, on real time and in a process of its own.

use std::pin::pin;
use std::process::Stdio;

use futures::FutureExt;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// What the program says when it can be asked to stop, and when it has been.
const LISTENS: &str = "listens";
const STOPS: &str = "stops";

#[tokio::test]
#[ignore = "the program that the test below asks to stop, which it never does by itself"]
async fn a_program_that_takes_its_time() {
    let mut asked = pin!(steersman::shutdown_signal());
    assert!(asked.as_mut().now_or_never().is_none());
    println!("{LISTENS}");
    asked.await;
    println!("{STOPS}");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn who_asks_a_program_twice_to_stop_does_not_wait() {
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "signals::a_program_that_takes_its_time", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(program.stdout.take().unwrap()).lines();
    for wanted in [LISTENS, STOPS] {
        // The first line begins with the name of the test.
        while !said.next_line().await.unwrap().expect("it runs on").ends_with(wanted) {}
        ask_to_stop(&program).await;
    }
    assert_eq!(program.wait().await.unwrap().code(), Some(1));
}

async fn ask_to_stop(program: &Child) {
    let id = program.id().expect("it runs").to_string();
    let asked = Command::new("kill").args(["-TERM", &id]).status().await;
    assert!(asked.unwrap().success());
}
