//! The debug page: what caches, queues and controllers are at, as JSON and for the eye.
//!
//! `/debug` is a page for browsers and JSON for everybody else; `/debug/json` is always JSON.
//! `?key=namespace/name` shows what concerns one object: "why did this reconcile?". Everything
//! shown is bounded, and everything in the page is escaped: names and errors come from objects
//! that anybody may have written.

mod page;
mod snapshot;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};

use crate::controller::{Controllers, Queues};
use crate::metrics::Metrics;
use crate::serve;

#[cfg(test)]
pub(crate) use snapshot::ControllerSnapshot;
pub(crate) use snapshot::{LeaseSnapshot, Snapshot};

/// Nothing is loaded, and nothing runs in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'";

/// Looks into a manager. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Inspection {
    pub(crate) metrics: Metrics,
    pub(crate) queues: Queues,
    pub(crate) controllers: Controllers,
    pub(crate) replica: Arc<dyn InspectReplica>,
}

/// What can be seen of the replica that a manager is.
pub(crate) trait InspectReplica: Send + Sync {
    /// The last group of work that has started.
    fn started(&self) -> Option<String>;

    /// The Lease that it competes for, if it takes part in a leader election.
    fn lease(&self) -> Option<LeaseSnapshot>;
}

impl Inspection {
    /// Answers a request for the debug page.
    pub(crate) fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let query = serve::query(request.uri().query().unwrap_or_default());
        let key = query.into_iter().find(|(name, _)| name == "key").map(|(_, key)| key);
        let key = key.filter(|key| !key.is_empty());
        let snapshot = self.snapshot(key.as_deref());
        let accept = request.headers().get(header::ACCEPT).and_then(|it| it.to_str().ok());
        let browser = accept.is_some_and(|accept| accept.contains("text/html"));
        if browser && !request.uri().path().trim_end_matches('/').ends_with("/json") {
            return html(&snapshot);
        }
        match serde_json::to_vec_pretty(&snapshot) {
            Ok(json) => serve::answer(StatusCode::OK, "application/json", json),
            Err(error) => serve::text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }
}

fn html(snapshot: &Snapshot) -> Response<Bytes> {
    let html = page::render(snapshot);
    let mut response = serve::answer(StatusCode::OK, "text/html; charset=utf-8", html);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
