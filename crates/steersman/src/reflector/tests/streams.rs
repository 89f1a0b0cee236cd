//! Reading the state as a stream.

use std::time::Duration;

use tokio::time::Instant;

use super::script::{
    Answer, Script, Then, bookmark, end_of_state, event, expired, list, malformed, object,
    slow_watch, status, watch,
};
use crate::reflector::Phase;

fn added(name: &str, version: &str) -> String {
    event("ADDED", &object(name, version))
}

#[tokio::test(start_paused = true)]
async fn the_state_is_told_when_it_is_complete_and_the_same_stream_goes_on() {
    let lines = [added("a", "3"), added("b", "2"), end_of_state("5"), added("c", "6")];
    let script = Script::new([watch(lines, Then::Hang)]);
    let mut reflection = script.stream();
    assert_eq!(reflection.told(2).await, ["=a,b@5", "~c"]);
    let asked = script.asked();
    assert_eq!(asked.len(), 1);
    for wanted in [
        "watch=true",
        "sendInitialEvents=true",
        "resourceVersionMatch=NotOlderThan",
        "allowWatchBookmarks=true",
    ] {
        assert!(asked[0].contains(wanted), "{asked:?}");
    }
    assert!(asked[0].contains("resourceVersion=&") || asked[0].ends_with("resourceVersion="));
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_leaves_no_partial_state() {
    let script = Script::new([
        watch([added("a", "3"), added("b", "4")], Then::Reset),
        watch([added("b", "4"), end_of_state("5")], Then::Hang),
    ]);
    assert_eq!(script.stream().told(1).await, ["=b@5"]);
}

#[tokio::test(start_paused = true)]
async fn versions_of_initial_events_are_not_taken_for_progress() {
    let script = Script::new([
        watch([added("a", "300")], Then::Reset),
        watch([added("a", "300"), end_of_state("5")], Then::End),
    ]);
    let mut reflection = script.stream();
    assert_eq!(reflection.told(1).await, ["=a@5"]);
    let asked = script.asked_times(3).await;
    assert!(!asked[1].contains("300"), "{asked:?}");
    assert!(asked[2].contains("resourceVersion=5"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn what_changes_while_the_state_is_streamed_is_part_of_it() {
    let lines = [
        added("a", "1"),
        added("b", "2"),
        event("DELETED", &object("a", "3")),
        event("MODIFIED", &object("b", "4")),
        added("c", "5"),
        end_of_state("5"),
    ];
    let script = Script::new([watch(lines, Then::Hang)]);
    assert_eq!(script.stream().told(1).await, ["=b,c@5"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_listed_from_then_on() {
    for code in [400, 405, 422] {
        let script = Script::new([
            Answer::new(code, &status(code, "Invalid")),
            list("5", &["a"], ""),
            watch([event("ERROR", &expired())], Then::End),
            list("9", &["b"], ""),
        ]);
        let mut reflection = script.stream();
        assert_eq!(reflection.told(2).await, ["=a@5", "=b@9"]);
        let asked = script.asked();
        assert!(asked[1..].iter().all(|asked| !asked.contains("sendInitialEvents")), "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_wish_for_a_stream_is_listed() {
    let script = Script::new([watch([added("a", "3")], Then::Hang), list("5", &["a", "b"], "")]);
    let start = Instant::now();
    assert_eq!(script.stream().told(1).await, ["=a,b@5"]);
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_bookmark_before_the_end_of_the_state_shows_that_a_server_does_not_stream() {
    let lines = (3..100).map(|n| (5, if n == 4 { bookmark("4") } else { added("a", "3") }));
    let script = Script::new([
        slow_watch(lines),
        list("5", &["a", "b"], ""),
        watch([event("ERROR", &expired())], Then::End),
        list("9", &["c"], ""),
    ]);
    let start = Instant::now();
    let mut reflection = script.stream();
    assert_eq!(reflection.told(1).await, ["=a,b@5"]);
    assert_eq!(start.elapsed().as_secs(), 10);
    assert_eq!(reflection.told(1).await, ["=c@9"], "the server is not asked for streams again");
}

#[tokio::test(start_paused = true)]
async fn streams_that_always_expire_give_way_to_a_list() {
    let gone = || watch([event("ERROR", &expired())], Then::End);
    let script = Script::new([gone(), gone(), gone(), list("5", &["a"], "")]);
    assert_eq!(script.stream().told(1).await, ["=a@5"]);
    assert!(!script.asked()[3].contains("watch=true"), "{:?}", script.asked());
}

#[tokio::test(start_paused = true)]
async fn a_slow_state_that_expires_as_soon_as_it_is_told_is_not_read_again_without_pause() {
    let brief =
        |n: u64| slow_watch([(2, end_of_state(&n.to_string())), (0, event("ERROR", &expired()))]);
    let script = Script::new((5..50).map(brief));
    let start = Instant::now();
    script.stream().told(10).await;
    assert!(start.elapsed() > Duration::from_secs(60), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn who_may_not_watch_may_still_list() {
    let script = Script::new([Answer::new(403, &status(403, "Forbidden")), list("5", &["a"], "")]);
    assert_eq!(script.stream().told(1).await, ["=a@5"]);
}

#[tokio::test(start_paused = true)]
async fn streams_that_always_break_give_way_to_a_list() {
    let broken = || watch([added("a", "3")], Then::Reset);
    let script = Script::new([broken(), broken(), broken(), list("5", &["a"], "")]);
    assert_eq!(script.stream().told(1).await, ["=a@5"]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_leads_to_a_stream_that_is_not_older_and_then_to_the_latest_state() {
    let script = Script::new([
        watch([end_of_state("5"), added("a", "7"), event("ERROR", &expired())], Then::End),
        watch([event("ERROR", &expired())], Then::End),
        watch([added("b", "8"), end_of_state("9")], Then::Hang),
    ]);
    let mut reflection = script.stream();
    assert_eq!(reflection.told(3).await, ["=@5", "~a", "=b@9"]);
    let asked = script.asked();
    assert!(asked[1].contains("resourceVersion=7"), "{asked:?}");
    assert!(!asked[2].contains("resourceVersion=7"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stream_of_an_older_state_than_asked_for_is_not_told() {
    let script = Script::new([
        watch([end_of_state("49"), bookmark("50"), event("ERROR", &expired())], Then::End),
        watch([added("old", "8"), end_of_state("40")], Then::Hang),
        watch([added("b", "8"), end_of_state("60")], Then::Hang),
    ]);
    let mut reflection = script.stream();
    assert_eq!(reflection.told(3).await, ["=@49", "#50", "=b@60"]);
}

#[tokio::test(start_paused = true)]
async fn malformed_objects_of_the_state_are_named_and_stay() {
    let lines = [
        added("a", "1"),
        event("ADDED", &malformed("bad", "2")),
        event("ADDED", &malformed("gone", "3")),
        event("DELETED", &malformed("gone", "4")),
        end_of_state("5"),
    ];
    let script = Script::new([watch(lines, Then::Hang)]);
    assert_eq!(script.stream().told(1).await, ["=a,?bad@5"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_can_be_seen_until_it_becomes_a_watch() {
    let script = Script::new([watch([added("a", "1")], Then::Hang)]);
    let reflection = script.stream();
    reflection.status.reached(|phase| *phase == Phase::Streaming).await;
    reflection.status.reached(|phase| *phase == Phase::Listing).await;

    let script = Script::new([watch([end_of_state("5")], Then::Hang)]);
    let reflection = script.stream();
    reflection.status.reached(|phase| *phase == Phase::Watching).await;
    assert_eq!(reflection.status.counts().streams, 1);
}
