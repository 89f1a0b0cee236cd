//! The reflector against a server that follows a script.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;

type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// Answers each request with the next line of its script and remembers what was asked.
#[derive(Clone)]
struct Script {
    answers: Arc<Mutex<VecDeque<(u16, Answer)>>>,
    asked: Arc<tokio::sync::watch::Sender<Vec<String>>>,
}

impl Script {
    fn new(answers: impl IntoIterator<Item = (u16, Answer)>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into_iter().collect())), asked: Arc::default() }
    }

    fn client(&self) -> kube::Client {
        let script = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            script.asked.send_modify(|asked| asked.push(request.uri().to_string()));
            let next = script.answers.lock().unwrap().pop_front();
            async move {
                let (code, body) = next.unwrap_or_else(|| watch([], Then::Hang));
                Ok::<_, Infallible>(http::Response::builder().status(code).body(body).unwrap())
            }
        });
        kube::Client::new(service, "default")
    }

    fn asked(&self) -> Vec<String> {
        self.asked.borrow().clone()
    }

    /// What was asked, once there were so many requests.
    async fn asked_times(&self, count: usize) -> Vec<String> {
        let mut asked = self.asked.subscribe();
        asked.wait_for(|asked| asked.len() >= count).await.unwrap().clone()
    }

    /// Starts a reflector against this script.
    fn reflect(&self) -> mpsc::Receiver<Delta<ConfigMap>> {
        let (send, deltas) = mpsc::channel(16);
        let reflector = Reflector::new(self.client(), &(), Selection::default(), send);
        tokio::spawn(reflector.run());
        deltas
    }
}

#[derive(Clone, Copy)]
enum Then {
    End,
    Hang,
}

fn whole(text: String) -> Answer {
    http_body_util::Full::new(Bytes::from(text)).boxed_unsync()
}

fn list(version: &str, names: &[&str], next: &str) -> (u16, Answer) {
    let items: Vec<Value> = names.iter().map(|name| object(name, version)).collect();
    let metadata = json!({"resourceVersion": version, "continue": next});
    (200, whole(json!({"kind": "ConfigMapList", "metadata": metadata, "items": items}).to_string()))
}

fn object(name: &str, version: &str) -> Value {
    json!({"metadata": {"namespace": "default", "name": name, "resourceVersion": version}})
}

fn event(kind: &str, object: &Value) -> String {
    json!({"type": kind, "object": object}).to_string()
}

fn expired() -> Value {
    json!({"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired",
           "message": "too old resource version"})
}

fn watch(lines: impl IntoIterator<Item = String>, then: Then) -> (u16, Answer) {
    let frames: Vec<_> = lines
        .into_iter()
        .map(|line| Ok(http_body::Frame::data(Bytes::from(line + "\n"))))
        .collect();
    let sent = stream::iter(frames);
    let body = match then {
        Then::End => StreamBody::new(sent.boxed()),
        Then::Hang => StreamBody::new(sent.chain(stream::pending()).boxed()),
    };
    (200, body.boxed_unsync())
}

/// A delta in a few characters.
fn describe(delta: &Delta<ConfigMap>) -> String {
    let name = |object: &ConfigMap| object.metadata.name.clone().unwrap_or_default();
    match delta {
        Delta::Replaced { objects, version } => {
            let names: Vec<String> = objects.iter().map(name).collect();
            format!("={}@{}", names.join(","), version.unwrap_or_default())
        }
        Delta::Applied(object) => format!("~{}", name(object)),
        Delta::Deleted(object) => format!("-{}", name(object)),
        Delta::Bookmark { version } => format!("#{}", version.unwrap_or_default()),
    }
}

async fn told(deltas: &mut mpsc::Receiver<Delta<ConfigMap>>, count: usize) -> Vec<String> {
    let mut told = Vec::new();
    for _ in 0..count {
        told.push(describe(&deltas.recv().await.unwrap()));
    }
    told
}

#[tokio::test(start_paused = true)]
async fn it_lists_all_pages_and_watches_from_the_version_of_the_list() {
    let script = Script::new([list("5", &["a"], "token/=1"), list("5", &["b"], "")]);
    let mut deltas = script.reflect();
    assert_eq!(told(&mut deltas, 1).await, ["=a,b@5"]);
    let asked = script.asked_times(3).await;
    assert!(asked[1].contains("continue=token%2F%3D1"), "{asked:?}");
    assert!(asked[2].contains("watch=true") && asked[2].contains("resourceVersion=5"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_ends_is_resumed_from_the_last_version_seen() {
    let first = [event("ADDED", &object("b", "7")), event("BOOKMARK", &object("", "9"))];
    let script = Script::new([list("5", &["a"], ""), watch(first, Then::End)]);
    let mut deltas = script.reflect();
    assert_eq!(told(&mut deltas, 3).await, ["=a@5", "~b", "#9"]);
    let asked = script.asked_times(3).await;
    assert!(asked[2].contains("resourceVersion=9"), "{asked:?}");
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_in_the_stream_leads_to_a_list_that_is_not_older() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([event("ADDED", &object("b", "7")), event("ERROR", &expired())], Then::Hang),
        list("20", &["c"], ""),
    ]);
    let mut deltas = script.reflect();
    assert_eq!(told(&mut deltas, 3).await, ["=a@5", "~b", "=c@20"]);
    let asked = script.asked();
    assert!(
        asked[2].contains("resourceVersion=7") && asked[2].contains("NotOlderThan"),
        "{asked:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_as_http_status_leads_to_a_list_as_well() {
    let script = Script::new([
        list("5", &["a"], ""),
        (410, whole(expired().to_string())),
        list("20", &["b"], ""),
    ]);
    assert_eq!(told(&mut script.reflect(), 2).await, ["=a@5", "=b@20"]);
}

#[tokio::test(start_paused = true)]
async fn an_expired_page_leads_to_one_list_without_pages() {
    let script = Script::new([
        list("5", &["a"], "next"),
        (410, whole(expired().to_string())),
        list("8", &["a", "b"], ""),
    ]);
    assert_eq!(told(&mut script.reflect(), 1).await, ["=a,b@8"]);
    assert!(!script.asked()[2].contains("limit"), "{:?}", script.asked());
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_skipped_and_the_rest_goes_on() {
    let bad = json!({"metadata": {"name": "bad", "resourceVersion": "6"}, "data": 7});
    let items = [object("a", "1"), bad.clone()];
    let first = json!({"metadata": {"resourceVersion": "5"}, "items": items});
    let events = [event("MODIFIED", &bad), event("ADDED", &object("b", "7"))];
    let script = Script::new([(200, whole(first.to_string())), watch(events, Then::Hang)]);
    assert_eq!(told(&mut script.reflect(), 3).await, ["=a@5", "#6", "~b"]);
}

#[tokio::test(start_paused = true)]
async fn a_delete_that_cannot_be_decoded_forces_a_list() {
    let bad = json!({"metadata": {"name": "a", "resourceVersion": "6"}, "data": 7});
    let script = Script::new([
        list("5", &["a"], ""),
        watch([event("DELETED", &bad)], Then::Hang),
        list("6", &[], ""),
    ]);
    assert_eq!(told(&mut script.reflect(), 2).await, ["=a@5", "=@6"]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_retried_with_growing_pauses() {
    let refused = || (500, whole(json!({"kind": "Status", "code": 500}).to_string()));
    let script = Script::new([refused(), refused(), refused(), list("5", &["a"], "")]);
    let start = Instant::now();
    assert_eq!(told(&mut script.reflect(), 1).await, ["=a@5"]);
    let waited = start.elapsed();
    assert!(waited > Duration::from_secs(5) && waited < Duration::from_secs(10), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_for_too_long_is_taken_for_dead() {
    let script = Script::new([
        list("5", &["a"], ""),
        watch([], Then::Hang),
        watch([event("ADDED", &object("b", "7"))], Then::Hang),
    ]);
    let mut deltas = script.reflect();
    assert_eq!(told(&mut deltas, 2).await, ["=a@5", "~b"]);
}

#[tokio::test(start_paused = true)]
async fn it_ends_when_nobody_listens() {
    let script = Script::new([list("5", &["a"], "")]);
    let (send, deltas) = mpsc::channel(16);
    let reflector = Reflector::<ConfigMap>::new(script.client(), &(), Selection::default(), send);
    let task = tokio::spawn(reflector.run());
    drop(deltas);
    task.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn watches_that_end_at_once_are_not_asked_for_without_pause() {
    let brief = |n: u32| watch([event("BOOKMARK", &object("", &n.to_string()))], Then::End);
    let script = Script::new(std::iter::once(list("5", &["a"], "")).chain((6..100).map(brief)));
    let mut deltas = script.reflect();
    let start = Instant::now();
    told(&mut deltas, 10).await;
    assert!(start.elapsed() > Duration::from_secs(30), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_version_that_the_server_does_not_know_yet_leads_to_a_list() {
    let status = json!({"kind": "Status", "status": "Failure", "code": 504, "reason": "Timeout",
        "message": "Too large resource version: 5, current: 2",
        "details": {"causes": [{"reason": "ResourceVersionTooLarge"}]}});
    let script = Script::new([
        list("5", &["a"], ""),
        (504, whole(status.to_string())),
        (504, whole(status.to_string())),
        list("2", &["b"], ""),
    ]);
    assert_eq!(told(&mut script.reflect(), 2).await, ["=a@5", "=b@2"]);
}
