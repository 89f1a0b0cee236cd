//! What becomes of objects, and of those of which nothing can become.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use super::script::{
    Answer, Reflection, Script, Then, config_maps, end_of_state, event, list, malformed, object,
    watch,
};
use crate::delta_queue::{self, Mode};
use crate::object::ObjectKey;
use crate::reflector::{
    Decode, DecodeError, Delta, Keyed, Options, Reflector, Selection, Undecodable,
};

/// What was heard of objects that cannot be decoded.
type Heard = Arc<Mutex<Vec<Undecodable>>>;

fn hearing(heard: &Heard) -> Options {
    let hear = Arc::clone(heard);
    Options {
        on_undecodable: Some(Arc::new(move |bad| hear.lock().unwrap().push(bad.clone()))),
        ..Options::default()
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_skipped_and_the_rest_goes_on() {
    let items = [object("a", "1"), malformed("bad", "2")];
    let first = json!({"metadata": {"resourceVersion": "5"}, "items": items});
    let events = [event("MODIFIED", &malformed("bad", "6")), event("ADDED", &object("b", "7"))];
    let script = Script::new([Answer::new(200, &first), watch(events, Then::Hang)]);
    let heard = Heard::default();
    let mut reflection = script.reflect(Options { streaming: false, ..hearing(&heard) });
    assert_eq!(reflection.told(3).await, ["=a,?bad@5", "#6", "~b"]);
    assert_eq!(reflection.status.counts().undecodable, 2);
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0].kind, "ConfigMap");
    assert_eq!(heard[0].key, Some("default/bad".into()));
    assert!(heard[0].error.contains("invalid type"), "{}", heard[0].error);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_deletion_deletes_by_its_key() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([event("DELETED", &malformed("a", "6"))], Then::End),
    ]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(2).await, ["=a@5", "-?a"]);
    assert!(script.asked_times(3).await[2].contains("resourceVersion=6"));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_that_does_not_say_of_what_leads_to_the_latest_state() {
    let nothing = json!({"type": "DELETED"}).to_string();
    for deletion in [event("DELETED", &json!(null)), event("DELETED", &json!({})), nothing] {
        let script =
            Script::new([list("5", &["a"], ""), watch([deletion], Then::Hang), list("6", &[], "")]);
        let mut reflection = script.list();
        assert_eq!(reflection.told(2).await, ["=a@5", "=@6"]);
        assert!(!script.asked()[2].contains("resourceVersion"), "{:?}", script.asked());
    }
}

/// What is kept of an object is up to the decoder.
struct Slim {
    name: String,
    version: String,
}

impl Keyed for Slim {
    fn key(&self) -> ObjectKey {
        ObjectKey::named(self.name.as_str())
    }

    fn resource_version(&self) -> Option<&str> {
        Some(&self.version)
    }
}

struct Slimming;

impl Decode for Slimming {
    type Output = Slim;

    fn decode(&mut self, json: &str) -> Result<Slim, DecodeError> {
        let object: Value = serde_json::from_str(json)?;
        let text = |field: &str| object["metadata"][field].as_str().ok_or("metadata is missing");
        Ok(Slim { name: text("name")?.into(), version: text("resourceVersion")?.into() })
    }
}

#[tokio::test(start_paused = true)]
async fn a_decoder_chooses_what_is_kept_of_an_object() {
    let (send, mut deltas) = delta_queue::channel(Mode::InOrder { capacity: 16 });
    let lines = [event("ADDED", &object("a", "3")), end_of_state("5"), event("ADDED", &json!({}))];
    let script = Script::new([watch(lines, Then::Hang)]);
    let selection = Selection::default();
    let reflector =
        Reflector::with_decoder(script.client(), config_maps(), selection, Slimming, send);
    let status = reflector.status();
    tokio::spawn(reflector.run());
    let first = deltas.pop_batch(1).await.pop();
    let Some(Delta::Replaced { objects, .. }) = first else { panic!("no state") };
    assert_eq!(objects[0].name, "a");
    assert!(matches!(deltas.pop_batch(1).await[0], Delta::Bookmark { version: Some(5) }));
    assert_eq!(status.counts().undecodable, 1);
}

/// Panics at the sight of a bomb, and finds objects named "late" to be wrong only if they change.
struct Touchy;

impl Decode for Touchy {
    type Output = ConfigMap;

    fn decode(&mut self, json: &str) -> Result<ConfigMap, DecodeError> {
        assert!(!json.contains("bomb"), "boom at {json}");
        Ok(serde_json::from_str(json)?)
    }

    fn decode_change(&mut self, json: &str) -> Result<ConfigMap, DecodeError> {
        if json.contains("late") {
            return Err("found out now".into());
        }
        self.decode(json)
    }
}

#[tokio::test(start_paused = true)]
async fn a_decoder_that_panics_costs_only_the_object() {
    let lines = [
        event("ADDED", &object("a", "3")),
        event("ADDED", &object("bomb", "4")),
        end_of_state("5"),
        event("MODIFIED", &object("bomb", "6")),
        event("DELETED", &object("bomb", "7")),
        event("ADDED", &object("b", "8")),
    ];
    let script = Script::new([watch(lines, Then::Hang)]);
    let heard = Heard::default();
    let mut reflection = Reflection::decoding(script.client(), hearing(&heard), Touchy);
    assert_eq!(reflection.told(4).await, ["=a,?bomb@5", "#6", "-?bomb", "~b"]);
    let heard = heard.lock().unwrap();
    assert_eq!(heard.len(), 3);
    assert!(heard.iter().all(|bad| bad.error.contains("boom at")), "{heard:?}");
    assert_eq!(heard[0].key, Some("default/bomb".into()));
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_panics_does_not_stop_the_rest() {
    let lines = [event("ADDED", &malformed("bad", "4")), end_of_state("5")];
    let script = Script::new([watch(lines, Then::Hang)]);
    let options =
        Options { on_undecodable: Some(Arc::new(|_| panic!("boom"))), ..Options::default() };
    assert_eq!(script.reflect(options).told(1).await, ["=?bad@5"]);
}

#[tokio::test(start_paused = true)]
async fn only_what_changes_while_it_is_watched_is_decoded_as_a_change() {
    let state = [event("ADDED", &object("late", "3")), event("MODIFIED", &object("late", "4"))];
    let changes = [
        event("ADDED", &object("later", "6")),
        event("MODIFIED", &object("late", "7")),
        event("DELETED", &object("late", "8")),
        event("ADDED", &object("b", "9")),
    ];
    let lines = state.into_iter().chain([end_of_state("5")]).chain(changes);
    let script = Script::new([watch(lines, Then::Hang)]);
    let heard = Heard::default();
    let mut reflection = Reflection::decoding(script.client(), hearing(&heard), Touchy);
    assert_eq!(reflection.told(5).await, ["=late@5", "#6", "#7", "-late", "~b"]);
    assert!(heard.lock().unwrap().iter().all(|bad| bad.error == "found out now"));

    let script = Script::new([list("5", &["late"], "")]);
    let options = Options { streaming: false, ..Options::default() };
    let mut reflection = Reflection::decoding(script.client(), options, Touchy);
    assert_eq!(reflection.told(1).await, ["=late@5"]);
}

#[tokio::test(start_paused = true)]
async fn a_field_of_a_wrong_type_does_not_hide_which_object_it_is() {
    let with = |name: &str, field: &str, value: Value| {
        let mut object = object(name, "6");
        object["metadata"][field] = value;
        object
    };
    let lines = [
        event("ADDED", &with("a", "resourceVersion", json!(3))),
        event("ADDED", &with("b", "namespace", json!({}))),
        end_of_state("5"),
        event("DELETED", &with("a", "resourceVersion", json!(9))),
        event("DELETED", &with("b", "namespace", json!(["x"]))),
        event("DELETED", &with("c", "labels", json!("none"))),
    ];
    let script = Script::new([watch(lines, Then::End)]);
    let mut reflection = script.stream();
    let first = reflection.deltas.pop_batch(1).await.pop();
    let Some(Delta::Replaced { mut skipped, .. }) = first else { panic!("no state") };
    skipped.sort();
    assert_eq!(skipped, [ObjectKey::named("b"), "default/a".into()]);
    assert_eq!(reflection.told(3).await, ["-?a", "-?b", "-?c"]);
    assert!(script.asked_times(2).await[1].contains("resourceVersion=9"), "{:?}", script.asked());
}

#[tokio::test(start_paused = true)]
async fn an_object_without_a_name_cannot_be_decoded() {
    let nameless = json!({"metadata": {"namespace": "default", "resourceVersion": "6"}});
    let lines = [
        event("ADDED", &object("a", "3")),
        event("ADDED", &nameless),
        end_of_state("5"),
        event("ADDED", &nameless),
    ];
    let script = Script::new([watch(lines, Then::Hang)]);
    let mut reflection = script.stream();
    assert_eq!(reflection.told(2).await, ["=a@5", "#6"]);
    assert_eq!(reflection.status.counts().undecodable, 2);

    let page = json!({"metadata": {"resourceVersion": "5"}, "items": [nameless]});
    let mut reflection = Script::new([Answer::new(200, &page)]).list();
    assert_eq!(reflection.told(1).await, ["=@5"]);
    assert_eq!(reflection.status.counts().undecodable, 1);
}
