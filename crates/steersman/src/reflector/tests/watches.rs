//! Following the changes.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::script::{
    Answer, Script, Then, bookmark, event, expired, list, object, raw_watch, status, too_large,
    watch,
};

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_resumed_from_the_last_version_seen() {
    let first = [event("ADDED", &object("b", "7")), bookmark("9")];
    let script = Script::new([list("5", &["a"], ""), watch(first, Then::End)]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(3).await, ["=a@5", "~b", "#9"]);
    let asked = script.asked_times(3).await;
    assert!(asked[2].contains("resourceVersion=9"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_version_never_goes_back_within_a_watch() {
    let events = [event("ADDED", &object("b", "9")), event("DELETED", &object("a", "7"))];
    let script = Script::new([list("5", &["a"], ""), watch(events, Then::Reset)]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(3).await, ["=a@5", "~b", "-a"]);
    assert!(script.asked_times(3).await[2].contains("resourceVersion=9"));
}

#[tokio::test(start_paused = true)]
async fn versions_that_are_no_numbers_are_used_as_they_come() {
    let events = [event("ADDED", &object("b", "blue")), bookmark("green")];
    let script = Script::new([list("red", &["a"], ""), watch(events, Then::End)]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(3).await, ["=a@0", "~b", "#0"]);
    assert!(script.asked_times(3).await[2].contains("resourceVersion=green"));
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_in_the_stream_leads_to_a_list_that_is_not_older() {
    for reason in ["Expired", "Gone"] {
        let gone = event("ERROR", &json!({"kind": "Status", "reason": reason}));
        let script = Script::new([
            list("5", &["a"], ""),
            watch([event("ADDED", &object("b", "7")), gone], Then::Hang),
            list("20", &["c"], ""),
        ]);
        let mut reflection = script.list();
        assert_eq!(reflection.told(3).await, ["=a@5", "~b", "=c@20"]);
        let asked = script.asked();
        let relist = &asked[2];
        assert!(
            relist.contains("resourceVersion=7") && relist.contains("NotOlderThan"),
            "{relist}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_as_http_status_leads_to_a_list_as_well() {
    let script =
        Script::new([list("5", &["a"], ""), Answer::new(410, &expired()), list("20", &["b"], "")]);
    assert_eq!(script.list().told(2).await, ["=a@5", "=b@20"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_the_server_refuses_is_not_asked_for_again() {
    for code in [400, 403, 422] {
        for refusal in [
            Answer::new(code, &status(code, "Refused")),
            watch([event("ERROR", &status(code, "Refused"))], Then::Hang),
        ] {
            let script = Script::new([
                list("5", &["a"], ""),
                watch([bookmark("6")], Then::End),
                refusal,
                list("9", &["b"], ""),
            ]);
            assert_eq!(script.list().told(3).await, ["=a@5", "#6", "=b@9"]);
            let relist = &script.asked()[3];
            assert!(relist.contains("resourceVersion=6"), "{relist}");
            assert!(relist.contains("NotOlderThan"), "{relist}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_may_list_and_not_watch_lists_now_and_then() {
    let answers = (5..50)
        .flat_map(|n| [list(&n.to_string(), &["a"], ""), Answer::new(403, &status(403, "No"))]);
    let script = Script::new(answers);
    let start = Instant::now();
    script.list().told(10).await;
    assert!(start.elapsed() > Duration::from_secs(60), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_state_that_is_too_old_as_soon_as_it_is_read_leads_to_the_latest_one() {
    let stale = || [list("5", &["a"], ""), Answer::new(410, &expired())];
    let script = Script::new(stale().into_iter().chain(stale()).chain(stale()));
    let mut reflection = script.list();
    reflection.told(3).await;
    let asked = script.asked_times(5).await;
    assert!(!asked[2].contains("resourceVersion") && !asked[4].contains("resourceVersion"));
}

#[tokio::test(start_paused = true)]
async fn a_version_that_the_server_does_not_know_yet_leads_to_its_latest_state() {
    let script = Script::new([
        list("5", &["a"], ""),
        Answer::new(504, &too_large()),
        Answer::new(504, &too_large()),
        list("2", &["b"], ""),
    ]);
    assert_eq!(script.list().told(2).await, ["=a@5", "=b@2"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_cut_in_the_middle_of_an_event_is_resumed_before_it() {
    let whole = event("ADDED", &object("b", "7"));
    let cut = whole[..whole.len() / 2].to_owned();
    let script = Script::new([
        list("5", &["a"], ""),
        raw_watch([cut], Then::End),
        watch([whole], Then::Hang),
    ]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(2).await, ["=a@5", "~b"]);
    assert!(script.asked()[2].contains("resourceVersion=5"));
}

#[tokio::test(start_paused = true)]
async fn events_may_arrive_in_pieces_or_several_at_once() {
    let text: String = ["b", "c", "d"]
        .iter()
        .zip(["7", "8", "9"])
        .map(|(name, version)| event("ADDED", &object(name, version)) + "\n\n")
        .collect();
    for size in [1, 3, 50, 1000] {
        let pieces: Vec<String> =
            text.as_bytes().chunks(size).map(|c| String::from_utf8(c.to_vec()).unwrap()).collect();
        let script = Script::new([list("5", &["a"], ""), raw_watch(pieces, Then::Hang)]);
        assert_eq!(script.list().told(4).await, ["=a@5", "~b", "~c", "~d"]);
    }
}

#[tokio::test(start_paused = true)]
async fn events_may_be_written_in_any_form() {
    let [b, c, d, e] = [("b", "7"), ("c", "8"), ("d", "9"), ("e", "10")].map(|(name, version)| {
        let object = object(name, version);
        object.to_string()
    });
    let lines = [
        format!(r#"{{"object":{b},"type":"ADDED"}}"#),
        format!(r#"{{"type":"MODIFIED","object":{c},"more":{{}}}}"#),
        format!(r#" {{ "type" : "ADDED", "object" : {d} }} "#),
        format!(r#"{{"type":"ADDED","object":{e}}} "#),
    ];
    let script = Script::new([list("5", &["a"], ""), watch(lines, Then::Hang)]);
    assert_eq!(script.list().told(5).await, ["=a@5", "~b", "~c", "~d", "~e"]);
}

#[tokio::test(start_paused = true)]
async fn an_event_with_a_broken_object_is_asked_for_again_and_not_skipped() {
    let whole = event("ADDED", &object("b", "7"));
    let broken = whole.replace("\"b\"", "\"b\" \"c\"");
    let script = Script::new([
        list("5", &["a"], ""),
        watch([broken], Then::Hang),
        watch([whole], Then::Hang),
    ]);
    assert_eq!(script.list().told(2).await, ["=a@5", "~b"]);
    assert!(script.asked()[2].contains("resourceVersion=5"));
}

#[tokio::test(start_paused = true)]
async fn an_event_that_can_never_be_read_leads_to_a_new_list_in_the_end() {
    let broken = || watch(["{\"type\": \"ADDED\", \"object\": ".to_owned()], Then::Hang);
    let script =
        Script::new([list("5", &["a"], ""), broken(), broken(), broken(), list("9", &["b"], "")]);
    assert_eq!(script.list().told(2).await, ["=a@5", "=b@9"]);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_leaves_the_selection_is_told_as_deleted() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([event("DELETED", &object("a", "8"))], Then::Hang),
    ]);
    assert_eq!(script.list().told(2).await, ["=a@5", "-a"]);
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_not_asked_for_without_pause() {
    let brief = |n: u32| watch([bookmark(&n.to_string())], Then::End);
    let script = Script::new(std::iter::once(list("5", &["a"], "")).chain((6..100).map(brief)));
    let start = Instant::now();
    let mut reflection = script.list();
    reflection.told(10).await;
    assert!(start.elapsed() > Duration::from_secs(30), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_forgets_at_once_is_not_listed_without_pause() {
    let answers = (5..100).flat_map(|n| {
        [list(&n.to_string(), &["a"], ""), watch([event("ERROR", &expired())], Then::End)]
    });
    let script = Script::new(answers);
    let start = Instant::now();
    script.list().told(10).await;
    assert!(start.elapsed() > Duration::from_secs(30), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn watches_last_differently_long() {
    let mut timeouts = std::collections::HashSet::new();
    for _ in 0..10 {
        let script = Script::new([list("5", &["a"], "")]);
        let mut reflection = script.list();
        reflection.told(1).await;
        let asked = script.asked_times(2).await.remove(1);
        let timeout = asked.split("timeoutSeconds=").nth(1).unwrap().split('&').next().unwrap();
        assert!((300..=600).contains(&timeout.parse::<u32>().unwrap()), "{timeout}");
        timeouts.insert(timeout.to_owned());
    }
    assert!(timeouts.len() > 1, "{timeouts:?}");
}
