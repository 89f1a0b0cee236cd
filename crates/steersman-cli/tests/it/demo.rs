//! `steersman up --demo` tells the whole story.

use crate::program::Program;

#[test]
fn the_demo_shows_each_object_each_reason_and_a_summary() {
    let program = Program::up(&["--demo"]);
    assert_shown(&program.read_until("reconciles."));
}

#[test]
fn the_demo_can_be_seen_again_on_the_same_cluster() {
    let mut program = Program::up_on_disk(&["--demo"]);
    assert_shown(&program.read_until("reconciles."));
    program.stop();
    program.start_again();
    let shown = program.read_until("reconciles.");
    assert!(shown.contains("The shop of an earlier demo goes first."), "{shown}");
    assert_shown(&shown);
}

fn assert_shown(shown: &str) {
    for part in [
        "created   AppService default/shop",
        "created   Deployment default/shop",
        "created   ReplicaSet default/shop-",
        "created   Pod default/shop-",
        "because AppService default/shop ",
        "3 of 3 replicas available: 1 AppService, 1 Deployment, 1 ReplicaSet, 3 Pods",
    ] {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
}
