//! HTTP/1.1 over TLS with as little around it as possible: what is measured is the server.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use kube::client::ConfigExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::requests::Call;

/// Where a server is, and how to be let in.
pub(super) struct Server {
    address: String,
    host: String,
    tls: Arc<ClientConfig>,
    token: Option<HeaderValue>,
}

/// An open connection.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: HeaderValue,
    token: Option<HeaderValue>,
}

impl Server {
    /// The server of a kubeconfig.
    pub(super) async fn of(kubeconfig: &Path) -> Result<Self, String> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(|error| error.to_string())?;
        let token = token(&kubeconfig)?;
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let config = config.map_err(|error| error.to_string())?;
        let tls = config.rustls_client_config().map_err(|error| error.to_string())?;
        let url = &config.cluster_url;
        let host = url.host().ok_or("a server without a host")?.to_owned();
        let address = format!("{host}:{}", url.port_u16().unwrap_or(443));
        Ok(Self { address, host, tls: Arc::new(tls), token })
    }

    pub(super) async fn connect(&self) -> Result<Connection, String> {
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

/// The header of the kubeconfig's user, if it is known by a token.
fn token(kubeconfig: &Kubeconfig) -> Result<Option<HeaderValue>, String> {
    let users = serde_json::to_value(&kubeconfig.auth_infos).map_err(|error| error.to_string())?;
    let Some(token) = users[0]["user"]["token"].as_str() else { return Ok(None) };
    let header = HeaderValue::from_str(&format!("Bearer {token}"));
    header.map(Some).map_err(|error| error.to_string())
}

impl Connection {
    pub(super) async fn send(&mut self, request: Call) -> Result<Response<Incoming>, String> {
        let mut request = request.map(Full::new);
        request.headers_mut().insert(header::HOST, self.host.clone());
        if let Some(token) = &self.token {
            request.headers_mut().insert(header::AUTHORIZATION, token.clone());
        }
        self.sender.ready().await.map_err(|error| error.to_string())?;
        self.sender.send_request(request).await.map_err(|error| error.to_string())
    }
}
