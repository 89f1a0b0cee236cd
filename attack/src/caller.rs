//! Those who talk to a server: as whom, over what, and what they are answered.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{Method, Request};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Limited};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use steersman_bench_wire::{Connection, Server, trusting};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) const JSON: &str = "application/json";
pub(crate) const YAML: &str = "application/yaml";

/// The longest that anybody waits for an answer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What is sent with a request, or back, as it comes.
pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// How much of an answer is kept.
const ANSWER_MAX: usize = 256 << 20;

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Stranger,
    Attacker,
    Innocent,
    Admin,
}

/// Somebody who knows where a server is.
#[derive(Clone)]
pub(crate) struct Caller {
    address: String,
    who: Who,
    server: Server,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) content: &'static str,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: Bytes,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
}

impl Who {
    fn token(self) -> Option<&'static str> {
        match self {
            Self::Stranger => None,
            Self::Attacker => Some("attacker-token"),
            Self::Innocent => Some("innocent-token"),
            Self::Admin => Some("admin-token"),
        }
    }
}

impl Ask {
    /// A request with a document, or without.
    pub(crate) fn new(method: Method, path: impl Into<String>, body: impl Into<Bytes>) -> Self {
        let (content, headers) = (JSON, Vec::new());
        Self { method, path: path.into(), content, headers, body: body.into() }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path, Bytes::new())
    }

    pub(crate) fn post(path: impl Into<String>, document: &Value) -> Self {
        Self::new(Method::POST, path, document.to_string())
    }

    pub(crate) fn put(path: impl Into<String>, document: &Value) -> Self {
        Self::new(Method::PUT, path, document.to_string())
    }

    pub(crate) fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, Bytes::new())
    }

    /// The same with a body of another kind.
    pub(crate) fn of(self, content: &'static str) -> Self {
        Self { content, ..self }
    }

    /// The same with one more header.
    pub(crate) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    fn request(&self) -> Result<Request<Bytes>, String> {
        let mut request = Request::builder().method(&self.method).uri(&self.path);
        if !self.body.is_empty() {
            request = request.header(CONTENT_TYPE, self.content);
        }
        for (name, value) in &self.headers {
            request = request.header(*name, *value);
        }
        request.body(self.body.clone()).map_err(|error| error.to_string())
    }
}

impl Answer {
    /// Whether it was done.
    pub(crate) fn is_good(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The answer if it was done, else what it says.
    pub(crate) fn good(self) -> Result<Self, String> {
        match self.is_good() {
            true => Ok(self),
            false => Err(format!("{}: {}", self.status, String::from_utf8_lossy(&self.body))),
        }
    }

    /// The document in it.
    pub(crate) fn document(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

impl Caller {
    /// Somebody who knows the server of an address.
    pub(crate) fn new(address: &str, who: Who) -> Result<Self, String> {
        let server = Server::new(&format!("https://{address}"), trusting()?, who.token())?;
        Ok(Self { address: address.to_owned(), who, server })
    }

    /// The administrator by certificate, as a kubeconfig describes them.
    pub(crate) fn by_certificate(address: &str, kubeconfig: &Path) -> Result<Self, String> {
        let tls = of_kubeconfig(kubeconfig)?;
        let server = Server::new(&format!("https://{address}"), tls, None)?;
        Ok(Self { address: address.to_owned(), who: Who::Admin, server })
    }

    /// The server's host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Opens a connection for one request at a time.
    pub(crate) async fn connect(&self) -> Result<Connection, String> {
        within(self.server.connect()).await
    }

    /// Asks once, over a connection of its own.
    pub(crate) async fn ask(&self, ask: &Ask) -> Result<Answer, String> {
        ask_over(&mut self.connect().await?, ask).await
    }

    /// A connection without anything said on it but what TLS says.
    pub(crate) async fn shake_hands(&self, protocol: &str) -> Result<TlsStream<TcpStream>, String> {
        let mut tls = trusting()?;
        tls.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let connecting = async {
            let stream =
                TcpStream::connect(&self.address).await.map_err(|error| error.to_string())?;
            let host = self.address.rsplit_once(':').map_or("127.0.0.1", |(host, _)| host);
            let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
            let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
            stream.map_err(|error| error.to_string())
        };
        within(connecting).await
    }

    /// A connection for many requests at once.
    pub(crate) async fn streams(&self) -> Result<Streams, String> {
        let stream = TokioIo::new(self.shake_hands("h2").await?);
        let shaken = http2::Builder::new(TokioExecutor::new()).handshake(stream);
        let (sender, connection) =
            within(async { shaken.await.map_err(|e| e.to_string()) }).await?;
        tokio::spawn(async move { drop(connection.await) });
        Ok(Streams { sender, address: self.address.clone(), token: self.who.token() })
    }
}

/// A connection of HTTP/2.
#[derive(Clone)]
pub(crate) struct Streams {
    sender: http2::SendRequest<Body>,
    address: String,
    token: Option<&'static str>,
}

impl Streams {
    /// Whether the server has ended it.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends a request with whatever body, as it comes, and says how it was answered.
    pub(crate) async fn send(&mut self, ask: &Ask, body: Body) -> Result<Answer, String> {
        let uri = format!("https://{}{}", self.address, ask.path);
        let mut request = Request::builder().method(&ask.method).uri(uri);
        request = request.header(CONTENT_TYPE, ask.content);
        if let Some(token) = self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let request = request.body(body).map_err(|error| error.to_string())?;
        within(async {
            self.sender.ready().await.map_err(|error| error.to_string())?;
            let sent =
                self.sender.send_request(request).await.map_err(|error| error.to_string())?;
            answer(sent).await
        })
        .await
    }
}

/// Asks over a connection that is open.
pub(crate) async fn ask_over(connection: &mut Connection, ask: &Ask) -> Result<Answer, String> {
    let request = ask.request()?;
    within(async { answer(connection.send(request).await?).await }).await
}

async fn answer(response: http::Response<hyper::body::Incoming>) -> Result<Answer, String> {
    let status = response.status().as_u16();
    let body = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
    Ok(Answer { status, body: body.map_err(|error| error.to_string())?.to_bytes() })
}

async fn within<T>(work: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    timeout(PATIENCE, work).await.unwrap_or_else(|_| Err("timeout".to_owned()))
}

/// The authority that a kubeconfig names, as it stands there.
pub(crate) fn authority(kubeconfig: &Path) -> Result<String, String> {
    let document = read(kubeconfig)?;
    let authority = document.pointer("/clusters/0/cluster/certificate-authority-data");
    authority.and_then(Value::as_str).map(str::to_owned).ok_or_else(|| "no authority".to_owned())
}

fn read(kubeconfig: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(kubeconfig).map_err(|error| error.to_string())?;
    serde_saphyr::from_str(&text).map_err(|error| error.to_string())
}

/// TLS with the authority and the certificate of a kubeconfig.
fn of_kubeconfig(path: &Path) -> Result<ClientConfig, String> {
    let document = read(path)?;
    let data = |pointer: &str| {
        let text = document.pointer(pointer).and_then(Value::as_str);
        let text = text.ok_or_else(|| format!("the kubeconfig has no {pointer}"))?;
        STANDARD.decode(text).map_err(|error| error.to_string())
    };
    let unreadable = |error: rustls::pki_types::pem::Error| error.to_string();
    let mut roots = RootCertStore::empty();
    let authority = data("/clusters/0/cluster/certificate-authority-data")?;
    let authority = CertificateDer::from_pem_slice(&authority).map_err(unreadable)?;
    roots.add(authority).map_err(|error| error.to_string())?;
    let certificate = data("/users/0/user/client-certificate-data")?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
    let key = data("/users/0/user/client-key-data")?;
    let key = PrivateKeyDer::from_pem_slice(&key).map_err(unreadable)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(|e| e.to_string())?;
    let builder = builder.with_root_certificates(roots);
    builder.with_client_auth_cert(chain.map_err(unreadable)?, key).map_err(|e| e.to_string())
}
