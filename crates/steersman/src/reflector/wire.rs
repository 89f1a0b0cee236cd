//! Lists and watches on the wire: requests out, pages and events in.
//!
//! Objects are decoded one by one, so that one that cannot be decoded is reported and skipped
//! and never stops the rest.

use std::marker::PhantomData;
use std::pin::Pin;
use std::time::Duration;

use futures::io::AsyncBufReadExt;
use futures::stream::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::{ListParams, VersionMatch, WatchParams};
use kube::core::{Request, Status};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::object::Cacheable;

/// How much longer than asked a watch may stay silent before it is taken for dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);

/// Which objects of a kind to reflect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    /// Only this namespace; `None` is all of them.
    pub namespace: Option<String>,
    /// Only objects whose labels match.
    pub labels: Option<String>,
    /// Only objects whose fields match.
    pub fields: Option<String>,
}

/// The objects of one kind on a server.
pub(super) struct Collection<K> {
    client: kube::Client,
    request: Request,
    kind_name: String,
    selection: Selection,
    kind: PhantomData<fn() -> K>,
}

/// Some or all objects of a list.
pub(super) struct Page<K> {
    pub(super) objects: Vec<K>,
    pub(super) version: String,
    /// The token of the page after this one.
    pub(super) next: Option<String>,
}

/// Why a list failed.
pub(super) enum ListError {
    /// The version or the continue token is too old, or newer than the server knows.
    Expired,
    Failed(kube::Error),
}

/// Why a watch failed.
pub(super) enum WatchError {
    /// The version to watch from is too old, or newer than the server knows.
    Expired,
    Failed(String),
}

/// One thing that a watch said.
pub(super) enum WatchItem<K> {
    Applied {
        object: K,
        version: String,
    },
    Deleted {
        object: K,
        version: String,
    },
    Bookmark {
        version: String,
    },
    /// An event whose object could not be decoded.
    Skipped {
        version: Option<String>,
    },
    UnreadableDelete,
    Ended(Result<(), WatchError>),
}

/// The lines of a running watch.
pub(super) struct WatchStream {
    lines: Pin<Box<dyn Stream<Item = std::io::Result<String>> + Send>>,
    /// Silence for longer than this means that the connection is dead.
    patience: Duration,
}

#[derive(Deserialize)]
struct RawList<'a> {
    #[serde(default)]
    metadata: ListMeta,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Just enough of an object to say which one it is.
#[derive(Deserialize)]
struct Identity {
    #[serde(default)]
    metadata: IdentityMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct IdentityMeta {
    namespace: Option<String>,
    name: Option<String>,
    resource_version: Option<String>,
}

impl<K: Cacheable> Collection<K> {
    pub(super) fn new(
        client: kube::Client,
        dynamic_type: &K::DynamicType,
        selection: Selection,
    ) -> Self {
        let request = Request::new(K::url_path(dynamic_type, selection.namespace.as_deref()));
        let kind_name = K::kind(dynamic_type).into_owned();
        Self { client, request, kind_name, selection, kind: PhantomData }
    }

    pub(super) fn kind(&self) -> &str {
        &self.kind_name
    }

    /// One page of the latest state; a limit of zero is the whole list.
    pub(super) async fn list_page(
        &self,
        limit: u32,
        token: Option<&str>,
    ) -> Result<Page<K>, ListError> {
        let params = ListParams {
            limit: (limit > 0).then_some(limit),
            continue_token: token.map(str::to_owned),
            ..self.list_params()
        };
        self.list(&params).await
    }

    /// The whole state at this version or any later one.
    pub(super) async fn list_not_older_than(&self, version: &str) -> Result<Page<K>, ListError> {
        let params = self.list_params().at(version).matching(VersionMatch::NotOlderThan);
        self.list(&params).await
    }

    async fn list(&self, params: &ListParams) -> Result<Page<K>, ListError> {
        let request = if K::metadata_api() {
            self.request.list_metadata(params)
        } else {
            self.request.list(params)
        };
        let request =
            request.map_err(|error| ListError::Failed(kube::Error::BuildRequest(error)))?;
        let text = self.client.request_text(request).await.map_err(list_error)?;
        let list: RawList<'_> = serde_json::from_str(&text)
            .map_err(|error| ListError::Failed(kube::Error::SerdeError(error)))?;
        let objects = list.items.iter().filter_map(|raw| self.decode(raw)).collect();
        let version = list.metadata.resource_version.unwrap_or_default();
        let next = list.metadata.continue_.filter(|token| !token.is_empty());
        Ok(Page { objects, version, next })
    }

    pub(super) async fn watch(
        &self,
        version: &str,
        timeout: Duration,
    ) -> Result<WatchStream, WatchError> {
        let params = WatchParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            timeout: u32::try_from(timeout.as_secs()).ok(),
            ..WatchParams::default()
        };
        let request = if K::metadata_api() {
            self.request.watch_metadata(&params, version)
        } else {
            self.request.watch(&params, version)
        };
        let mut request = request.map_err(|error| WatchError::Failed(error.to_string()))?;
        // Newer servers compress each event as a gzip member of its own, which decoders mishandle.
        let identity = http::HeaderValue::from_static("identity");
        request.headers_mut().insert(http::header::ACCEPT_ENCODING, identity);
        let body = self.client.request_stream(request).await.map_err(watch_error)?;
        let lines = Box::pin(Box::pin(body).lines());
        Ok(WatchStream { lines, patience: timeout + WATCH_GRACE })
    }

    /// The next thing a watch says. Cancel-safe.
    pub(super) async fn next(&self, stream: &mut WatchStream) -> WatchItem<K> {
        let line = match tokio::time::timeout(stream.patience, stream.lines.next()).await {
            Ok(Some(Ok(line))) => line,
            Ok(Some(Err(error))) => return failed(error.to_string()),
            Ok(None) => return WatchItem::Ended(Ok(())),
            Err(_) => return failed("nothing heard for longer than the watch should last".into()),
        };
        match serde_json::from_str::<RawEvent<'_>>(&line) {
            Ok(event) => self.interpret(&event),
            Err(error) => failed(format!("cannot read watch event: {error}")),
        }
    }

    fn interpret(&self, event: &RawEvent<'_>) -> WatchItem<K> {
        match event.kind {
            "ADDED" | "MODIFIED" => match (self.decode(event.object), version(event.object)) {
                (Some(object), Some(version)) => WatchItem::Applied { object, version },
                (_, version) => WatchItem::Skipped { version },
            },
            "DELETED" => match (self.decode(event.object), version(event.object)) {
                (Some(object), Some(version)) => WatchItem::Deleted { object, version },
                _ => WatchItem::UnreadableDelete,
            },
            "BOOKMARK" => match version(event.object) {
                Some(version) => WatchItem::Bookmark { version },
                None => WatchItem::Skipped { version: None },
            },
            "ERROR" => WatchItem::Ended(Err(error_event(event.object))),
            other => failed(format!("unknown watch event type {other}")),
        }
    }

    /// Decodes one object, or reports and skips it.
    fn decode(&self, raw: &RawValue) -> Option<K> {
        match serde_json::from_str(raw.get()) {
            Ok(object) => Some(object),
            Err(error) => {
                let id: IdentityMeta = serde_json::from_str::<Identity>(raw.get())
                    .map_or_else(|_| IdentityMeta::default(), |i| i.metadata);
                tracing::error!(
                    kind = self.kind(),
                    namespace = id.namespace.unwrap_or_default(),
                    name = id.name.unwrap_or_default(),
                    %error,
                    "object cannot be decoded and is skipped"
                );
                None
            }
        }
    }

    fn list_params(&self) -> ListParams {
        ListParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            ..ListParams::default()
        }
    }
}

fn failed<K>(reason: String) -> WatchItem<K> {
    WatchItem::Ended(Err(WatchError::Failed(reason)))
}

fn version(raw: &RawValue) -> Option<String> {
    serde_json::from_str::<Identity>(raw.get()).ok()?.metadata.resource_version
}

fn error_event(raw: &RawValue) -> WatchError {
    match serde_json::from_str::<Status>(raw.get()) {
        Ok(status) if is_expired(&status) || is_too_large(&status) => WatchError::Expired,
        Ok(status) => WatchError::Failed(status.message),
        Err(error) => WatchError::Failed(error.to_string()),
    }
}

fn list_error(error: kube::Error) -> ListError {
    match error {
        kube::Error::Api(status) if is_expired(&status) || is_too_large(&status) => {
            ListError::Expired
        }
        error => ListError::Failed(error),
    }
}

fn watch_error(error: kube::Error) -> WatchError {
    match error {
        kube::Error::Api(status) if is_expired(&status) || is_too_large(&status) => {
            WatchError::Expired
        }
        kube::Error::Api(status) => WatchError::Failed(status.message),
        error => WatchError::Failed(error.to_string()),
    }
}

/// 410, by code or by either of its two reasons.
fn is_expired(status: &Status) -> bool {
    status.code == 410 || status.reason == "Expired" || status.reason == "Gone"
}

/// The server has not reached the version asked for, as after a restore from a backup.
fn is_too_large(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
}
