//! Every fault on the wire, before a server of a few lines.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant};
use tower::ServiceExt;

use super::*;

const LIST: &str = "/api/v1/namespaces/default/configmaps?limit=500";
const PAGE: &str = "/api/v1/configmaps?limit=500&continue=token";
const WATCH: &str = "/api/v1/configmaps?watch=true&resourceVersion=5";
const STREAM: &str =
    "/api/v1/configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
const GET: &str = "/api/v1/namespaces/default/configmaps/a";

/// What came of a request.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// The status of the answer; zero if nobody answered.
    code: u16,
    body: String,
    end: End,
}

#[derive(Debug, PartialEq)]
enum End {
    Clean,
    Reset,
    Silent,
}

/// Answers a list with two objects, a watch with four events, and anything with its query.
async fn api(request: Request<Empty<Bytes>>) -> Result<Response<AnswerBody>, Infallible> {
    let text = match request.uri().query() {
        Some(query) if query.contains("watch=true") => events().concat(),
        Some(query) => list(query).to_string(),
        None => object("a", "1").to_string(),
    };
    // Chunks that end anywhere, as they do on a network.
    let chunks: Vec<_> = text.as_bytes().chunks(7).map(Bytes::copy_from_slice).collect();
    let frames = futures::stream::iter(chunks.into_iter().map(|chunk| Ok(Frame::data(chunk))));
    Ok(Response::new(StreamBody::new(frames).boxed_unsync()))
}

fn object(name: &str, version: &str) -> Value {
    json!({"data": {}, "metadata": {"name": name, "resourceVersion": version}})
}

fn list(query: &str) -> Value {
    json!({"query": query, "items": [object("a", "1"), object("b", "2")]})
}

fn events() -> Vec<String> {
    let mut end = object("", "2");
    end["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    let events = [
        json!({"type": "ADDED", "object": object("a", "1")}),
        json!({"type": "BOOKMARK", "object": end}),
        json!({"type": "MODIFIED", "object": object("a", "3")}),
        json!({"type": "BOOKMARK", "object": object("", "4")}),
    ];
    events.iter().map(|event| format!("{event}\n")).collect()
}

async fn ask(faults: &Faults, uri: &str) -> Outcome {
    let request = Request::get(uri).body(Empty::new()).unwrap();
    let Ok(answer) = faults.around(tower::service_fn(api)).oneshot(request).await else {
        return Outcome { code: 0, body: String::new(), end: End::Clean };
    };
    let (code, mut answer) = (answer.status().as_u16(), answer.into_body());
    let mut body = Vec::new();
    let end = loop {
        match tokio::time::timeout(Duration::from_secs(3600), answer.frame()).await {
            Ok(Some(Ok(frame))) => body.extend(frame.into_data().unwrap()),
            Ok(Some(Err(_))) => break End::Reset,
            Ok(None) => break End::Clean,
            Err(_) => break End::Silent,
        }
    };
    Outcome { code, body: String::from_utf8(body).unwrap(), end }
}

/// Asks with one fault that always happens.
async fn with(fault: Fault, uri: &str) -> Outcome {
    ask(&Faults::seeded(1).with(fault, 1.0), uri).await
}

async fn untouched(uri: &str) -> Outcome {
    ask(&Faults::seeded(1), uri).await
}

#[tokio::test(start_paused = true)]
async fn without_faults_everything_arrives_as_it_was_sent() {
    assert_eq!(untouched(WATCH).await.body, events().concat());
    assert_eq!(untouched(LIST).await.body, list("limit=500").to_string());
    let healed = Faults::seeded(1).all(1.0);
    healed.heal();
    for uri in [LIST, PAGE, WATCH, STREAM, GET] {
        assert_eq!(ask(&healed, uri).await, untouched(uri).await);
    }
    healed.resume();
    assert_eq!(ask(&healed, GET).await.code, 0);
}

#[tokio::test(start_paused = true)]
async fn requests_are_refused() {
    for uri in [LIST, PAGE, WATCH, STREAM, GET] {
        assert_eq!(with(Fault::ConnectionRefused, uri).await.code, 0);
        assert_eq!(with(Fault::TooManyRequests, uri).await.code, 429);
        assert_eq!(with(Fault::Forbidden, uri).await.code, 403);
        let code = with(Fault::ServerError, uri).await.code;
        assert!(code == 500 || code == 503, "{code}");
    }
    assert_eq!(with(Fault::StreamingRefused, STREAM).await.code, 422);
    assert_eq!(with(Fault::StreamingRefused, WATCH).await, untouched(WATCH).await);
}

#[tokio::test(start_paused = true)]
async fn versions_expire_in_three_forms() {
    assert_eq!(with(Fault::ContinueExpired, PAGE).await.code, 410);
    assert_eq!(with(Fault::ContinueExpired, LIST).await.code, 200);
    assert_eq!(with(Fault::WatchExpired, WATCH).await.code, 410);
    assert_eq!(with(Fault::WatchExpired, STREAM).await.code, 200);
    let event = with(Fault::ExpiredEvent, WATCH).await;
    assert_eq!((event.code, event.end), (200, End::Clean));
    let event: Value = serde_json::from_str(&event.body).unwrap();
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
}

#[tokio::test(start_paused = true)]
async fn bodies_break_in_the_middle() {
    for uri in [LIST, WATCH] {
        let (broken, whole) = (with(Fault::ConnectionReset, uri).await, untouched(uri).await);
        assert_eq!(broken.end, End::Reset);
        assert!(whole.body.starts_with(&broken.body), "{broken:?}");
    }
    let cut = with(Fault::EventCut, WATCH).await;
    assert_eq!(cut.body, events()[0][..events()[0].len() / 2]);
    assert_eq!(cut.end, End::Clean);
}

#[tokio::test(start_paused = true)]
async fn watches_end_fall_silent_and_stutter() {
    let nothing = |end| Outcome { code: 200, body: String::new(), end };
    assert_eq!(with(Fault::WatchEnded, WATCH).await, nothing(End::Clean));
    assert_eq!(with(Fault::WatchSilent, WATCH).await, nothing(End::Silent));
    let twice: String = events().iter().flat_map(|event| [event.clone(), event.clone()]).collect();
    assert_eq!(with(Fault::EventTwice, WATCH).await.body, twice);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_do_not_come() {
    let [added, end, modified, bookmark] = <[String; 4]>::try_from(events()).unwrap();
    let quiet = with(Fault::BookmarkMissing, STREAM).await.body;
    assert_eq!(quiet, [added.clone(), end, modified.clone()].concat());
    let endless = with(Fault::InitialEventsEndMissing, STREAM).await.body;
    assert_eq!(endless, [added, modified, bookmark].concat());
}

#[tokio::test(start_paused = true)]
async fn malformed_objects_keep_their_identity() {
    let page: Value = serde_json::from_str(&with(Fault::Malformed, LIST).await.body).unwrap();
    for (index, name) in ["a", "b"].into_iter().enumerate() {
        let (malformed, truth) = (&page["items"][index], &list("")["items"][index]);
        assert_ne!(malformed, truth);
        assert_eq!(malformed["metadata"]["name"], name);
    }
    let watch = with(Fault::Malformed, WATCH).await;
    let arrived: Vec<String> = watch.body.lines().map(|line| format!("{line}\n")).collect();
    let changed: Vec<bool> = arrived.iter().zip(events()).map(|(a, b)| *a != b).collect();
    assert_eq!(changed, [true, false, true, false]);
}

#[tokio::test(start_paused = true)]
async fn pages_come_late() {
    let start = Instant::now();
    assert_eq!(with(Fault::SlowPage, LIST).await, untouched(LIST).await);
    assert!(start.elapsed() >= Duration::from_secs(1), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_server_is_asked_for_less_than_the_client_asked_for() {
    let small = Faults::seeded(1).pages_of(2);
    assert!(ask(&small, PAGE).await.body.contains("limit=2&continue=token"));
    let ignoring = Faults::seeded(1).with(Fault::StreamingIgnored, 1.0).around(tower::service_fn(
        async |request: Request<Empty<Bytes>>| -> Result<Response<AnswerBody>, Infallible> {
            assert_eq!(request.uri().query(), Some("watch=true"));
            api(request).await
        },
    ));
    let request = Request::get(STREAM).body(Empty::new()).unwrap();
    assert_eq!(ignoring.oneshot(request).await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn only_chosen_requests_are_hindered() {
    let faults = Faults::seeded(1)
        .with(Fault::ConnectionRefused, 1.0)
        .only(|uri| uri.path().ends_with("/configmaps/a"));
    assert_eq!(ask(&faults, GET).await.code, 0);
    assert_eq!(ask(&faults, LIST).await.code, 200);
    assert_eq!(faults.injected(Fault::ConnectionRefused), 1);
}

#[tokio::test(start_paused = true)]
async fn everything_follows_from_the_seed() {
    async fn outcomes(seed: u64) -> Vec<Outcome> {
        let faults = Faults::seeded(seed).all(0.1);
        let mut outcomes = Vec::new();
        for uri in [LIST, PAGE, WATCH, STREAM, GET].repeat(10) {
            outcomes.push(ask(&faults, uri).await);
        }
        outcomes
    }
    assert_eq!(outcomes(7).await, outcomes(7).await);
    assert_ne!(outcomes(7).await, outcomes(8).await);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_goes_on_leaves_no_object_out_and_keeps_their_order() {
    let objects: Vec<String> =
        events().into_iter().filter(|event| !event.contains("BOOKMARK")).collect();
    for seed in 0..200 {
        let faults = Faults::seeded(seed).with(Fault::Malformed, 0.0).all(0.15);
        let body = ask(&faults, WATCH).await.body;
        let mut arrived: Vec<String> = body
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .filter(|line| line.contains("ADDED") || line.contains("MODIFIED"))
            .map(str::to_owned)
            .collect();
        arrived.dedup();
        assert!(objects.starts_with(&arrived), "{faults}: {arrived:?}");
    }
}
