//! A server that follows a script, and what a reflector makes of it.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use tower::BoxError;

use crate::delta_queue::{self, Mode, Receiver};
use crate::reflector::{
    Decode, Delta, Options, Reflector, ReflectorStatus, Selection, Typed, WatchedResource,
};

pub(super) type AnswerBody = UnsyncBoxBody<Bytes, io::Error>;

/// What a server says to one request.
pub(super) struct Answer {
    pub(super) code: u16,
    pub(super) retry_after: Option<u32>,
    pub(super) body: AnswerBody,
}

impl Answer {
    pub(super) fn new(code: u16, body: &Value) -> Self {
        let body = Full::new(Bytes::from(body.to_string())).map_err(|never| match never {});
        Self { code, retry_after: None, body: body.boxed_unsync() }
    }

    /// An answer that is no JSON.
    pub(super) fn text(code: u16, text: &'static str) -> Self {
        let body = Full::new(Bytes::from_static(text.as_bytes())).map_err(|never| match never {});
        Self { code, retry_after: None, body: body.boxed_unsync() }
    }

    /// No answer at all.
    pub(super) fn never() -> Self {
        Self::new(0, &Value::Null)
    }

    pub(super) fn retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    pub(super) fn into_response(self) -> http::Response<AnswerBody> {
        let mut response = http::Response::builder().status(self.code);
        if let Some(seconds) = self.retry_after {
            response = response.header("Retry-After", seconds.to_string());
        }
        response.body(self.body).unwrap()
    }
}

/// What a watch does after it has said its lines.
#[derive(Clone, Copy)]
pub(super) enum Then {
    End,
    Hang,
    Reset,
}

/// Answers each request with the next line of its script, then with watches that say nothing,
/// and remembers what was asked.
#[derive(Clone)]
pub(super) struct Script {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<tokio::sync::watch::Sender<Vec<String>>>,
    /// Whether it says that nothing lies in between.
    direct: bool,
}

impl Script {
    pub(super) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { answers, asked: Arc::default(), direct: false }
    }

    /// The same in the process of the client, with nothing in between.
    pub(super) fn direct(mut self) -> Self {
        self.direct = true;
        self
    }

    pub(super) fn client(&self) -> kube::Client {
        let script = self.clone();
        let service = tower::service_fn(move |request: http::Request<Body>| {
            script.asked.send_modify(|asked| asked.push(request.uri().to_string()));
            let next = script.answers.lock().unwrap().pop_front();
            let direct = script.direct;
            async move {
                let answer = next.unwrap_or_else(|| watch([], Then::Hang));
                if answer.code == 0 {
                    std::future::pending::<()>().await;
                }
                let mut response = answer.into_response();
                if direct {
                    let yes = http::HeaderValue::from_static("true");
                    response.headers_mut().insert("steersman-direct", yes);
                }
                Ok::<_, BoxError>(response)
            }
        });
        kube::Client::new(service, "default")
    }

    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.borrow().clone()
    }

    /// What was asked, once there were so many requests.
    pub(super) async fn asked_times(&self, count: usize) -> Vec<String> {
        let mut asked = self.asked.subscribe();
        asked.wait_for(|asked| asked.len() >= count).await.unwrap().clone()
    }

    /// Starts a reflector that lists.
    pub(super) fn list(&self) -> Reflection {
        self.reflect(Options { streaming: false, ..Options::default() })
    }

    /// Starts a reflector that reads the state as a stream.
    pub(super) fn stream(&self) -> Reflection {
        self.reflect(Options::default())
    }

    pub(super) fn reflect(&self, options: Options) -> Reflection {
        Reflection::start(self.client(), options)
    }
}

/// A running reflector and what it told.
pub(super) struct Reflection {
    pub(super) deltas: Receiver<Delta<ConfigMap>>,
    pub(super) status: ReflectorStatus,
}

impl Reflection {
    pub(super) fn start(client: kube::Client, options: Options) -> Self {
        Self::decoding(client, options, Typed::new())
    }

    pub(super) fn decoding(
        client: kube::Client,
        options: Options,
        decoder: impl Decode<Output = ConfigMap>,
    ) -> Self {
        let (send, deltas) = delta_queue::channel(Mode::InOrder { capacity: 16 });
        let selection = Selection::default();
        let reflector = Reflector::with_decoder(client, config_maps(), selection, decoder, send)
            .options(options);
        let status = reflector.status();
        tokio::spawn(reflector.run());
        Self { deltas, status }
    }

    /// The next `count` deltas, described. Nothing takes an hour, in a test's time.
    pub(super) async fn told(&mut self, count: usize) -> Vec<String> {
        let until = Instant::now() + Duration::from_hours(1);
        let mut told = Vec::new();
        while told.len() < count {
            let batch = timeout_at(until, self.deltas.pop_batch(count - told.len())).await;
            let batch = batch.unwrap_or_else(|_| panic!("nothing is told after {told:?}"));
            assert!(!batch.is_empty(), "the reflector ended after {told:?}");
            told.extend(batch.iter().map(describe));
        }
        told
    }
}

/// A delta in a few characters.
pub(super) fn describe(delta: &Delta<ConfigMap>) -> String {
    let name = |object: &ConfigMap| object.metadata.name.clone().unwrap_or_default();
    match delta {
        Delta::Replaced { objects, skipped, version } => {
            let mut names: Vec<String> = objects.iter().map(name).collect();
            names.extend(skipped.iter().map(|key| format!("?{}", key.name)));
            format!("={}@{}", names.join(","), version.unwrap_or_default())
        }
        Delta::Applied(object) => format!("~{}", name(object)),
        Delta::Reread(object) => format!("!{}", name(object)),
        Delta::Deleted(object) => format!("-{}", name(object)),
        Delta::DeletedKey { key, .. } => format!("-?{}", key.name),
        Delta::Bookmark { version } => format!("#{}", version.unwrap_or_default()),
    }
}

pub(super) fn list(version: &str, names: &[&str], next: &str) -> Answer {
    let items: Vec<Value> = names.iter().map(|name| object(name, version)).collect();
    let metadata = json!({"resourceVersion": version, "continue": next});
    Answer::new(200, &json!({"kind": "ConfigMapList", "metadata": metadata, "items": items}))
}

pub(super) fn object(name: &str, version: &str) -> Value {
    json!({"metadata": {"namespace": "default", "name": name, "resourceVersion": version}})
}

/// An object whose data has the wrong type.
pub(super) fn malformed(name: &str, version: &str) -> Value {
    let mut object = object(name, version);
    object["data"] = json!(7);
    object
}

/// An event as API servers write it.
pub(super) fn event(kind: &str, object: &Value) -> String {
    format!(r#"{{"type":"{kind}","object":{object}}}"#)
}

pub(super) fn bookmark(version: &str) -> String {
    event("BOOKMARK", &json!({"metadata": {"resourceVersion": version}}))
}

/// The bookmark after the initial events.
pub(super) fn end_of_state(version: &str) -> String {
    let annotations = json!({"k8s.io/initial-events-end": "true"});
    let metadata = json!({"resourceVersion": version, "annotations": annotations});
    event("BOOKMARK", &json!({"metadata": metadata}))
}

pub(super) fn status(code: u16, reason: &str) -> Value {
    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason,
           "message": format!("the server says {reason}")})
}

pub(super) fn expired() -> Value {
    status(410, "Expired")
}

pub(super) fn too_large() -> Value {
    let mut status = status(504, "Timeout");
    status["details"] = json!({"causes": [{"reason": "ResourceVersionTooLarge"}]});
    status
}

pub(super) fn watch(lines: impl IntoIterator<Item = String>, then: Then) -> Answer {
    raw_watch(lines.into_iter().map(|line| line + "\n"), then)
}

/// A watch whose pieces are not necessarily lines.
pub(super) fn raw_watch(pieces: impl IntoIterator<Item = String>, then: Then) -> Answer {
    let frames: Vec<_> =
        pieces.into_iter().map(|piece| Ok(http_body::Frame::data(Bytes::from(piece)))).collect();
    let sent = stream::iter(frames);
    let body = match then {
        Then::End => StreamBody::new(sent.boxed()),
        Then::Hang => StreamBody::new(sent.chain(stream::pending()).boxed()),
        Then::Reset => {
            let reset = stream::iter([Err(io::Error::from(io::ErrorKind::ConnectionReset))]);
            StreamBody::new(sent.chain(reset).boxed())
        }
    };
    Answer { code: 200, retry_after: None, body: body.boxed_unsync() }
}

/// A watch whose lines each come so many seconds after the one before, and that never ends.
pub(super) fn slow_watch(lines: impl IntoIterator<Item = (u64, String)>) -> Answer {
    let lines: Vec<_> = lines.into_iter().collect();
    let sent = stream::iter(lines).then(|(seconds, line)| async move {
        let pause = Duration::from_secs(seconds);
        let _ = tokio::time::timeout(pause, std::future::pending::<()>()).await;
        Ok(http_body::Frame::data(Bytes::from(line + "\n")))
    });
    let body = StreamBody::new(sent.chain(stream::pending()).boxed());
    Answer { code: 200, retry_after: None, body: body.boxed_unsync() }
}

/// The kind that the tests reflect.
pub(super) fn config_maps() -> WatchedResource {
    WatchedResource::of::<ConfigMap>(&())
}
