//! What a reflector shows of itself.

use std::time::Duration;

use tokio::time::Instant;

use super::script::{
    Answer, Script, Then, bookmark, event, expired, list, object, slow_watch, status, watch,
};
use crate::random;
use crate::reflector::Phase;

#[tokio::test(start_paused = true)]
async fn a_failing_server_is_shown_with_its_error_and_since_when() {
    let failed = || Answer::new(500, &status(500, "InternalError"));
    let script = Script::new((0..5).map(|_| failed()).chain([list("5", &["a"], "")]));
    let start = Instant::now();
    let mut reflection = script.list();
    script.asked_times(4).await;
    let failing = |phase: &Phase| matches!(phase, Phase::BackingOff { .. });
    let Phase::BackingOff { error, since } = reflection.status.reached(failing).await else {
        panic!("not backing off");
    };
    assert_eq!(&*error, "the server says InternalError");
    assert_eq!(since, start);
    reflection.told(1).await;
    reflection.status.reached(|phase| *phase == Phase::Watching).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_shown_as_stalled_until_something_is_heard() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([], Then::Hang),
        watch([bookmark("7")], Then::Hang),
    ]);
    let start = Instant::now();
    let reflection = script.list();
    reflection.status.reached(|phase| *phase == Phase::Stalled).await;
    assert_eq!(start.elapsed().as_secs(), 180);
    assert_eq!(script.asked().len(), 2, "without bookmarks silence is no reason to watch anew");
    reflection.status.reached(|phase| *phase == Phase::Watching).await;
    assert!(reflection.status.silent_for().unwrap() < Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_for_too_long_is_taken_for_dead() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([], Then::Hang),
        watch([event("ADDED", &object("b", "7"))], Then::Hang),
    ]);
    let start = Instant::now();
    assert_eq!(script.list().told(2).await, ["=a@5", "~b"]);
    assert!(start.elapsed() < Duration::from_secs(640), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_used_to_send_bookmarks_is_watched_anew_when_it_falls_silent() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([bookmark("6")], Then::Hang),
        watch([event("ADDED", &object("b", "7"))], Then::Hang),
    ]);
    let start = Instant::now();
    let mut reflection = script.list();
    assert_eq!(reflection.told(3).await, ["=a@5", "#6", "~b"]);
    assert_eq!(start.elapsed().as_secs(), 180);
    assert!(script.asked()[2].contains("resourceVersion=6"));
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_nothing_in_between_may_be_silent_for_hours() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([bookmark("6")], Then::End),
        slow_watch([(40_000, event("ADDED", &object("b", "7")))]),
    ]);
    let script = script.direct();
    let mut reflection = script.list();
    assert_eq!(reflection.told(2).await, ["=a@5", "#6"]);
    let silence = Duration::from_secs(40_000);
    let _ = tokio::time::timeout(silence, std::future::pending::<()>()).await;
    assert_eq!(reflection.told(1).await, ["~b"]);
    reflection.status.reached(|phase| *phase == Phase::Watching).await;
    let asked = script.asked();
    assert_eq!(asked.len(), 3, "silence was no reason to watch anew");
    let seconds = |uri: &str| -> u64 {
        let timeout = uri.split(['?', '&']).find_map(|it| it.strip_prefix("timeoutSeconds="));
        timeout.unwrap().parse().unwrap()
    };
    assert!(seconds(&asked[1]) <= 600, "nothing is known yet");
    assert!(seconds(&asked[2]) >= 12 * 3600);
}

#[tokio::test(start_paused = true)]
async fn a_silence_is_shown_until_something_is_heard_even_if_another_watch_begins() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([bookmark("6")], Then::Hang),
        slow_watch([(100, bookmark("7"))]),
    ]);
    let start = Instant::now();
    let reflection = script.list();
    script.asked_times(3).await;
    assert_eq!(start.elapsed().as_secs(), 180);
    let watching = reflection.status.reached(|phase| *phase == Phase::Watching);
    watching.await;
    assert_eq!(start.elapsed().as_secs(), 280);
}

#[tokio::test(start_paused = true)]
async fn every_silence_of_a_watch_is_shown() {
    let long = |seed: &u64| {
        random::seed(*seed);
        random::jitter(Duration::from_secs(300), 1.0) > Duration::from_secs(500)
    };
    random::seed((0..).find(long).unwrap());
    let added = event("ADDED", &object("b", "7"));
    let script = Script::new([list("5", &["a"], ""), slow_watch([(200, added)])]);
    let start = Instant::now();
    let reflection = script.list();
    reflection.status.reached(|phase| *phase == Phase::Stalled).await;
    reflection.status.reached(|phase| *phase == Phase::Watching).await;
    assert_eq!(start.elapsed().as_secs(), 200);
    reflection.status.reached(|phase| *phase == Phase::Stalled).await;
    assert_eq!(start.elapsed().as_secs(), 380);
    assert_eq!(script.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn two_silent_watches_of_a_server_that_sends_bookmarks_lead_to_the_latest_state() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([bookmark("6")], Then::Hang),
        watch([], Then::Hang),
        list("9", &["b"], ""),
    ]);
    let start = Instant::now();
    let mut reflection = script.list();
    assert_eq!(reflection.told(3).await, ["=a@5", "#6", "=b@9"]);
    assert_eq!(start.elapsed().as_secs(), 360);
    assert!(!script.asked()[3].contains("resourceVersion"), "{:?}", script.asked());
    reflection.status.reached(|phase| *phase == Phase::Watching).await;
}

#[tokio::test(start_paused = true)]
async fn it_counts_what_it_does() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([event("ADDED", &object("b", "7")), event("ERROR", &expired())], Then::End),
        list("20", &["c"], ""),
    ]);
    let mut reflection = script.list();
    reflection.told(3).await;
    script.asked_times(4).await;
    let counts = reflection.status.counts();
    assert_eq!((counts.lists, counts.watches, counts.relists, counts.events), (2, 2, 1, 2));
}
