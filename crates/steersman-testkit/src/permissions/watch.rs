//! A service between a program and the API server that notes what roles do not allow.

use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Either, Full};
use serde_json::Value;
use steersman::controller::Reconciling;
use tower::{BoxError, Layer, Service};

use super::missing::{Program, Why};
use super::refusal::Refusal;

/// Tells a program what it is refused: a layer for its client.
#[derive(Clone)]
pub(crate) struct Refused(Arc<Program>);

impl Refused {
    pub(crate) fn tell(program: &Arc<Program>) -> Self {
        Self(Arc::clone(program))
    }
}

impl<S> Layer<S> for Refused {
    type Service = Watched<S>;

    fn layer(&self, api: S) -> Watched<S> {
        Watched { api, program: Arc::clone(&self.0) }
    }
}

/// A service whose refusals are noted.
#[derive(Clone)]
pub(crate) struct Watched<S> {
    api: S,
    program: Arc<Program>,
}

impl<S, A, B> Service<Request<A>> for Watched<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Either<B, Full<Bytes>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.api.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let line = format!("{} {}", request.method(), request.uri().path());
        let answer = self.api.call(request);
        let program = Arc::clone(&self.program);
        Box::pin(async move {
            let answer = answer.await.map_err(Into::into)?;
            if answer.status() != StatusCode::FORBIDDEN {
                return Ok(answer.map(Either::Left));
            }
            let (head, body) = answer.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            if let Some(refusal) = Refusal::read(&message(&body), program.user()) {
                // The answer is awaited where the request was made.
                program.note(refusal, Why { reconcile: Reconciling::current(), request: line });
            }
            Ok(Response::from_parts(head, Either::Right(Full::new(body))))
        })
    }
}

/// The message of a `Status`.
fn message(body: &[u8]) -> String {
    let status: Value = serde_json::from_slice(body).unwrap_or_default();
    status["message"].as_str().unwrap_or_default().to_owned()
}
