//! A small HTTP server: what probes, metrics, debug pages and webhooks are served by.
//!
//! Requests and answers are whole in memory, which bounds them: a body has a limit, and so has
//! the number of connections, of which none is kept for a client that asks nothing. A handler is a
//! plain function, so whatever is served can also be called without a socket. A handler that panics
//! answers 500 and harms nobody else.
//!
//! TLS comes from [`Certificates`], which may change while connections are open.

mod authority;
mod certificate_error;
mod certificates;
mod idle;
mod query;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

pub(crate) use authority::{Authority, Trusted, Validity};
use idle::{Activity, IDLE};
pub(crate) use query::query;

pub use certificate_error::CertificateError;
pub use certificates::{Certificates, SelfSigned};

/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client may take to send the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// How many connections are open at once.
const CONNECTIONS_MAX: usize = 1_000;
/// How large the body of a request may be, unless said otherwise.
const BODY_MAX: usize = 7 * 1024 * 1024;
/// How many requests one HTTP/2 connection may have under way.
const STREAMS_MAX: u32 = 100;
/// How long to wait before accepting again after it failed, for example for lack of files.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);
/// How long requests under way may take to end once the server stops.
const GRACE: Duration = Duration::from_secs(5);

/// Answers requests. Cheap to clone.
pub type Handler = Arc<dyn Fn(Request<Bytes>) -> BoxFuture<'static, Response<Bytes>> + Send + Sync>;

/// Makes a handler of an async function.
pub fn handler<F, Fut>(answer: F) -> Handler
where
    F: Fn(Request<Bytes>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Response<Bytes>> + Send + 'static,
{
    Arc::new(move |request| Box::pin(answer(request)))
}

/// An answer in words.
pub fn text(status: StatusCode, text: impl Into<Bytes>) -> Response<Bytes> {
    answer(status, "text/plain; charset=utf-8", text)
}

/// An answer of this content type.
pub fn answer(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Response<Bytes> {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let value = header::HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    response
}

/// A server that has its address and waits to be run.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
    tls: Option<Certificates>,
    body_max: usize,
}

impl Server {
    /// Takes an address; port 0 takes any that is free.
    pub(crate) async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        Ok(Self::new(TcpListener::bind(address).await?))
    }

    /// Serves what connects to this listener.
    pub(crate) fn new(listener: TcpListener) -> Self {
        Self { listener, tls: None, body_max: BODY_MAX }
    }

    /// Speaks TLS with these certificates.
    #[must_use]
    pub(crate) fn tls(mut self, certificates: Certificates) -> Self {
        self.tls = Some(certificates);
        self
    }

    /// How large the body of a request may be.
    #[must_use]
    pub(crate) fn body_max(mut self, bytes: usize) -> Self {
        self.body_max = bytes;
        self
    }

    /// Where it listens.
    pub(crate) fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the token is cancelled, and then for at most the grace period. With
    /// certificates from files, looks after their changes as well.
    pub(crate) async fn run(self, handler: Handler, shutdown: CancellationToken) {
        let Self { listener, tls, body_max } = self;
        let acceptor = tls.as_ref().map(|tls| TlsAcceptor::from(tls.server_config()));
        let site = Site { handler, acceptor, body_max };
        let stopping = CancellationToken::new();
        // A place is taken before a connection is accepted, so that those beyond the limit wait in
        // the kernel's queue and cost nothing here.
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let mut connections = JoinSet::new();
        let accepting = async {
            loop {
                match accept(&listener, &places).await {
                    Ok((stream, place)) => {
                        let connection = site.clone().connect(stream, stopping.clone());
                        connections.spawn(connection.map(move |()| drop(place)));
                        while connections.try_join_next().is_some() {}
                    }
                    Err(error) => {
                        tracing::warn!(%error, "accept failed; retrying");
                        tokio::time::sleep(ACCEPT_BACKOFF).await;
                    }
                }
            }
        };
        tokio::select! {
            biased;
            () = shutdown.cancelled() => {}
            () = accepting => {}
            () = watch(tls.as_ref()) => {}
        }
        // Who connects from now on is refused at once rather than left waiting.
        drop(listener);
        stopping.cancel();
        let ended = async { while connections.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tracing::warn!("graceful shutdown timed out; connections closed");
        }
    }
}

/// Follows changes of the certificates. Never ends.
async fn watch(tls: Option<&Certificates>) {
    match tls {
        Some(certificates) => certificates.watch().await,
        None => std::future::pending().await,
    }
}

/// The next connection, once there is a place for it.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

/// What every connection shares.
#[derive(Clone)]
struct Site {
    handler: Handler,
    acceptor: Option<TlsAcceptor>,
    body_max: usize,
}

impl Site {
    /// One connection, from its handshake to its end.
    async fn connect(self, stream: TcpStream, stopping: CancellationToken) {
        let _ = stream.set_nodelay(true); // answers are small and awaited
        let Some(acceptor) = &self.acceptor else {
            return self.serve(stream, stopping).await;
        };
        match tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => self.serve(stream, stopping).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake timed out"),
        }
    }

    async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        stopping: CancellationToken,
    ) {
        let activity = Activity::new();
        let service = service_fn(|request| {
            let under_way = activity.begin();
            self.answer(request).map(move |answer| {
                drop(under_way);
                Ok::<_, Infallible>(answer)
            })
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        // The time until the next request counts as that of its head, which may not end it earlier.
        builder.http1().timer(TokioTimer::new()).header_read_timeout(IDLE);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS_MAX);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let ended = tokio::select! {
            biased;
            ended = connection.as_mut() => Ok(ended),
            () = ends(&stopping, &activity) => {
                connection.as_mut().graceful_shutdown();
                tokio::time::timeout(GRACE, connection).await
            }
        };
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::debug!(%error, "connection failed"),
            Err(_) => tracing::debug!("connection did not end by itself"),
        }
    }

    fn answer(
        &self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send + 'static {
        let Self { handler, body_max, .. } = self.clone();
        async move {
            let (head, body) = request.into_parts();
            let whole = Limited::new(body, body_max).collect();
            let response = match tokio::time::timeout(BODY_TIMEOUT, whole).await {
                Ok(Ok(body)) => call(&handler, Request::from_parts(head, body.to_bytes())).await,
                Ok(Err(error)) if error.is::<LengthLimitError>() => {
                    let limit = format!("the request is larger than {body_max} bytes\n");
                    text(StatusCode::PAYLOAD_TOO_LARGE, limit)
                }
                Ok(Err(error)) => text(StatusCode::BAD_REQUEST, format!("{error}\n")),
                Err(_) => text(StatusCode::REQUEST_TIMEOUT, "the request took too long\n"),
            };
            response.map(Full::new)
        }
    }
}

/// Ready when a connection is to take no more requests.
async fn ends(stopping: &CancellationToken, activity: &Activity) {
    tokio::select! {
        biased;
        () = stopping.cancelled() => {}
        () = activity.idle() => {}
    }
}

/// Calls a handler, which may panic.
pub(crate) async fn call(handler: &Handler, request: Request<Bytes>) -> Response<Bytes> {
    let path = request.uri().path().to_owned();
    let answered = AssertUnwindSafe(async { handler(request).await }).catch_unwind();
    answered.await.unwrap_or_else(|panic| {
        let panic = crate::error::panic_text(&*panic);
        tracing::error!(path, panic, "http handler panicked");
        text(StatusCode::INTERNAL_SERVER_ERROR, "internal error\n")
    })
}
