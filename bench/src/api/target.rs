//! Whom the requests go to: a server over HTTPS, or the service itself.

use std::path::Path;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use steersman_cluster::ApiServer;
use tower::ServiceExt;

use super::requests::Call;
use super::wire::{self, Server};

/// A system under test.
pub(super) enum Target {
    Https(Server),
    Service(ApiServer),
}

/// One client's way to it; it carries one request at a time.
pub(super) enum Connection {
    Https(wire::Connection),
    Service(ApiServer),
}

/// Something that comes piece by piece.
pub(super) enum Stream {
    Https(hyper::body::Incoming),
    Service(http_body_util::combinators::UnsyncBoxBody<Bytes, String>),
}

impl Target {
    /// The server of a kubeconfig.
    pub(super) async fn https(kubeconfig: &Path) -> Result<Self, String> {
        Ok(Self::Https(wire::server(kubeconfig).await?))
    }

    /// The service of a cluster in this process.
    pub(super) fn service(api: ApiServer) -> Self {
        Self::Service(api)
    }

    pub(super) async fn connect(&self) -> Result<Connection, String> {
        Ok(match self {
            Self::Https(server) => Connection::Https(server.connect().await?),
            Self::Service(api) => Connection::Service(api.clone()),
        })
    }
}

impl Connection {
    /// Sends a request and reads the whole answer, which must be a success.
    pub(super) async fn ask(&mut self, request: Call) -> Result<Bytes, String> {
        match self {
            Self::Https(connection) => {
                let response = connection.send(request).await?;
                whole(response).await
            }
            Self::Service(api) => {
                let response = api.clone().oneshot(request.map(Full::new)).await;
                whole(response.map_err(|error| error.to_string())?).await
            }
        }
    }

    /// Sends a request whose answer comes piece by piece.
    pub(super) async fn open(&mut self, request: Call) -> Result<Stream, String> {
        match self {
            Self::Https(connection) => {
                Ok(Stream::Https(connection.send(request).await?.into_body()))
            }
            Self::Service(api) => {
                let response = api.clone().oneshot(request.map(Full::new)).await;
                let body = response.map_err(|error| error.to_string())?.into_body();
                Ok(Stream::Service(body.map_err(|error| error.to_string()).boxed_unsync()))
            }
        }
    }
}

impl Stream {
    /// The next piece, or nothing at the end.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        loop {
            let frame = match self {
                Self::Https(body) => body.frame().await?.ok()?,
                Self::Service(body) => body.frame().await?.ok()?,
            };
            if let Ok(data) = frame.into_data() {
                return Some(data);
            }
        }
    }
}

async fn whole<B>(response: http::Response<B>) -> Result<Bytes, String>
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    if status.is_success() {
        return Ok(body);
    }
    Err(format!("{status}: {}", String::from_utf8_lossy(&body)))
}
