//! Calling webhooks: a POST of JSON to whom a `clientConfig` names, within a time. Issuers of
//! tokens are asked for their keys in the same way, and what an APIService leads elsewhere is
//! [passed on](Origins::open).
//!
//! [`target`] reads a `clientConfig`, [`kubeconfig`] the file that names a webhook on the command
//! line, [`https`] speaks to the network, with whom [`trust`] lets it; [`backend`] finds out where a
//! service is; [`answers`] remembers what was answered, and [`typed`] says what of it no webhook may
//! answer. Servers in this process are known by their
//! origin ([`Origins`]) and called without a socket, so that a cluster on virtual time can have
//! webhooks. What goes wrong is told as Go's client tells it ([`words`]), for operators know those
//! texts.
//! Nothing is locked while anything is awaited.

mod answers;
mod backend;
mod converter;
mod https;
mod kubeconfig;
mod path;
mod review_types;
mod target;
mod trust;
mod typed;
mod words;

use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use http::{Method, Request, Response, header};
use http_body_util::BodyDataStream;
use serde_json::{Map, Value};
use steersman_rules::body::{json, syntax, yaml};
use steersman_rules::patch::json_type;
use steersman_store::Store;
use tokio::time::sleep;

pub(crate) use answers::{Answers, Key};
pub(crate) use backend::Service;
pub(crate) use converter::Converter;
pub use kubeconfig::{KubeconfigError, WebhookEndpoint};
pub(crate) use review_types::{ADMISSION_REVIEW, CONVERSION_REVIEW};
pub(crate) use target::Target;
pub(crate) use trust::ClientIdentity;
pub(crate) use typed::bytes;

use crate::fairness::elsewhere;
use crate::negotiate::no_object;
use crate::status::panic_text;

/// How often a webhook is asked when it has too much to do, or fails.
const ATTEMPTS: u32 = 5;
const BACKOFF_FACTOR: f64 = 1.5;

/// Answers the requests to an origin in this process.
pub type WebhookHandler =
    Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync>;

/// An answer that was passed back broke off before its end.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off: {0}")]
pub struct BrokenOff(String);

/// The body of an answer, piece by piece. It breaks off where the other side does.
pub(crate) type Pieces = BoxStream<'static, Result<Bytes, BrokenOff>>;

/// The body of an answer of this process.
pub(crate) fn pieces<B>(body: B) -> Pieces
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Send + 'static,
{
    let broken = |error: B::Error| BrokenOff(error.to_string());
    BodyDataStream::new(body).map(move |piece| piece.map_err(broken)).boxed()
}

/// Answers what is passed on to an origin in this process.
pub(crate) type ExtensionHandler =
    Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Pieces>> + Send + Sync>;

/// The servers in this process, by their origin.
#[derive(Default)]
pub(crate) struct Origins {
    webhooks: RwLock<HashMap<String, WebhookHandler>>,
    extensions: RwLock<HashMap<String, ExtensionHandler>>,
}

impl Origins {
    /// Lets a handler answer for an origin such as `https://webhooks.test`.
    pub(crate) fn serve(&self, origin: &str, handler: WebhookHandler) {
        let mut origins = self.webhooks.write().unwrap_or_else(PoisonError::into_inner);
        origins.insert(target::normal_origin(origin), handler);
    }

    /// Lets a handler answer what is passed on to an origin; nobody, if there is none.
    pub(crate) fn extend(&self, origin: &str, handler: Option<ExtensionHandler>) {
        let mut origins = self.extensions.write().unwrap_or_else(PoisonError::into_inner);
        let origin = target::normal_origin(origin);
        match handler {
            Some(handler) => origins.insert(origin, handler),
            None => origins.remove(&origin),
        };
    }

    fn handler(&self, target: &Target) -> Option<WebhookHandler> {
        let origins = self.webhooks.read().unwrap_or_else(PoisonError::into_inner);
        origins.get(&target.origin).cloned()
    }

    fn extension(&self, target: &Target) -> Option<ExtensionHandler> {
        let origins = self.extensions.read().unwrap_or_else(PoisonError::into_inner);
        origins.get(&target.origin).cloned()
    }

    /// Whether what is passed on to a target stays in this process.
    pub(crate) fn has_extension(&self, target: &Target) -> bool {
        self.extension(target).is_some()
    }

    /// Where a target is at this moment, as a URL without a path, or why it is nowhere.
    pub(crate) async fn location(
        &self,
        store: &dyn Store,
        target: &Target,
    ) -> Result<String, String> {
        if self.has_extension(target) {
            return Ok(target.url.clone());
        }
        https::location(store, target).await.map_err(|error| error.to_string())
    }

    /// Passes a request on. The answer is there as soon as it begins, or the text of what went
    /// wrong.
    pub(crate) async fn open(
        &self,
        store: &dyn Store,
        target: &Arc<Target>,
        request: Request<Bytes>,
    ) -> Result<Response<Pieces>, String> {
        match self.extension(target) {
            Some(handler) => unless_it_panics(async { handler(request).await }).await,
            None => {
                let sent = https::open(store, target, request).await;
                sent.map_err(|error| error.to_string())
            }
        }
    }

    /// Passes on a request to speak another protocol, which only the network's servers do.
    pub(crate) async fn upgrade(
        &self,
        store: &dyn Store,
        target: &Target,
        request: Request<Bytes>,
    ) -> Result<Response<hyper::body::Incoming>, String> {
        if self.has_extension(target) {
            return Err("a server in this process speaks no other protocol".to_owned());
        }
        let sent = https::upgrade(store, target, request).await;
        sent.map_err(|error| error.to_string())
    }

    /// Posts a document and gives the one that is answered.
    pub(crate) async fn post(
        &self,
        store: &dyn Store,
        target: &Target,
        document: &Value,
        within: Duration,
    ) -> Result<Value, ReviewError> {
        let url = format!("{}?timeout={}s", target.url, within.as_secs());
        let failed = |why: String| ReviewError { code: None, why: format!("Post {url:?}: {why}") };
        let request = Request::builder()
            .method(Method::POST)
            .uri(&url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .body(Bytes::from(document.to_string()))
            .map_err(|error| failed(error.to_string()))?;
        let response = self.send(store, target, request, within).await.map_err(failed)?;
        let code = Some(response.status().as_u16());
        read(&response).map_err(|why| ReviewError { code, why })
    }

    /// Posts JSON that nothing but success is answered to, and tells what went wrong. The token, if
    /// there is one, says who posts it.
    pub(crate) async fn deliver(
        &self,
        store: &dyn Store,
        target: &Target,
        token: Option<&str>,
        body: Bytes,
        within: Duration,
    ) -> Result<(), String> {
        let url = &target.url;
        let failed = |why: String| format!("Post {url:?}: {why}");
        let mut request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::USER_AGENT, "kube-apiserver-audit");
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(body).map_err(|error| failed(error.to_string()))?;
        let response = self.send(store, target, request, within).await.map_err(failed)?;
        match response.status().is_success() {
            true => Ok(()),
            false => Err(failed(format!("answered {}", response.status()))),
        }
    }

    /// Posts a review and gives the one that is answered. The token, if there is one, says who posts
    /// it.
    pub(crate) async fn review(
        &self,
        store: &dyn Store,
        target: &Target,
        token: Option<&str>,
        review: &Value,
        within: Duration,
    ) -> Result<Value, ReviewError> {
        let url = &target.url;
        let unreached =
            |why: String| ReviewError { code: None, why: format!("Post {url:?}: {why}") };
        let mut request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, */*")
            .header(header::USER_AGENT, "kube-apiserver");
        if let Some(token) = token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(Bytes::from(review.to_string()));
        let request = request.map_err(|error| unreached(error.to_string()))?;
        let response = self.send(store, target, request, within).await.map_err(unreached)?;
        let code = Some(response.status().as_u16());
        read(&response).map_err(|why| ReviewError { code, why })
    }

    /// Posts a review, and ever later again while that may help, and gives the one that is answered.
    pub(crate) async fn inquire(
        &self,
        store: &dyn Store,
        inquiry: Inquiry<'_>,
    ) -> Result<Value, ReviewError> {
        let Inquiry { target, token, review, within, mut pause } = inquiry;
        for attempt in 1..ATTEMPTS {
            match self.review(store, target, token, review, within).await {
                Err(error) if error.passes() => {
                    tracing::debug!(%error, attempt, "a webhook failed; retrying");
                    sleep(pause).await;
                    pause = pause.mul_f64(BACKOFF_FACTOR);
                }
                answered => return answered,
            }
        }
        self.review(store, target, token, review, within).await
    }

    /// Gets what is at a URL of a target, or the text of what went wrong.
    pub(crate) async fn get(
        &self,
        store: &dyn Store,
        target: &Target,
        url: &str,
        within: Duration,
    ) -> Result<Response<Bytes>, String> {
        let failed = |why: String| format!("Get {url:?}: {why}");
        let request = Request::get(url).header(header::ACCEPT, "application/json");
        let request = request.body(Bytes::new()).map_err(|error| failed(error.to_string()))?;
        self.send(store, target, request, within).await.map_err(failed)
    }

    async fn send(
        &self,
        store: &dyn Store,
        target: &Target,
        request: Request<Bytes>,
        within: Duration,
    ) -> Result<Response<Bytes>, String> {
        let _lent = elsewhere();
        let answer = async {
            match self.handler(target) {
                Some(handler) => unless_it_panics(async { handler(request).await }).await,
                None => {
                    let sent = https::send(store, target, request).await;
                    sent.map_err(|error| error.to_string())
                }
            }
        };
        let late = |_| "context deadline exceeded".to_owned();
        tokio::time::timeout(within, answer).await.map_err(late)?
    }
}

/// A review that is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Inquiry<'a> {
    pub(crate) target: &'a Target,
    /// Says who posts it, if there is one.
    pub(crate) token: Option<&'a str>,
    pub(crate) review: &'a Value,
    /// How long one answer may take.
    pub(crate) within: Duration,
    /// After how long it is asked for again at first.
    pub(crate) pause: Duration,
}

/// Why there is no answer to a review.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub(crate) struct ReviewError {
    /// What was answered, if anything was.
    code: Option<u16>,
    why: String,
}

impl ReviewError {
    /// The status that was answered, or else that says that nobody can be asked.
    pub(crate) fn code(&self) -> u16 {
        self.code.filter(|code| !READ.contains(code)).unwrap_or(503)
    }

    /// Whether the same question may be answered soon.
    pub(crate) fn passes(&self) -> bool {
        matches!(self.code, Some(429 | 500 | 504))
    }
}

/// Waits for a handler of this process; one that panics has hung up.
async fn unless_it_panics<T>(answer: impl Future<Output = T>) -> Result<T, String> {
    let answer = AssertUnwindSafe(answer).catch_unwind().await;
    answer.map_err(|panic| {
        tracing::warn!(panic = panic_text(&*panic), "server in this process panicked");
        "EOF".to_owned()
    })
}

/// The codes whose answers are read.
const READ: RangeInclusive<u16> = 200..=206;

fn read(response: &Response<Bytes>) -> Result<Value, String> {
    let body = response.body();
    let code = response.status().as_u16();
    if READ.contains(&code) {
        return document(body);
    }
    Err(told(body).unwrap_or_else(|| meant(code, &shown(response))))
}

/// The largest answer that is read as YAML, which takes long.
const YAML_MAX: usize = 3 << 20;

/// The document that was answered. As in Kubernetes, what does not begin as a JSON object is read as
/// YAML.
fn document(body: &[u8]) -> Result<Value, String> {
    let unread = |why: String| format!("couldn't get version/kind; json parse error: {why}");
    let is_json = body.trim_ascii_start().starts_with(b"{") || body.len() > YAML_MAX;
    let value = match is_json {
        true => {
            let read = json::plain(body);
            read.map_err(|error| unread(syntax::complaint(body, &error)))?.0
        }
        false => yaml::read(body).map_err(|error| yaml::complaint(body, &error))?,
    };
    match &value {
        Value::Object(fields) => {
            let texts = ["apiVersion", "kind"].map(|field| (field, fields.get(field)));
            let odd = texts.into_iter().find_map(|(field, value)| {
                let value = value.filter(|value| !(value.is_null() || value.is_string()))?;
                Some(format!(
                    "json: cannot unmarshal {} into Go struct field .{field} of type string",
                    json_type(value)
                ))
            });
            odd.map_or(Ok(value), |why| Err(unread(why)))
        }
        Value::Null => Ok(Value::Object(Map::new())),
        _ => Err(no_object(&value)),
    }
}

/// What a failure says that is a Status.
fn told(body: &[u8]) -> Option<String> {
    let status: Value = serde_json::from_slice(body).ok()?;
    let is = |field: &str, wanted: &str| status[field] == wanted;
    let fails = is("kind", "Status") && is("status", "Failure");
    status["message"].as_str().filter(|_| fails).map(str::to_owned)
}

/// What of another failure is shown: the beginning of its text, if it is text.
fn shown(response: &Response<Bytes>) -> String {
    let media_type = response.headers().get(header::CONTENT_TYPE);
    let is_text = media_type.is_none_or(|it| it.is_empty() || it.as_bytes().starts_with(b"text/"));
    if !is_text {
        return "unknown".to_owned();
    }
    let body = response.body();
    String::from_utf8_lossy(&body[..body.len().min(SHOWN_MAX)]).trim().to_owned()
}

/// What a status code means, in the words of Kubernetes' client.
fn meant(code: u16, text: &str) -> String {
    let words = match code {
        409 => "the server reported a conflict",
        404 => "the server could not find the requested resource",
        400 => "the server rejected our request for an unknown reason",
        401 => "the server has asked for the client to provide credentials",
        403 | 415 => text,
        406 if !matches!(text, "" | "unknown") => text,
        406 => "the server was unable to respond with a content type that the client supports",
        405 => "the server does not allow this method on the requested resource",
        422 => "the server rejected our request due to an error in our request",
        503 => "the server is currently unable to handle the request",
        504 => {
            "the server was unable to return a response in the time allotted, but may still be \
             processing the request"
        }
        429 => "the server has received too many requests and has asked us to try again later",
        500.. => {
            return format!(
                "an error on the server ({text:?}) has prevented the request from succeeding"
            );
        }
        _ => {
            return format!(
                "the server responded with the status code {code} but did not return more \
                 information"
            );
        }
    };
    words.to_owned()
}

/// The first version of reviews that a webhook reads and that is known here.
pub(crate) fn review_version(versions: &Value) -> Option<&'static str> {
    let mut versions = versions.as_array().into_iter().flatten();
    versions.find_map(|version| match version.as_str()? {
        "v1" => Some("v1"),
        "v1beta1" => Some("v1beta1"),
        _ => None,
    })
}

/// How much of an error's body is told.
const SHOWN_MAX: usize = 2048;

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{Response, header};

    use super::read;

    fn answered(code: u16, media_type: &str, body: &'static str) -> Response<Bytes> {
        let response = Response::builder().status(code).header(header::CONTENT_TYPE, media_type);
        response.body(Bytes::from_static(body.as_bytes())).unwrap()
    }

    #[test]
    fn a_failure_is_told_in_the_words_of_kubernetes_client() {
        let on_server = |text| {
            format!("an error on the server ({text}) has prevented the request from succeeding")
        };
        for (code, media_type, body, expected) in [
            (500, "text/plain; charset=utf-8", " no \n", on_server("\"no\"")),
            (500, "", "", on_server("\"\"")),
            (502, "application/json", r#"{"a":1}"#, on_server("\"unknown\"")),
            (
                500,
                "application/json",
                r#"{"kind":"Status","status":"Failure","message":"no"}"#,
                "no".to_owned(),
            ),
            (
                503,
                "text/html",
                "<html>",
                "the server is currently unable to handle the request".to_owned(),
            ),
            (403, "text/plain", "not you", "not you".to_owned()),
            (
                302,
                "text/plain",
                "",
                "the server responded with the status code 302 but did not return more information"
                    .to_owned(),
            ),
        ] {
            assert_eq!(read(&answered(code, media_type, body)).unwrap_err(), expected);
        }
    }

    #[test]
    fn a_document_is_an_object_in_json_or_yaml() {
        for body in ["{\"a\": 1}", " {\"a\": 2, \"a\": 1}", "a: 1"] {
            assert_eq!(read(&answered(200, "", body)).unwrap(), serde_json::json!({"a": 1}));
        }
        let start = "couldn't get version/kind; json parse error: ";
        for (body, why) in [
            ("{\"a\": nope}", "invalid character 'o' in literal null (expecting 'u')"),
            ("{} x", "invalid character 'x' after top-level value"),
            ("{", "unexpected end of JSON input"),
            ("nope", "json: cannot unmarshal string into Go value of type struct {"),
            ("[]", "json: cannot unmarshal array into Go value of type struct {"),
            ("{\"kind\": 1}", "json: cannot unmarshal number into Go struct field .kind of type"),
        ] {
            let error = read(&answered(200, "", body)).unwrap_err();
            assert!(error.starts_with(&format!("{start}{why}")), "{error}");
        }
    }
}
