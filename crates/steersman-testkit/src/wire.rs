//! The way between the controller and the server, which counts what passes and is cut at one moment.
//!
//! A request that the server has begun is always finished there, whoever waits for it: what is cut
//! off is the answer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tokio::sync::watch;
use tower::{BoxError, Service, ServiceExt};

use crate::faults::{AnswerBody, DIRECT};

/// When the wire is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// It stays whole.
    Never,
    /// When the server has done the n-th write.
    Write(usize),
    /// When the n-th part of all watches has arrived.
    Event(usize),
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never => f.write_str("never"),
            Self::Write(n) => write!(f, "after write {n}"),
            Self::Event(n) => write!(f, "after part {n} of watches"),
        }
    }
}

/// A wire. Clones are the same wire.
#[derive(Clone)]
pub(crate) struct Wire {
    /// Whether it is the one after the cut, which stays whole.
    renewed: bool,
    point: Point,
    counts: Arc<Mutex<Counts>>,
    cut: Arc<watch::Sender<bool>>,
}

#[derive(Default)]
struct Counts {
    writes: Vec<String>,
    events: usize,
    /// Objects that were created, by resource.
    created: BTreeMap<String, usize>,
}

impl Wire {
    pub(crate) fn new(point: Point) -> Self {
        let cut = Arc::new(watch::Sender::new(false));
        Self { renewed: false, point, counts: Arc::default(), cut }
    }

    /// Another wire that counts on, and stays whole.
    pub(crate) fn renewed(&self) -> Self {
        Self { renewed: true, ..self.clone() }
    }

    /// Waits until it is cut.
    pub(crate) async fn cut(&self) {
        let mut cut = self.cut.subscribe();
        if cut.wait_for(|cut| *cut).await.is_err() {
            std::future::pending::<()>().await; // nobody can cut it any more
        }
    }

    pub(crate) fn is_cut(&self) -> bool {
        *self.cut.borrow()
    }

    /// What was written.
    pub(crate) fn writes(&self) -> Vec<String> {
        self.counts().writes.clone()
    }

    /// How many parts of watches arrived.
    pub(crate) fn events(&self) -> usize {
        self.counts().events
    }

    /// How many objects were created, by resource.
    pub(crate) fn created(&self) -> BTreeMap<String, usize> {
        self.counts().created.clone()
    }

    /// The same service at the other end of this wire.
    pub(crate) fn around<S>(&self, api: S) -> WiredService<S> {
        WiredService { api, wire: self.clone() }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_dead(&self) -> bool {
        !self.renewed && self.is_cut()
    }

    /// Counts a write that the server has done.
    fn written(&self, write: &Write) {
        let mut counts = self.counts();
        counts.writes.push(write.what.clone());
        if let Some(resource) = &write.creates {
            *counts.created.entry(resource.clone()).or_default() += 1;
        }
        let done = counts.writes.len();
        drop(counts);
        self.reached(Point::Write(done));
    }

    /// Counts a part of a watch.
    fn received(&self) {
        let mut counts = self.counts();
        counts.events += 1;
        let done = counts.events;
        drop(counts);
        self.reached(Point::Event(done));
    }

    fn reached(&self, point: Point) {
        if !self.renewed && self.point == point {
            self.cut.send_replace(true);
        }
    }

    /// Goes on unless it is cut.
    async fn passable(&self) {
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }
}

/// A write that counts: none of Events, which tell and do nothing, and no review.
struct Write {
    what: String,
    /// The resource of which it creates an object, if it does.
    creates: Option<String>,
}

impl Write {
    fn of<B>(request: &Request<B>) -> Option<Self> {
        let path = request.uri().path();
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (["api", _, rest @ ..] | ["apis", _, _, rest @ ..]) = segments.as_slice() else {
            return None;
        };
        let rest = match rest {
            ["namespaces", _, rest @ ..] if !rest.is_empty() => rest,
            rest => rest,
        };
        let counts = *request.method() != Method::GET
            && !matches!(rest.first(), None | Some(&"events"))
            && !rest[0].ends_with("reviews");
        let creates =
            (*request.method() == Method::POST && rest.len() == 1).then(|| rest[0].into());
        counts.then(|| Self { what: format!("{} {path}", request.method()), creates })
    }
}

/// A service at the other end of a wire.
#[derive(Clone)]
pub(crate) struct WiredService<S> {
    api: S,
    wire: Wire,
}

impl<S, A, B> Service<Request<A>> for WiredService<S>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError> + Send,
    S::Future: Send,
    A: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(())) // each call waits for a service of its own
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let Self { api, wire } = self.clone();
        Box::pin(async move {
            wire.passable().await;
            let write = Write::of(&request);
            let watches = request.uri().query().is_some_and(|query| query.contains("watch="));
            let counting = wire.clone();
            // A task of its own, so that it ends even if nobody waits any more.
            let answer = tokio::spawn(async move {
                let answer = api.oneshot(request).await.map_err(Into::into)?;
                if let Some(write) = write.filter(|_| answer.status().is_success()) {
                    counting.written(&write);
                }
                Ok::<_, BoxError>(answer)
            });
            let mut answer = answer.await??;
            wire.passable().await;
            answer.headers_mut().remove(DIRECT);
            Ok(answer.map(|body| along(wire, body, watches)))
        })
    }
}

/// Counts the parts of a watch, none of which arrives after the cut.
fn along<B>(wire: Wire, body: B, watches: bool) -> AnswerBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    if !watches {
        return body.map_err(Into::into).boxed_unsync();
    }
    let parts = body.into_data_stream().map_err(Into::into).then(move |part| {
        let wire = wire.clone();
        async move {
            wire.passable().await;
            wire.received();
            wire.passable().await;
            part.map(Frame::data)
        }
    });
    StreamBody::new(parts).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_told_from_reads_events_and_reviews() {
        let write = |method: &str, path: &str| {
            let request = Request::builder().method(method).uri(path).body(()).unwrap();
            Write::of(&request).map(|write| write.creates)
        };
        assert_eq!(write("GET", "/api/v1/namespaces/default/pods"), None);
        assert_eq!(write("POST", "/api/v1/namespaces/default/pods"), Some(Some("pods".into())));
        assert_eq!(write("POST", "/api/v1/namespaces"), Some(Some("namespaces".into())));
        assert_eq!(write("PUT", "/apis/apps/v1/namespaces/d/deployments/web/status"), Some(None));
        assert_eq!(write("POST", "/api/v1/namespaces/default/pods/web/eviction"), Some(None));
        assert_eq!(write("POST", "/apis/events.k8s.io/v1/namespaces/default/events"), None);
        let review = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        assert_eq!(write("POST", review), None);
    }
}
