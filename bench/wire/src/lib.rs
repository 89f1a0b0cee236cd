//! HTTP/1.1 over TLS with as little around it as possible, for what measures or compares
//! servers: nothing is retried, added or hidden but the host and the token.

mod trust;

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

pub use trust::trusting;

/// Where a server is, and how to be let in.
#[derive(Clone)]
pub struct Server {
    address: String,
    host: String,
    tls: Arc<ClientConfig>,
    token: Option<HeaderValue>,
}

/// An open connection; it carries one request at a time.
pub struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
    token: Option<HeaderValue>,
}

impl Server {
    /// The server of an address such as `https://127.0.0.1:6443`, with the bearer token of the
    /// user to be there, if it is a token that tells.
    pub fn new(url: &str, tls: ClientConfig, token: Option<&str>) -> Result<Self, String> {
        let uri: Uri = url.parse().map_err(|error| format!("{url}: {error}"))?;
        let host = uri.host().ok_or_else(|| format!("{url}: a server without a host"))?.to_owned();
        let address = format!("{host}:{}", uri.port_u16().unwrap_or(443));
        let token = token.map(|token| HeaderValue::from_str(&format!("Bearer {token}")));
        let token = token.transpose().map_err(|error| error.to_string())?;
        Ok(Self { address, host, tls: Arc::new(tls), token })
    }

    /// Its host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Opens a connection.
    pub async fn connect(&self) -> Result<Connection, String> {
        let stream = TcpStream::connect(&self.address).await.map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let name = ServerName::try_from(self.host.clone()).map_err(|error| error.to_string())?;
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        let stream = connector.connect(name, stream).await.map_err(|error| error.to_string())?;
        let (sender, connection) =
            handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        tokio::spawn(async move { drop(connection.await) });
        let host = HeaderValue::from_str(&self.address).map_err(|error| error.to_string())?;
        Ok(Connection { sender, host, token: self.token.clone() })
    }
}

impl Connection {
    /// Sends a request; a header that says who asks stays as it is.
    pub async fn send(&mut self, request: Request<Bytes>) -> Result<Response<Incoming>, String> {
        let mut request = request.map(Full::new);
        request.headers_mut().insert(header::HOST, self.host.clone());
        if let Some(token) = &self.token {
            request.headers_mut().entry(header::AUTHORIZATION).or_insert_with(|| token.clone());
        }
        self.sender.ready().await.map_err(|error| error.to_string())?;
        self.sender.send_request(request).await.map_err(|error| error.to_string())
    }
}
