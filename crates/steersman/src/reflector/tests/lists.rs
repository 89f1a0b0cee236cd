//! Reading the state as a list.

use std::time::Duration;

use tokio::time::Instant;

use super::script::{Answer, Script, Then, bookmark, expired, list, raw_watch, status, watch};
use crate::reflector::Options;

#[tokio::test(start_paused = true)]
async fn it_lists_all_pages_and_watches_from_the_version_of_the_list() {
    let script = Script::new([list("5", &["a"], "token/=1"), list("5", &["b"], "")]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(1).await, ["=a,b@5"]);
    let asked = script.asked_times(3).await;
    assert!(asked[1].contains("continue=token%2F%3D1"), "{asked:?}");
    assert!(asked[2].contains("watch=true") && asked[2].contains("resourceVersion=5"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_list_is_the_latest_state_and_none_that_a_cache_remembers() {
    let script = Script::new([list("5", &["a"], "")]);
    let mut reflection = script.list();
    reflection.told(1).await;
    assert!(!script.asked()[0].contains("resourceVersion"), "{:?}", script.asked());
}

#[tokio::test(start_paused = true)]
async fn the_size_of_pages_can_be_chosen() {
    let script = Script::new([list("5", &["a"], "")]);
    script.reflect(Options { page_size: 7, streaming: false, ..Options::default() }).told(1).await;
    assert!(script.asked()[0].contains("limit=7"), "{:?}", script.asked());
}

#[tokio::test(start_paused = true)]
async fn an_expired_page_leads_to_one_list_without_pages() {
    let script = Script::new([
        list("5", &["a"], "next"),
        Answer::new(410, &expired()),
        list("8", &["a", "b"], ""),
    ]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(1).await, ["=a,b@8"]);
    let asked = script.asked();
    assert!(!asked[2].contains("limit") && !asked[2].contains("continue"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn pages_that_nobody_asked_for_are_read_as_well() {
    let script = Script::new([
        list("5", &["a"], "next"),
        Answer::new(410, &expired()),
        list("8", &["a"], "more"),
        list("8", &["b"], ""),
    ]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(1).await, ["=a,b@8"]);
    let asked = script.asked();
    assert!(!asked[3].contains("limit") && asked[3].contains("continue=more"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn pages_that_always_expire_are_not_asked_for_without_pause() {
    let expiring = || [list("5", &["a"], "next"), Answer::new(410, &expired())];
    let script = Script::new((0..10).flat_map(|_| expiring()).chain([list("9", &["b"], "")]));
    let start = Instant::now();
    assert_eq!(script.list().told(1).await, ["=b@9"]);
    assert!(start.elapsed() > Duration::from_secs(20), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_for_the_same_page_again() {
    let script = Script::new([
        list("5", &["a"], "next"),
        Answer::new(429, &status(429, "TooManyRequests")).retry_after(1),
        list("5", &["b"], ""),
    ]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(1).await, ["=a,b@5"]);
    assert!(script.asked()[2].contains("continue=next"), "{:?}", script.asked());
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_older_than_what_was_told_is_not_told() {
    let script = Script::new([
        list("49", &["a"], ""),
        watch([bookmark("50")], Then::End),
        Answer::new(410, &expired()),
        list("40", &["old"], ""),
        list("60", &["b"], ""),
    ]);
    assert_eq!(script.list().told(3).await, ["=a@49", "#50", "=b@60"]);
}

#[tokio::test(start_paused = true)]
async fn a_page_cut_in_the_middle_is_not_a_state() {
    let cut = r#"{"metadata": {"resourceVersion": "5"}, "items": [{"metadata"#.to_owned();
    let script = Script::new([raw_watch([cut], Then::End), list("6", &["a"], "")]);
    assert_eq!(script.list().told(1).await, ["=a@6"]);
}
