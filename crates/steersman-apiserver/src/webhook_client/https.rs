//! The network's way to a webhook: HTTP/1.1 over TLS, on connections that are used again.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::header::InvalidHeaderValue;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::{InvalidDnsNameError, ServerName};
use steersman_store::Store;
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

use super::backend::{self, BackendError};
use super::target::{Connection, Target};
use super::{BrokenOff, Pieces, words};

/// How long it may take to reach somebody whose answer may take as long as it likes.
const DIAL_TIME: Duration = Duration::from_secs(30);

/// The largest answer, in bytes.
const RESPONSE_LIMIT: usize = 16 * 1024 * 1024;

/// How many bytes of an answer are read in one go.
const TURN_BYTES: usize = 256 * 1024;

/// Why a request brings no answer, in the words of Go's client. They tell of their cause as well,
/// so that none has a source.
#[derive(Debug, thiserror::Error)]
pub(super) enum SendError {
    /// The authorities of a `caBundle`, or those of the system, cannot be read.
    #[error("{0}")]
    Trust(String),
    /// The service is nowhere.
    #[error("{0}")]
    Backend(BackendError),
    /// The host cannot stand in a header.
    #[error("{0}")]
    Host(InvalidHeaderValue),
    /// The host cannot stand in a certificate.
    #[error("{0}")]
    Name(InvalidDnsNameError),
    /// There is nothing to dial.
    #[error("no address")]
    NoAddress,
    /// Nobody has that name.
    #[error("dial tcp: lookup {host}: no such host")]
    Lookup { host: String },
    /// Nobody listens there, or it cannot be reached.
    #[error("{}", words::dial(address, error))]
    Dial { address: String, error: io::Error },
    /// There is no trust, or another protocol.
    #[error("{}", words::tls(.0))]
    Tls(io::Error),
    /// The other side does not speak HTTP, or hung up.
    #[error("{}", words::http(.0))]
    Http(hyper::Error),
    /// The answer broke off, or is too large.
    #[error("{}", words::body(&**.0))]
    Body(Box<dyn std::error::Error + Send + Sync>),
}

/// Sends a request and reads the whole answer. A connection that was open but brings no answer,
/// for the other side may have closed it or begun anew, is replaced by a new one, once.
pub(super) async fn send(
    store: &dyn Store,
    target: &Target,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, SendError> {
    let request = addressed(target, request)?;
    if let Some(mut connection) = target.unused()
        && let Ok(response) = exchange(&mut connection, request.clone()).await
    {
        return whole(target, connection, response).await;
    }
    let mut connection = connect(store, target).await?;
    let response = exchange(&mut connection, request).await.map_err(SendError::Http)?;
    whole(target, connection, response).await
}

/// Sends a request and gives the answer as soon as it begins; its body follows piece by piece. What
/// was sent on a connection that was open is sent anew only if it has not left.
pub(super) async fn open(
    store: &dyn Store,
    target: &Arc<Target>,
    request: Request<Bytes>,
) -> Result<Response<Pieces>, SendError> {
    let mut request = addressed(target, request)?;
    if let Some(mut connection) = target.unused()
        && connection.ready().await.is_ok()
    {
        match connection.try_send_request(request).await {
            Ok(response) => return Ok(streamed(target, connection, response)),
            Err(mut error) => match error.take_message() {
                Some(unsent) => request = unsent,
                None => return Err(SendError::Http(error.into_error())),
            },
        }
    }
    let mut connection = connect_in_time(store, target).await?;
    let response = exchange(&mut connection, request).await.map_err(SendError::Http)?;
    Ok(streamed(target, connection, response))
}

/// Sends a request to speak another protocol, on a connection of its own.
pub(super) async fn upgrade(
    store: &dyn Store,
    target: &Target,
    request: Request<Bytes>,
) -> Result<Incoming, SendError> {
    let request = addressed(target, request)?;
    let mut connection = connect_in_time(store, target).await?;
    exchange(&mut connection, request).await.map_err(SendError::Http)
}

/// The same answer with a body that keeps its connection, and leaves it to others at the end.
fn streamed(target: &Arc<Target>, connection: Connection, response: Incoming) -> Response<Pieces> {
    let (parts, body) = response.into_parts();
    let state = Some((body, connection, Arc::clone(target)));
    let pieces = futures::stream::unfold(state, |state| async {
        let (mut body, connection, target) = state?;
        loop {
            match body.frame().await {
                Some(Ok(frame)) => {
                    let Ok(piece) = frame.into_data() else { continue };
                    return Some((Ok(piece), Some((body, connection, target))));
                }
                Some(Err(error)) => {
                    let broken = BrokenOff(words::body(&error));
                    return Some((Err(broken), None));
                }
                None => {
                    target.keep(connection);
                    return None;
                }
            }
        }
    });
    Response::from_parts(parts, pieces.boxed())
}

/// The request as HTTP/1.1 wants it: the host in a header, the rest of the URL in the first line.
fn addressed(
    target: &Target,
    mut request: Request<Bytes>,
) -> Result<Request<Full<Bytes>>, SendError> {
    let authority = request.uri().authority().map_or(target.host.as_str(), |a| a.as_str());
    let host = HeaderValue::from_str(authority).map_err(SendError::Host)?;
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = Uri::from(path.unwrap_or_else(|| PathAndQuery::from_static("/")));
    request.headers_mut().insert(header::HOST, host);
    Ok(request.map(Full::new))
}

pub(super) type Incoming = Response<hyper::body::Incoming>;

async fn exchange(
    connection: &mut Connection,
    request: Request<Full<Bytes>>,
) -> Result<Incoming, hyper::Error> {
    connection.ready().await?;
    connection.send_request(request).await
}

async fn whole(
    target: &Target,
    connection: Connection,
    response: Incoming,
) -> Result<Response<Bytes>, SendError> {
    let (parts, body) = response.into_parts();
    let body = read(body).await.map_err(SendError::Body)?;
    target.keep(connection);
    Ok(Response::from_parts(parts, body))
}

/// Reads the body of an answer. It may come as fast as it is read and be as long as is allowed, so
/// others go on in between.
async fn read(
    body: hyper::body::Incoming,
) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let mut body = Limited::new(body, RESPONSE_LIMIT);
    let mut pieces: Vec<Bytes> = Vec::new();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        bytes += piece.len();
        pieces.push(piece);
        if bytes > TURN_BYTES {
            bytes = 0;
            tokio::task::yield_now().await;
        }
    }
    Ok(if pieces.len() == 1 { pieces.remove(0) } else { pieces.concat().into() })
}

async fn connect_in_time(store: &dyn Store, target: &Target) -> Result<Connection, SendError> {
    let late = |_| {
        let address = host_and_port(&target.host, target.port);
        SendError::Dial { address, error: io::Error::new(io::ErrorKind::TimedOut, "i/o timeout") }
    };
    tokio::time::timeout(DIAL_TIME, connect(store, target)).await.map_err(late)?
}

async fn connect(store: &dyn Store, target: &Target) -> Result<Connection, SendError> {
    let tls = TlsConnector::from(target.tls().map_err(SendError::Trust)?);
    let stream = dial(store, target).await?;
    // What is asked is small and waited for.
    let _ = stream.set_nodelay(true);
    let name = ServerName::try_from(target.host.clone()).map_err(SendError::Name)?;
    let stream = tls.connect(name, stream).await.map_err(SendError::Tls)?;
    let shaken = http1::handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(SendError::Http)?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "webhook connection closed");
        }
    });
    Ok(sender)
}

/// The first address to be tried, as a URL.
pub(super) async fn location(store: &dyn Store, target: &Target) -> Result<String, SendError> {
    let addresses = addresses(store, target).await?;
    let (host, port) = addresses.first().ok_or(SendError::NoAddress)?;
    Ok(format!("https://{}", host_and_port(host, *port)))
}

/// The addresses to try, in order.
async fn addresses(store: &dyn Store, target: &Target) -> Result<Vec<(String, u16)>, SendError> {
    match &target.service {
        Some(service) => backend::addresses(store, service).await.map_err(SendError::Backend),
        None => Ok(vec![(target.host.clone(), target.port)]),
    }
}

/// Reaches the first address that can be reached.
async fn dial(store: &dyn Store, target: &Target) -> Result<TcpStream, SendError> {
    let mut failed = SendError::NoAddress;
    for (host, port) in addresses(store, target).await? {
        match dial_host(&host, port).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Reaches the first address of a host that can be reached; of those that cannot, the first is
/// told.
async fn dial_host(host: &str, port: u16) -> Result<TcpStream, SendError> {
    let found = lookup_host((host, port)).await;
    let addresses = found.map_err(|_| SendError::Lookup { host: host.to_owned() })?;
    let mut failed = None;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => {
                failed.get_or_insert(SendError::Dial { address: address.to_string(), error });
            }
        }
    }
    Err(failed.unwrap_or(SendError::NoAddress))
}

/// As Go writes them together.
fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
