//! The rules of counted events, which are client-go's.

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use serde_json::json;

use super::*;

fn desk() -> Desk {
    Desk::writing(EventForm::Counted)
}

fn web() -> Reference {
    web_at("1")
}

/// The same object at a version.
fn web_at(version: &str) -> Reference {
    let mut map = ConfigMap::default();
    map.metadata.name = Some("web".into());
    map.metadata.namespace = Some("shop".into());
    map.metadata.resource_version = Some(version.into());
    Reference::of(&map)
}

/// What is due next, as it is sent.
fn next(desk: &mut Desk) -> Event {
    let write = desk.take().expect("something is due");
    let Document::Counted(event) = &*write.task.event else { panic!("{:?}", write.task) };
    let event = event.clone();
    desk.finish(write, Written::Done);
    event
}

#[test]
fn an_event_says_who_when_and_how_often_as_one_of_client_go_does() {
    let mut desk = desk();
    let event = NewEvent::normal("Killing").action("Stopping").note("n".repeat(2000));
    let kubelet = Reporter::new("kubelet").instance("node-1").form(EventForm::Counted);
    for version in ["3", "7"] {
        let told = event.clone().related(web());
        let regarding = web_at(version).part("spec.containers{main}");
        let identity = Identity::new(kubelet.clone(), regarding, told);
        desk.book.observe(identity, desk.now.clone()).unwrap();
        desk.wait(MINUTE);
    }
    let sent = next(&mut desk);
    let (first, last) =
        (sent.first_timestamp.clone().unwrap(), sent.last_timestamp.clone().unwrap());
    assert_eq!(last.0.duration_since(first.0).as_secs(), 60);
    let sent = serde_json::to_value(sent).unwrap();
    assert_eq!(sent["count"], 2);
    assert_eq!(sent["source"], json!({"component": "kubelet", "host": "node-1"}));
    assert_eq!(sent["reportingComponent"], "kubelet");
    assert_eq!(sent["reportingInstance"], "node-1");
    assert_eq!(sent["involvedObject"]["fieldPath"], "spec.containers{main}");
    assert_eq!(sent["involvedObject"]["resourceVersion"], "3", "that of the first");
    assert_eq!(sent["message"].as_str().map(str::len), Some(2000));
    for absent in ["eventTime", "action", "related", "series"] {
        assert_eq!(sent[absent], json!(null), "{absent}");
    }
}

#[test]
fn a_controller_of_the_whole_cluster_names_no_host() {
    let mut desk = desk();
    desk.say("up").unwrap();
    let sent = serde_json::to_value(next(&mut desk)).unwrap();
    assert_eq!(sent["source"], json!({"component": "test"}));
    assert_eq!(
        (&sent["reportingComponent"], &sent["reportingInstance"]),
        (&json!("test"), &json!(""))
    );
}

#[test]
fn every_occurrence_is_written_at_once_until_the_allowance_of_its_type_is_spent() {
    let mut desk = desk();
    for count in 1..=25 {
        desk.say("up").unwrap();
        let verb = if count == 1 { "create" } else { "update" };
        assert_eq!(desk.write_all(), [format!("{verb} up×{count}")]);
    }
    for _ in 0..10 {
        assert_eq!(desk.say("up"), Err(Loss::RateLimited));
        desk.wait(Duration::from_secs(1));
    }
    assert_eq!(desk.write_all(), Vec::<String>::new());
    assert_eq!(desk.book.next_due(), None, "nobody waits for it");
    let warning = NewEvent::warning("Because").note("down");
    let mut map = ConfigMap::default();
    map.metadata.name = Some("a".into());
    desk.say_that(Reference::of(&map).part("data"), warning).unwrap();
    assert_eq!(desk.write_all(), ["create down×1"], "warnings have an allowance of their own");
    desk.wait(5 * MINUTE);
    desk.say("up").unwrap();
    assert_eq!(desk.write_all(), ["update up×36"], "those that were held back are counted");
}

#[test]
fn a_first_occurrence_that_was_held_back_is_in_the_count_of_the_next() {
    let mut desk = desk();
    for n in 0..25 {
        desk.say_that(web(), NewEvent::normal(format!("Reason{n}"))).unwrap();
    }
    desk.write_all();
    let late = || NewEvent::normal("Late").note("late");
    assert_eq!(desk.say_that(web().part("data"), late()), Err(Loss::RateLimited));
    assert_eq!(desk.write_all(), Vec::<String>::new());
    desk.wait(5 * MINUTE);
    desk.say_that(web().part("data"), late()).unwrap();
    assert_eq!(desk.write_all(), ["create late×2"]);
}

#[test]
fn the_count_goes_on_after_any_silence_and_its_first_time_stays() {
    let mut desk = desk();
    desk.say("up").unwrap();
    let first = next(&mut desk);
    desk.wait(3 * 24 * 60 * MINUTE);
    assert_eq!(desk.write_all(), Vec::<String>::new());
    desk.say("up").unwrap();
    let again = next(&mut desk);
    assert_eq!(again.count, Some(2));
    assert_eq!(
        (again.metadata.name, again.first_timestamp),
        (first.metadata.name, first.first_timestamp)
    );
}

#[test]
fn the_tenth_note_is_combined_and_the_event_says_what_came_last() {
    let mut desk = desk();
    for n in 0..9 {
        desk.say(&format!("note {n}")).unwrap();
    }
    assert_eq!(desk.write_all().len(), 9);
    for (n, expected) in [
        (9, "create (combined from similar events): note 9×1"),
        (10, "update (combined from similar events): note 10×2"),
        (3, "update note 3×2"),
        (11, "update (combined from similar events): note 11×3"),
    ] {
        desk.say(&format!("note {n}")).unwrap();
        assert_eq!(desk.write_all(), [expected]);
    }
    desk.wait(10 * MINUTE + Duration::from_secs(1));
    desk.say("note 12").unwrap();
    assert_eq!(desk.write_all(), ["create note 12×1"], "after ten minutes they count anew");
}

#[test]
fn an_event_that_speaks_for_parts_of_an_object_has_only_a_source() {
    let mut desk = desk();
    for n in 0..9 {
        desk.say_that(web().part("data{a}"), NewEvent::normal("Set").note(n.to_string())).unwrap();
        desk.write_all();
    }
    desk.say_that(web().part("data{b}"), NewEvent::normal("Set").note("9")).unwrap();
    let sent = serde_json::to_value(next(&mut desk)).unwrap();
    assert_eq!(sent["message"], "(combined from similar events): 9");
    assert_eq!(sent["involvedObject"]["fieldPath"], "data{b}");
    assert_eq!(sent["source"], json!({"component": "test"}));
    assert_eq!((&sent["reportingComponent"], &sent["reportingInstance"]), (&json!(""), &json!("")));
}

#[test]
fn of_too_many_the_one_is_forgotten_that_was_silent_for_longest() {
    let mut desk = desk();
    for n in 0..4096 {
        desk.say_of(&format!("object-{n}"), "up").unwrap();
        desk.wait(Duration::from_millis(1));
    }
    desk.write_all();
    desk.say_of("object-0", "up").unwrap();
    assert_eq!(desk.write_all(), ["update up×2"]);
    desk.say_of("new", "up").unwrap();
    assert_eq!((desk.write_all(), desk.book.len()), (vec!["create up×1".to_owned()], 4096));
    desk.say_of("object-0", "up").unwrap();
    assert_eq!(desk.write_all(), ["update up×3"]);
    desk.say_of("object-1", "up").unwrap();
    assert_eq!(desk.write_all(), ["create up×1"]);
}
