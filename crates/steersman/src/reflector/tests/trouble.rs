//! What goes wrong, and how it goes on.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::script::{
    Answer, AnswerBody, Reflection, Script, Then, bookmark, describe, end_of_state, event, list,
    malformed, object, status, watch,
};
use crate::delta_queue::{self, Mode};
use crate::object::ObjectKey;
use crate::reflector::{
    Decode, DecodeError, Delta, Keyed, Options, Phase, Reflector, Selection, Undecodable,
};

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_skipped_and_the_rest_goes_on() {
    let items = [object("a", "1"), malformed("bad", "2")];
    let first = json!({"metadata": {"resourceVersion": "5"}, "items": items});
    let events = [event("MODIFIED", &malformed("bad", "6")), event("ADDED", &object("b", "7"))];
    let script = Script::new([Answer::new(200, &first), watch(events, Then::Hang)]);
    let heard: Arc<Mutex<Vec<Undecodable>>> = Arc::default();
    let hear = Arc::clone(&heard);
    let mut reflection = script.reflect(Options {
        streaming: false,
        on_undecodable: Some(Arc::new(move |bad| hear.lock().unwrap().push(bad.clone()))),
        ..Options::default()
    });
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

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_growing_pauses() {
    let failed = || Answer::new(500, &status(500, "InternalError"));
    let script = Script::new([failed(), failed(), failed(), list("5", &["a"], "")]);
    let start = Instant::now();
    assert_eq!(script.list().told(1).await, ["=a@5"]);
    let waited = start.elapsed();
    assert!(waited > Duration::from_secs(5) && waited < Duration::from_secs(10), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_names_a_delay_is_left_alone_for_it() {
    let busy = Answer::new(429, &status(429, "TooManyRequests")).retry_after(20);
    let script = Script::new([list("5", &["a"], ""), busy, watch([bookmark("6")], Then::Hang)]);
    let start = Instant::now();
    let mut reflection = script.list();
    assert_eq!(reflection.told(2).await, ["=a@5", "#6"]);
    assert!(start.elapsed() >= Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(script.asked()[2].contains("resourceVersion=5"), "{:?}", script.asked());
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_never_answers_is_given_up() {
    let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<AnswerBody>, tower::BoxError>>()
    });
    let reflection = Reflection::start(kube::Client::new(silent, "default"), Options::default());
    let failing = |phase: &Phase| matches!(phase, Phase::BackingOff { .. });
    let start = Instant::now();
    let phase = reflection.status.reached(failing).await;
    assert!(matches!(phase, Phase::BackingOff { error, .. } if &*error == "no answer"));
    assert!(start.elapsed() < Duration::from_secs(70));
}

/// kube's own client repeats requests that are answered 504, as an unknown version is.
#[tokio::test(start_paused = true)]
async fn an_unknown_version_that_the_client_hides_by_repeating_is_given_up() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([bookmark("6")], Then::End),
        Answer::never(),
        Answer::never(),
        list("2", &["b"], ""),
    ]);
    let mut reflection = script.list();
    assert_eq!(reflection.told(3).await, ["=a@5", "#6", "=b@2"]);
    let asked = script.asked();
    assert!(asked[3].contains("resourceVersion=6"), "{asked:?}");
    assert!(!asked[4].contains("resourceVersion"), "{asked:?}");
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

    fn decode(&mut self, raw: &RawValue) -> Result<Slim, DecodeError> {
        let object: Value = serde_json::from_str(raw.get())?;
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
        Reflector::with_decoder::<ConfigMap>(script.client(), &(), selection, Slimming, send);
    let status = reflector.status();
    tokio::spawn(reflector.run());
    let first = deltas.pop_batch(1).await.pop();
    let Some(Delta::Replaced { objects, .. }) = first else { panic!("no state") };
    assert_eq!(objects[0].name, "a");
    assert!(matches!(deltas.pop_batch(1).await[0], Delta::Bookmark { version: Some(5) }));
    assert_eq!(status.counts().undecodable, 1);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_no_longer_served_is_told_as_empty_once_and_comes_back() {
    let missing = || Answer::new(404, &status(404, "NotFound"));
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

#[tokio::test(start_paused = true)]
async fn one_404_is_not_taken_for_the_end_of_a_kind() {
    let script = Script::new([
        list("5", &["a"], ""),
        Answer::new(404, &status(404, "NotFound")),
        watch([event("ADDED", &object("b", "6"))], Then::Hang),
    ]);
    assert_eq!(script.list().told(2).await, ["=a@5", "~b"]);
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_not_served_yet_is_awaited_without_being_told_as_empty() {
    let missing = || Answer::new(404, &status(404, "NotFound"));
    let answers = (0..20).map(|_| missing()).chain([watch([end_of_state("3")], Then::Hang)]);
    let script = Script::new(answers);
    let start = Instant::now();
    assert_eq!(script.stream().told(1).await, ["=@3"]);
    assert!(start.elapsed() < Duration::from_secs(20 * 45), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_nobody_listens() {
    let script = Script::new([list("5", &["a"], "")]);
    let (send, deltas) = delta_queue::channel(Mode::InOrder { capacity: 16 });
    let reflector: Reflector<_> = Reflector::<crate::reflector::Typed<ConfigMap>>::new(
        script.client(),
        &(),
        Selection::default(),
        send,
    );
    let status = reflector.status();
    let task = tokio::spawn(reflector.run());
    drop(deltas);
    task.await.unwrap();
    assert_eq!(status.phase(), Phase::Ended);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_does_not_take_stops_the_reading() {
    let events: Vec<String> =
        (6..1000).map(|n| event("ADDED", &object("b", &n.to_string()))).collect();
    let script = Script::new([list("5", &["a"], ""), watch(events, Then::Hang)]);
    let reflection = script.list();
    let quiet = tokio::time::timeout(Duration::from_secs(60), std::future::pending::<()>());
    assert!(quiet.await.is_err());
    assert_eq!(reflection.deltas.len(), 16);
    assert!(reflection.status.counts().events <= 17, "{:?}", reflection.status.counts());
}

#[tokio::test(start_paused = true)]
async fn merged_deltas_lead_to_the_latest_state() {
    let (send, mut deltas) = delta_queue::channel(Mode::Coalescing { threshold: 0 });
    let events = [
        event("ADDED", &object("a", "6")),
        bookmark("7"),
        event("MODIFIED", &object("a", "8")),
        event("DELETED", &object("a", "9")),
        bookmark("10"),
    ];
    let script = Script::new([list("5", &["a"], ""), watch(events, Then::Hang)]);
    let reflector = Reflector::new(script.client(), &(), Selection::default(), send)
        .options(Options { streaming: false, ..Options::default() });
    let status = reflector.status();
    tokio::spawn(reflector.run());
    let quiet = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>());
    assert!(quiet.await.is_err());
    let told: Vec<String> =
        deltas.pop_batch(99).await.iter().map(|delta: &Delta<ConfigMap>| describe(delta)).collect();
    assert_eq!(told, ["=a@5", "-a", "#10"]);
    assert_eq!(status.counts().events, 5);
}
