//! As much of gRPC as a server needs that answers one message with one message, on a unix socket.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::UnixListener;

use super::liar::Liar;

type Frames = stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, Infallible>>>;

/// Why a call is refused: a code of gRPC, and a text.
pub(super) type Refusal = (u32, String);

/// Serves until it is dropped.
pub(super) async fn serve(socket: &Path, liar: Arc<Liar>) {
    let _ = std::fs::remove_file(socket);
    let listener = UnixListener::bind(socket).expect("a socket of our own");
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        let liar = Arc::clone(&liar);
        let service = service_fn(move |request| answer(Arc::clone(&liar), request));
        let connection = http2::Builder::new(TokioExecutor::new());
        let connection = connection.serve_connection(TokioIo::new(stream), service);
        connections.spawn(async move {
            let _ = connection.await; // clients come and go
        });
    }
}

async fn answer(
    liar: Arc<Liar>,
    request: Request<Incoming>,
) -> Result<Response<StreamBody<Frames>>, Infallible> {
    let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
    let body = request.into_body().collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    // A flag and the length stand in front of the message.
    let message = body.get(5..).unwrap_or_default();
    let (frame, status) = match liar.answer(&method, message).await {
        Ok(message) => {
            let length = u32::try_from(message.len()).expect("a small message").to_be_bytes();
            let bytes = [&[0][..], &length, &message].concat();
            (Some(Frame::data(Bytes::from(bytes))), (0, String::new()))
        }
        Err(refusal) => (None, refusal),
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(status.0));
    trailers.insert("grpc-message", HeaderValue::from_str(&status.1).expect("plain text"));
    let frames: Vec<_> = frame.into_iter().chain([Frame::trailers(trailers)]).map(Ok).collect();
    let body = StreamBody::new(stream::iter(frames));
    let response = Response::builder().header("content-type", "application/grpc");
    Ok(response.body(body).expect("a response"))
}
