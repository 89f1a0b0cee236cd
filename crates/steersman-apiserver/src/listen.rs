//! The network's way in: HTTPS over hyper and rustls, HTTP/1.1 and HTTP/2.
//!
//! A connection that fails ends alone. When the token is cancelled the server stops to accept,
//! ends the watches, takes itself out of the endpoints, lets the requests under way finish, and gives up on them after a deadline.

mod impatient;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Request, Response, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::Service;

use self::impatient::Impatient;
use crate::authentication::clear_usual_headers;
use crate::authn::{self, Authenticated, ClientCertificate, Credentials};
use crate::negotiate::Wishes;
use crate::pki::{ClientAuthorities, ServerTls};
use crate::reply::{self, ResponseBody};
use crate::server::ApiServer;

/// How long a client may take to shake hands.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long a client may take, once connected, to ask for something.
const FIRST_REQUEST: Duration = Duration::from_secs(60);

/// How often a silent connection is asked whether someone is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How many connections are open at once; each costs memory before it asks for anything.
const CONNECTIONS_MAX: usize = 10_000;

/// How many requests one HTTP/2 connection may have under way, each with a body of its own.
const STREAMS_MAX: u32 = 250;

/// How long the headers of an HTTP/2 request may be, the URI among them: a selector may name
/// hundreds of objects. What is announced here, Go clients refuse to exceed.
const HEADERS_MAX: u32 = 128 * 1024;

/// How long to wait before accepting again after it failed, for example for lack of files.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);

/// Serves HTTPS until `shutdown` is cancelled, and then for at most `grace`.
pub async fn serve(
    api: ApiServer,
    listener: TcpListener,
    tls: ServerTls,
    shutdown: CancellationToken,
    grace: Duration,
) {
    if let Ok(address) = listener.local_addr() {
        api.advertise(address);
    }
    let acceptor = TlsAcceptor::from(Arc::new(tls.config));
    let graceful = GracefulShutdown::new();
    let connections = CancellationToken::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let door = Door { acceptor: acceptor.clone(), clients: tls.clients.clone() };
                let connection = connect(api.clone(), door, stream, graceful.watcher());
                let end = connections.clone();
                tokio::spawn(async move {
                    end.run_until_cancelled(connection).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_BACKOFF).await;
            }
        }
    }
    drop(listener);
    api.shutdown();
    // Others may be there for the clients, who then should not come here any more.
    let withdrawn = tokio::time::timeout(grace, api.withdraw());
    let finished = tokio::time::timeout(grace, graceful.shutdown());
    let (withdrawn, finished) = tokio::join!(withdrawn, finished);
    match withdrawn {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            tracing::warn!(%error, "cannot remove this server from its endpoints");
        }
        Err(_) => tracing::warn!("timed out removing this server from its endpoints"),
    }
    if finished.is_err() {
        tracing::warn!("shutdown deadline exceeded, dropping open connections");
    }
    connections.cancel();
}

/// The next connection, once there is a place for it; until then it waits in the listener's
/// queue.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> std::io::Result<(TcpStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(std::io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

/// How a connection begins, and who vouches for its client.
struct Door {
    acceptor: TlsAcceptor,
    clients: ClientAuthorities,
}

/// One connection, from its handshake to its end.
async fn connect(api: ApiServer, door: Door, stream: TcpStream, watcher: Watcher) {
    // Answers are small and awaited: they must not wait for more to send.
    let _ = stream.set_nodelay(true);
    let stream = Impatient::new(stream);
    let stream = match tokio::time::timeout(HANDSHAKE, door.acceptor.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "handshake failed"),
        Err(_) => return tracing::debug!("handshake took too long"),
    };
    let certificate = certificate(&api, &door.clients, &stream).map(Arc::new);
    let asked = CancellationToken::new();
    let silence = silence(asked.clone());
    let service = service_fn(move |request| {
        asked.cancel();
        answer(api.clone(), certificate.clone(), request)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    let mut http2 = builder.http2();
    http2
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEADERS_MAX)
        .keep_alive_interval(KEEP_ALIVE);
    let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::select! {
        ended = watcher.watch(connection.into_owned()) => {
            if let Err(error) = ended {
                tracing::debug!(%error, "connection failed");
            }
        }
        () = silence => tracing::debug!("client connected and sent no request"),
    }
}

/// Ends if nothing is asked for too long. Once something was, HTTP/1.1 waits for the next
/// request no longer than for its headers, and HTTP/2 asks whether someone is there.
async fn silence(asked: CancellationToken) {
    if tokio::time::timeout(FIRST_REQUEST, asked.cancelled()).await.is_ok() {
        std::future::pending::<()>().await;
    }
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
    mut request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Infallible> {
    let headers = request.headers();
    let path = request.uri().path();
    let credentials = Credentials { headers, path, certificate: certificate.as_deref() };
    match authn::request(api.server(), &credentials).await {
        Ok(Authenticated { user, warnings, .. }) => {
            forget_credentials(&api, request.headers_mut());
            request.extensions_mut().insert(user);
            let mut response = api.call(request).await?;
            reply::tell(&mut response, &warnings);
            Ok(response)
        }
        Err(status) => {
            let wishes = Wishes::of(request.uri(), request.headers());
            let mut response = reply::failure(&status, &wishes);
            reply::keep_private(&mut response);
            Ok(response)
        }
    }
}

/// Nobody behind needs the credentials, nor may take for true what only a proxy may say.
fn forget_credentials(api: &ApiServer, headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    clear_usual_headers(headers);
    if let Some(proxy) = &api.server().authentication.front_proxy {
        proxy.headers.clear(headers);
    }
}
