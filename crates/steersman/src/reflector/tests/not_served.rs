//! Kinds that a server does not know, any more or yet.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::script::{
    Answer, Script, Then, bookmark, end_of_state, event, list, object, status, watch,
};
use crate::reflector::Phase;

fn missing() -> Answer {
    Answer::new(404, &status(404, "NotFound"))
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_no_longer_served_is_told_as_empty_once_and_comes_back() {
    let script = Script::new(
        [list("5", &["a"], ""), watch([bookmark("6")], Then::End)]
            .into_iter()
            .chain((0..10).map(|_| missing()))
            .chain([list("9", &["b"], "")]),
    );
    let mut reflection = script.list();
    assert_eq!(reflection.told(3).await, ["=a@5", "#6", "=@0"]);
    assert!(matches!(reflection.status.phase(), Phase::NotServed { .. }));
    assert_eq!(reflection.told(1).await, ["=b@9"]);
}

/// A reflector that has seen `a`, then gets these answers, then a watch that adds `b`.
fn answered_by(answers: impl IntoIterator<Item = Answer>) -> Script {
    let added = watch([event("ADDED", &object("b", "6"))], Then::Hang);
    Script::new([list("5", &["a"], "")].into_iter().chain(answers).chain([added]))
}

#[tokio::test(start_paused = true)]
async fn four_looks_do_not_make_the_end_of_a_kind() {
    let script = answered_by((0..4).map(|_| missing()));
    let start = Instant::now();
    assert_eq!(script.list().told(2).await, ["=a@5", "~b"]);
    assert!(start.elapsed() >= Duration::from_secs(12), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn only_looks_in_a_row_make_the_end_of_a_kind() {
    let failed = || Answer::new(500, &status(500, "InternalError"));
    let mixed = || [missing(), missing(), missing(), missing(), failed()];
    let script = answered_by(mixed().into_iter().chain(mixed()));
    assert_eq!(script.list().told(2).await, ["=a@5", "~b"]);
}

#[tokio::test(start_paused = true)]
async fn a_group_that_the_server_does_not_know_is_not_served_either() {
    let script = answered_by((0..5).map(|_| Answer::text(404, "404 page not found\n")));
    assert_eq!(script.list().told(2).await, ["=a@5", "=@0"]);
}

#[tokio::test(start_paused = true)]
async fn a_404_that_does_not_speak_of_the_kind_is_only_a_failure() {
    let mut of_an_object = status(404, "NotFound");
    of_an_object["details"] = json!({"name": "a", "kind": "configmaps"});
    let others: [fn(&serde_json::Value) -> Answer; 4] = [
        |of_an_object| Answer::new(404, of_an_object),
        |_| Answer::new(404, &json!({"message": "no route"})),
        |_| Answer::text(404, "<html>404 page not found</html>"),
        |_| Answer::text(404, ""),
    ];
    for other in others {
        let script = answered_by((0..8).map(|_| other(&of_an_object)));
        let mut reflection = script.list();
        assert_eq!(reflection.told(1).await, ["=a@5"]);
        reflection.status.reached(|phase| matches!(phase, Phase::BackingOff { .. })).await;
        assert_eq!(reflection.told(1).await, ["~b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_yet_is_awaited_without_being_told_as_empty() {
    let answers = (0..20).map(|_| missing()).chain([watch([end_of_state("3")], Then::Hang)]);
    let script = Script::new(answers);
    let start = Instant::now();
    assert_eq!(script.stream().told(1).await, ["=@3"]);
    assert!(start.elapsed() < Duration::from_secs(20 * 45), "{:?}", start.elapsed());
}
