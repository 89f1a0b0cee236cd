//! The service between client and server: refuses requests, or spoils their answers.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use tower::{BoxError, Service, ServiceExt};

use super::body::{AnswerBody, boxed};
use super::request::{self, Asked};
use super::{Fault, Faults, list, refusal, watch};

/// By which a server says that nothing lies between it and its client, which is not so here.
pub(crate) const DIRECT: &str = "steersman-direct";

/// A service behind faults; see [`Faults::around`].
#[derive(Clone, Debug)]
pub struct FaultyService<S> {
    api: S,
    faults: Faults,
}

impl<S> FaultyService<S> {
    pub(super) fn new(api: S, faults: Faults) -> Self {
        Self { api, faults }
    }
}

impl<S, A, B> Service<Request<A>> for FaultyService<S>
where
    S: Service<Request<A>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
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
        let Self { api, faults } = self.clone();
        Box::pin(async move {
            if !faults.concerns(request.uri()) {
                return Ok(forward(api, request).await?.map(boxed));
            }
            answer(api, request, faults).await
        })
    }
}

/// Answers a request, or does not.
async fn answer<S, A, B>(
    api: S,
    mut request: Request<A>,
    faults: Faults,
) -> Result<Response<AnswerBody>, BoxError>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let asked = Asked::of(&request);
    if let Some(refused) = refuse(&faults, asked) {
        return refused;
    }
    if let Some(objects) = faults.page_max {
        request::shrink_page(&mut request, objects);
    }
    if asked == Asked::StreamingList && faults.strikes(Fault::StreamingIgnored) {
        request::ignore_streaming(&mut request);
    }
    let answer = forward(api, request).await?;
    if !answer.status().is_success() {
        return Ok(answer.map(boxed));
    }
    match asked {
        Asked::List { .. } => {
            if faults.strikes(Fault::SlowPage) {
                let delay = faults.pick(1..=30) as u64;
                tokio::time::sleep(Duration::from_secs(delay)).await;
            }
            list::spoil(answer, &faults).await
        }
        Asked::Watch { .. } | Asked::StreamingList => {
            Ok(answer.map(|body| watch::spoil(body, faults)))
        }
        Asked::Other => Ok(answer.map(boxed)),
    }
}

/// Decides whether the request is refused before it reaches the server.
fn refuse(faults: &Faults, asked: Asked) -> Option<Result<Response<AnswerBody>, BoxError>> {
    if faults.strikes(Fault::ConnectionRefused) {
        return Some(Err("connection refused".into()));
    }
    if faults.strikes(Fault::TooManyRequests) {
        return Some(Ok(refusal::too_many_requests(faults.pick(1..=5))));
    }
    if faults.strikes(Fault::ServerError) {
        return Some(Ok(refusal::server_error(faults.pick(0..=1) == 1)));
    }
    if faults.strikes(Fault::Forbidden) {
        return Some(Ok(refusal::forbidden()));
    }
    let (fault, refusal): (_, fn() -> _) = match asked {
        Asked::List { continued: true } => (Fault::ContinueExpired, refusal::gone),
        Asked::Watch { from_version: true } => (Fault::WatchExpired, refusal::gone),
        Asked::StreamingList => (Fault::StreamingRefused, refusal::streaming_refused),
        _ => return None,
    };
    faults.strikes(fault).then(|| Ok(refusal()))
}

async fn forward<S, A, B>(api: S, request: Request<A>) -> Result<Response<B>, BoxError>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Error: Into<BoxError>,
{
    let mut answer = api.oneshot(request).await.map_err(Into::into)?;
    answer.headers_mut().remove(DIRECT);
    Ok(answer)
}
