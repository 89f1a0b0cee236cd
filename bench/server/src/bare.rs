//! HTTPS and JSON without an API: what is stored is parsed once and given back as it came.
//!
//! It is the ceiling of the benchmark `api`: the same listener libraries, the same bodies, and
//! nothing that Kubernetes asks for.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

type Objects = Arc<Mutex<HashMap<String, Bytes>>>;

/// A server that listens but does not answer yet.
pub struct Bare {
    listener: TcpListener,
    tls: TlsAcceptor,
}

impl Bare {
    /// Listens on any port; how to reach it is written to `kubeconfig`.
    pub async fn listen(kubeconfig: &Path) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let tls = super::identity(&listener, kubeconfig)?.server_config();
        let tls = TlsAcceptor::from(Arc::new(tls.map_err(|error| error.to_string())?));
        Ok(Self { listener, tls })
    }

    /// Answers until the process ends.
    pub async fn serve(self) -> Result<(), String> {
        let objects = Objects::default();
        loop {
            let (stream, _) = self.listener.accept().await.map_err(|error| error.to_string())?;
            tokio::spawn(connection(stream, self.tls.clone(), Arc::clone(&objects)));
        }
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, objects: Objects) {
    let _ = stream.set_nodelay(true);
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request| answer(request, Arc::clone(&objects)));
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    objects: Objects,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    if parts.method == Method::GET {
        let found = objects.lock().ok().and_then(|objects| objects.get(&path).cloned());
        return Ok(found.map_or_else(|| reply(StatusCode::NOT_FOUND, Bytes::new()), ok));
    }
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let Ok(object) = serde_json::from_slice::<Value>(&body) else {
        return Ok(reply(StatusCode::BAD_REQUEST, Bytes::new()));
    };
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let bytes = Bytes::from(object.to_string());
    if let Ok(mut objects) = objects.lock() {
        objects.insert(format!("{path}/{name}"), bytes.clone());
    }
    Ok(reply(StatusCode::CREATED, bytes))
}

fn ok(bytes: Bytes) -> Response<Full<Bytes>> {
    reply(StatusCode::OK, bytes)
}

fn reply(status: StatusCode, bytes: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(bytes));
    *response.status_mut() = status;
    response
}
