//! One connection, from its handshake to its end.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use http::{HeaderMap, Method, Request, Response, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::Service;

use super::heads::Heads;
use super::impatient::Impatient;
use super::places::{Place, UnderWay};
use crate::audit::Head;
use crate::authentication::clear_usual_headers;
use crate::authn::{self, Authenticated, ClientCertificate, Credentials};
use crate::caller::Peer;
use crate::negotiate::Wishes;
use crate::noted;
use crate::pki::ClientAuthorities;
use crate::reply::{self, ResponseBody};
use crate::server::ApiServer;
use crate::upgrade;
use crate::webhook_client::BrokenOff;

/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How often a silent connection is asked whether someone is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How many requests one HTTP/2 connection may have under way, each with a body of its own.
const STREAMS_MAX: u32 = 250;

/// How much of the body of one HTTP/2 request is taken before somebody reads it, and of all those of
/// a connection: nearly all objects are smaller, and what is taken is memory.
const WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// How long the headers of an HTTP/2 request may be, the URI among them: a selector may name
/// hundreds of objects. What is announced here, Go clients refuse to exceed, and others are answered
/// 431. No request with a longer URI than [`http::Uri`] holds may be shorter than this: it would be
/// reset, which Go clients take for an invitation to try again.
const HEADERS_MAX: u32 = URI_MAX + 1 + PSEUDO_HEADERS;
const URI_MAX: u32 = u16::MAX as u32 - 1;

/// What the shortest method and scheme count for, and the names of all that every request has.
const PSEUDO_HEADERS: u32 = (5 + 32) + (7 + 3 + 32) + (7 + 4 + 32);

/// How much of the headers of an HTTP/1.1 request is taken from a stranger, and of how many fields
/// they may consist, whoever sends them: groups to act for are a field each.
const STRANGERS_BUFFER: usize = 128 * 1024;
const FIELDS_MAX: usize = 1024;

/// How long requests under way may take to finish on a connection that has to make room.
const FAREWELL: Duration = Duration::from_secs(5);

/// How a connection begins, and who vouches for its client.
pub(super) struct Door {
    pub(super) acceptor: TlsAcceptor,
    pub(super) clients: ClientAuthorities,
}

/// What ends connections besides what happens on them.
#[derive(Clone, Default)]
pub(super) struct Stop {
    /// Lets requests under way finish.
    pub(super) in_order: CancellationToken,
    /// Lets nothing finish.
    pub(super) at_once: CancellationToken,
}

/// One connection, from its handshake to its end: when it is told to stop, has nothing to do, or
/// must make room, it takes no more requests and ends after those that it has.
pub(super) async fn connect(
    api: ApiServer,
    door: Arc<Door>,
    stream: TcpStream,
    place: Arc<Place>,
    stop: Stop,
) {
    let peer = stream.peer_addr().ok().map(|address| Peer(address.ip()));
    // Answers are small and awaited: they must not wait for more to send.
    let _ = stream.set_nodelay(true);
    let stream = tokio::select! {
        biased;
        shaken = shake_hands(&api, &door, stream) => shaken,
        () = place.taken_away() => return,
        () = stop.in_order.cancelled() => return,
    };
    let Some(stream) = stream else { return };
    place.shook_hands();
    let certificate = certificate(&api, &door.clients, &stream).map(Arc::new);
    if let Some(holder) = certificate.as_ref().and_then(|certificate| certificate.holder()) {
        place.know(holder);
    }
    let builder = builder(place.is_known());
    let service = {
        let place = Arc::clone(&place);
        service_fn(move |mut request: Request<Incoming>| {
            peer.map(|peer| request.extensions_mut().insert(peer));
            answer(api.clone(), certificate.clone(), Arc::clone(&place), request)
        })
    };
    let has_heads = stream.get_ref().1.alpn_protocol() != Some(&b"h2"[..]);
    let stream = Heads::new(stream, Arc::clone(&place), has_heads);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // Asked only when they have something to say: what happens on a connection passes here.
    let mut ends = FuturesUnordered::from_iter([
        stop.in_order.cancelled().map(|()| None).boxed(),
        place.over().map(|()| Some(FAREWELL)).boxed(),
    ]);
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => Some(ended),
        Some(time) = ends.next() => {
            connection.as_mut().graceful_shutdown();
            let finished = async {
                tokio::select! {
                    ended = connection => Some(ended),
                    () = place.quiet() => None,
                }
            };
            let finished = tokio::time::timeout(time.unwrap_or(Duration::MAX), finished);
            stop.at_once.run_until_cancelled(finished).await.and_then(Result::ok).flatten()
        }
    };
    match ended {
        Some(Ok(())) => {}
        Some(Err(error)) => tracing::debug!(%error, "connection failed"),
        None => tracing::debug!("connection did not end by itself"),
    }
}

async fn shake_hands(
    api: &ApiServer,
    door: &Door,
    stream: TcpStream,
) -> Option<TlsStream<Impatient<TcpStream>>> {
    let accepted = door.acceptor.accept(Impatient::new(stream));
    match tokio::time::timeout(HANDSHAKE, accepted).await {
        Ok(Ok(stream)) => Some(stream),
        Ok(Err(error)) => {
            api.server().metrics.handshake_errors.increment();
            tracing::debug!(%error, "handshake failed");
            None
        }
        Err(_) => {
            api.server().metrics.handshake_errors.increment();
            tracing::debug!("handshake took too long");
            None
        }
    }
}

/// What a connection may do. A client that does not get on with its headers in HTTP/1.1 is cut off by
/// [`Heads`], one that begins requests in HTTP/2 only to reset them by hyper after twenty.
fn builder(is_known: bool) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(None).max_headers(FIELDS_MAX);
    if !is_known {
        builder.http1().max_buf_size(STRANGERS_BUFFER);
    }
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEADERS_MAX)
        .keep_alive_interval(KEEP_ALIVE);
    builder
}

/// What the certificate is worth that the client has shown, if it has.
fn certificate(
    api: &ApiServer,
    clients: &ClientAuthorities,
    stream: &TlsStream<Impatient<TcpStream>>,
) -> Option<ClientCertificate> {
    let chain = stream.get_ref().1.peer_certificates()?;
    let server = api.server();
    let proxy = server.authentication.front_proxy.as_ref();
    Some(ClientCertificate::judge(chain, clients, proxy, (server.clock)()))
}

/// Finds out who asks, then lets the service answer.
async fn answer(
    mut api: ApiServer,
    certificate: Option<Arc<ClientCertificate>>,
    place: Arc<Place>,
    mut request: Request<Incoming>,
) -> Result<Response<Answering>, Infallible> {
    let under_way = place.asked();
    let is_head = request.method() == Method::HEAD && request.version() == Version::HTTP_2;
    let headers = request.headers();
    let path = request.uri().path();
    let credentials = Credentials { headers, path, certificate: certificate.as_deref() };
    let response = match authn::request(api.server(), &credentials).await {
        Ok(Authenticated { user, warnings, remarks, .. }) => {
            match user.is_anonymous() {
                true => place.asked_by_nobody(),
                false => place.know(&user.name),
            }
            forget_credentials(&api, request.headers_mut());
            request.extensions_mut().insert(user);
            if !remarks.is_empty() {
                request.extensions_mut().insert(remarks);
            }
            if upgrade::is_wanted(request.headers()) {
                request.extensions_mut().insert(place.stay());
            }
            let mut response = api.call(request).await?;
            reply::tell(&mut response, &warnings);
            response
        }
        Err(status) => {
            place.asked_by_nobody();
            let wishes = Wishes::of(request.uri(), request.headers());
            let mut response = reply::failure(&status, &wishes);
            reply::keep_private(&mut response);
            let server = api.server();
            let peer = request.extensions().get::<Peer>().map(|peer| peer.0);
            let (method, uri) = (request.method(), request.uri());
            let head = Head { method, uri, headers: request.headers(), peer, user: None };
            noted::refused(server, head, certificate.is_some(), &mut response);
            response
        }
    };
    let response = if is_head { without_body(response) } else { response };
    Ok(response.map(|body| {
        let under_way = if body.is_streamed() { under_way.lasting() } else { under_way };
        Answering { body, _under_way: under_way }
    }))
}

/// The answer to a HEAD, which has none: in HTTP/1.1 hyper leaves it out, in HTTP/2 it would send it, and
/// clients take that for a broken stream.
fn without_body(response: Response<ResponseBody>) -> Response<ResponseBody> {
    let (mut parts, body) = response.into_parts();
    if let Some(length) = body.size_hint().exact() {
        parts.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| length.into());
    }
    Response::from_parts(parts, Bytes::new().into())
}

/// Nobody behind needs the credentials, nor may take for true what only a proxy may say.
fn forget_credentials(api: &ApiServer, headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    authn::forget_web_socket_token(headers);
    clear_usual_headers(headers);
    if let Some(proxy) = &api.server().authentication.front_proxy {
        proxy.headers.clear(headers);
    }
}

/// The body of an answer. Until it is sent the connection is not idle.
struct Answering {
    body: ResponseBody,
    _under_way: UnderWay,
}

impl Body for Answering {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
