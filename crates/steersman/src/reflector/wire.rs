//! Lists and watches on the wire: requests out, pages and events in.
//!
//! Pages and events are parsed into the borrowed text of each object; what becomes of that text is
//! the decoder's business.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::Resource;
use kube::api::{ListParams, VersionMatch, WatchParams};
use kube::client::Body;
use kube::core::{ApiResource, DynamicObject};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout, timeout_at};

use super::lines::{Lines, next_data};
use super::trouble::Trouble;
use crate::client::or_whole_objects;
use crate::object::ObjectKey;

/// How long to wait for the beginning of an answer, and then for each piece of it. A server
/// gives up on a list after a minute.
const ANSWER_PATIENCE: Duration = Duration::from_secs(65);

/// Stands in answers to watches that come from this very process, with nothing in between: such a
/// watch cannot break without its end being seen, so that its silence means nothing.
const DIRECT: &str = "steersman-direct";

/// Which objects of a kind to reflect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Only this namespace; `None`, or an empty name, is all of them.
    pub namespace: Option<String>,
    /// Only objects whose labels match.
    pub labels: Option<String>,
    /// Only objects whose fields match.
    pub fields: Option<String>,
}

/// A kind on the wire, without its type.
#[derive(Clone)]
pub(crate) struct WatchedResource {
    names: ApiResource,
    pub(crate) kind: String,
    /// Whether only the metadata of objects is read.
    metadata_only: bool,
}

/// The objects of one kind on a server.
#[derive(Clone)]
pub(super) struct Collection {
    client: kube::Client,
    names: ApiResource,
    request: kube::core::Request,
    pub(super) kind: String,
    metadata_only: bool,
    selection: Selection,
}

/// What to ask of a list.
#[derive(Clone, Copy, Default)]
pub(super) struct ListOptions<'a> {
    /// The most objects to give; zero is all.
    pub(super) limit: u32,
    /// Where to go on.
    pub(super) token: Option<&'a str>,
    /// Not the latest state: this version or any later one.
    pub(super) not_older_than: Option<&'a str>,
}

/// A running watch.
pub(super) struct WatchStream {
    lines: Lines,
    pub(super) opened: Instant,
    /// When something came, or the watch began.
    pub(super) received: Instant,
    /// How long it was asked to last.
    pub(super) timeout: Duration,
    /// Its silence has been reported and is not over yet.
    pub(super) stalled: bool,
    /// Nothing lies between it and the server.
    pub(super) direct: bool,
}

/// What came of a watch.
pub(super) enum Received {
    Line(Bytes),
    Ended,
    Broken(String),
    /// Nothing, until the deadline.
    Silence,
}

#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(default)]
    pub(super) metadata: ListMeta,
    #[serde(borrow, default)]
    pub(super) items: Vec<&'a RawValue>,
}

/// An event of a watch.
pub(super) enum Event<'a> {
    Added(&'a str),
    Modified(&'a str),
    /// `None` is a deletion that does not say of what.
    Deleted(Option<&'a str>),
    Bookmark {
        version: Option<String>,
        /// The stream has given the whole state.
        initial_end: bool,
    },
    Error(Trouble),
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
}

/// Just enough of an object to say which one it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    namespace: Option<String>,
    name: Option<String>,
    pub(super) resource_version: Option<String>,
}

impl Identity {
    /// Reads as much as can be read: a field of a wrong type does not hide the others.
    pub(super) fn of(json: &str) -> Self {
        #[derive(Deserialize)]
        struct Outer<'a> {
            #[serde(borrow)]
            metadata: Fields<'a>,
        }
        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase")]
        struct Fields<'a> {
            #[serde(borrow)]
            namespace: Option<&'a RawValue>,
            #[serde(borrow)]
            name: Option<&'a RawValue>,
            #[serde(borrow)]
            resource_version: Option<&'a RawValue>,
        }
        let outer = serde_json::from_str::<Outer<'_>>(json);
        let fields = outer.map_or_else(|_| Fields::default(), |outer| outer.metadata);
        Self {
            namespace: fields.namespace.and_then(text_of),
            name: fields.name.and_then(text_of),
            resource_version: fields.resource_version.and_then(text_of),
        }
    }

    pub(super) fn key(&self) -> Option<ObjectKey> {
        let name = self.name.as_deref().filter(|name| !name.is_empty())?;
        let namespace = self.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        Some(ObjectKey { namespace: namespace.map(Into::into), name: name.into() })
    }
}

/// The text of a string or of a number.
fn text_of(raw: &RawValue) -> Option<String> {
    let text = raw.get();
    if text.starts_with('"') {
        return serde_json::from_str(text).ok();
    }
    serde_json::from_str::<serde_json::Number>(text).ok().map(|_| text.to_owned())
}

impl<'a> Event<'a> {
    /// Reads one line of a watch.
    pub(super) fn parse(line: &'a [u8]) -> Result<Self, String> {
        let event: RawEvent<'a> = serde_json::from_slice(line)
            .map_err(|error| format!("cannot read watch event: {error}"))?;
        match (event.kind, event.object.map(RawValue::get)) {
            ("ADDED", Some(json)) => Ok(Self::Added(json)),
            ("MODIFIED", Some(json)) => Ok(Self::Modified(json)),
            ("DELETED", json) => Ok(Self::Deleted(json)),
            ("BOOKMARK", Some(json)) => Ok(Self::bookmark(json)),
            ("ERROR", Some(json)) => Ok(Self::Error(error_event(json))),
            (kind, _) => Err(format!("cannot read watch event of type {kind}")),
        }
    }

    /// The object that a line says is there now, with the type of the event. The line is taken to
    /// be as servers write it, type first and nothing after the object, and the object is not
    /// looked at: to find its end is to read all of it once more. So this is a guess, which holds if
    /// the object can be decoded; if not, [`parse`](Self::parse) tells what is so.
    pub(super) fn guess(line: &'a [u8]) -> Option<Self> {
        let line = str::from_utf8(line).ok()?.strip_prefix(r#"{"type":""#)?;
        let (kind, rest) = line.split_once(r#"","object":"#)?;
        let json = rest.trim_ascii_end().strip_suffix('}')?;
        match kind {
            "ADDED" => Some(Self::Added(json)),
            "MODIFIED" => Some(Self::Modified(json)),
            _ => None,
        }
    }

    fn bookmark(json: &str) -> Self {
        #[derive(Deserialize)]
        struct Outer {
            metadata: Mark,
        }
        #[derive(Deserialize)]
        struct Mark {
            annotations: Option<Annotations>,
        }
        #[derive(Deserialize)]
        struct Annotations {
            #[serde(rename = "k8s.io/initial-events-end")]
            initial_events_end: Option<String>,
        }
        let mark = serde_json::from_str::<Outer>(json).ok();
        let end = mark.and_then(|mark| mark.metadata.annotations?.initial_events_end);
        let initial_end = end.as_deref() == Some("true");
        let version = Identity::of(json).resource_version.filter(|version| !version.is_empty());
        Self::Bookmark { version, initial_end }
    }
}

fn error_event(json: &str) -> Trouble {
    match serde_json::from_str(json) {
        Ok(status) => Trouble::of_status(&status, None),
        Err(error) => Trouble::Failed(error.to_string()),
    }
}

impl WatchStream {
    /// What comes next, or silence until the deadline. Cancel-safe.
    pub(super) async fn next(&mut self, deadline: Instant) -> Received {
        let line = self.lines.next();
        let line = if self.direct { Ok(line.await) } else { timeout_at(deadline, line).await };
        match line {
            Ok(Some(Ok(line))) => {
                self.received = Instant::now();
                self.stalled = false;
                Received::Line(line)
            }
            Ok(Some(Err(why))) => Received::Broken(why),
            Ok(None) => Received::Ended,
            Err(_) => Received::Silence,
        }
    }

    /// The state is complete; how long it took says nothing of how well the watch goes.
    pub(super) fn becomes_a_watch(&mut self) {
        let now = Instant::now();
        self.timeout = self.timeout.saturating_sub(now - self.opened);
        self.opened = now;
    }
}

impl WatchedResource {
    pub(crate) fn of<K: Resource>(dynamic_type: &K::DynamicType) -> Self {
        let names = ApiResource::erase::<K>(dynamic_type);
        Self { kind: names.kind.clone(), names, metadata_only: K::metadata_api() }
    }
}

impl Collection {
    pub(super) fn new(
        client: kube::Client,
        resource: WatchedResource,
        selection: Selection,
    ) -> Self {
        let WatchedResource { names, kind, metadata_only } = resource;
        let namespace = selection.namespace.as_deref().filter(|namespace| !namespace.is_empty());
        let path = DynamicObject::url_path(&names, namespace);
        let request = kube::core::Request::new(path);
        Self { client, names, request, kind, metadata_only, selection }
    }

    /// The text of a list or of one page of it.
    pub(super) async fn list(&self, options: ListOptions<'_>) -> Result<Vec<u8>, Trouble> {
        read(
            self.send(self.list_request(options, self.selection.fields.clone())?)
                .await?
                .into_body(),
        )
        .await
    }

    /// The text of the list of one object, which is empty if the object is not selected.
    pub(super) fn read_one(
        &self,
        key: &ObjectKey,
    ) -> impl Future<Output = Result<Vec<u8>, Trouble>> + Send + use<> {
        let mut one = self.clone();
        if let Some(namespace) = &key.namespace {
            let path = DynamicObject::url_path(&one.names, Some(namespace));
            one.request = kube::core::Request::new(path);
        }
        let name = format!("metadata.name={}", key.name);
        let fields = match &one.selection.fields {
            Some(fields) => format!("{fields},{name}"),
            None => name,
        };
        async move {
            let request = one.list_request(ListOptions::default(), Some(fields))?;
            read(one.send(request).await?.into_body()).await
        }
    }

    fn list_request(
        &self,
        options: ListOptions<'_>,
        fields: Option<String>,
    ) -> Result<Request<Vec<u8>>, Trouble> {
        let params = ListParams {
            label_selector: self.selection.labels.clone(),
            field_selector: fields,
            limit: (options.limit > 0).then_some(options.limit),
            continue_token: options.token.map(str::to_owned),
            resource_version: options.not_older_than.map(str::to_owned),
            version_match: options.not_older_than.map(|_| VersionMatch::NotOlderThan),
            ..ListParams::default()
        };
        let request = if self.metadata_only {
            self.request.list_metadata(&params).map(or_whole_objects)
        } else {
            self.request.list(&params)
        };
        request.map_err(|error| Trouble::Failed(error.to_string()))
    }

    /// Watches from a version. With `initial`, the stream begins with the whole state, not older
    /// than that version, where the empty version is the latest.
    pub(super) async fn watch(
        &self,
        version: &str,
        initial: bool,
        timeout: Duration,
    ) -> Result<WatchStream, Trouble> {
        let params = WatchParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            timeout: u32::try_from(timeout.as_secs()).ok(),
            bookmarks: true,
            send_initial_events: initial,
        };
        let request = if self.metadata_only {
            self.request.watch_metadata(&params, version).map(or_whole_objects)
        } else {
            self.request.watch(&params, version)
        };
        let mut request = request.map_err(|error| Trouble::Failed(error.to_string()))?;
        // Newer servers compress each event as a gzip member of its own, which decoders mishandle.
        let identity = http::HeaderValue::from_static("identity");
        request.headers_mut().insert(http::header::ACCEPT_ENCODING, identity);
        let answer = self.send(request).await?;
        let direct = answer.headers().contains_key(DIRECT);
        let now = Instant::now();
        let lines = Lines::new(answer.into_body());
        Ok(WatchStream { lines, opened: now, received: now, timeout, stalled: false, direct })
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<Response<Body>, Trouble> {
        let answer = timeout(ANSWER_PATIENCE, self.client.send(request.map(Body::from))).await;
        let response =
            answer.map_err(|_| Trouble::NoAnswer)?.map_err(|error| Trouble::of_error(&error))?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        let text = read(body).await.unwrap_or_default();
        Err(Trouble::of_answer(head.status, &head.headers, &text))
    }
}

/// Reads a body to its end.
async fn read(mut body: Body) -> Result<Vec<u8>, Trouble> {
    let mut text = Vec::new();
    loop {
        match timeout(ANSWER_PATIENCE, next_data(&mut body)).await {
            Ok(Some(Ok(data))) => text.extend_from_slice(&data),
            Ok(Some(Err(error))) => return Err(Trouble::busy(error.to_string())),
            Ok(None) => return Ok(text),
            Err(_) => return Err(Trouble::busy("the answer does not go on")),
        }
    }
}
