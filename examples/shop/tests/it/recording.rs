//! A door to the cluster that notes what comes through it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http::{Method, Request};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use steersman_cluster::ApiServer;
use tokio::net::TcpListener;
use tower::Service;

/// A request as access control sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub verb: String,
    pub group: String,
    /// With its subresource: `shops/status`.
    pub resource: String,
    pub namespace: Option<String>,
    pub name: Option<String>,
    pub path: String,
}

/// Where the cluster is served, and what was asked there.
pub struct Recording {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Recording {
    /// Serves the cluster, without TLS, as long as the test runs.
    pub async fn serve(api: ApiServer) -> std::io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (api, notes) = (api.clone(), Arc::clone(&notes));
                let answer = service_fn(move |request: Request<Incoming>| {
                    notes.lock().unwrap().push(Asked::of(&request));
                    api.clone().call(request)
                });
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    let _ = server.serve_connection(TokioIo::new(stream), answer).await;
                });
            }
        });
        Ok(Self { address, asked })
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn kubeconfig(&self) -> String {
        let server = format!("http://{}", self.address);
        let config = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server}}],
            "users": [{"name": "test", "user": {}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        });
        config.to_string()
    }
}

impl Asked {
    /// As the server's RequestInfo: `/apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/NAME/SUB`.
    fn of(request: &Request<Incoming>) -> Self {
        let path = request.uri().path();
        let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
        let group = match parts.next() {
            Some("apis") => parts.next().unwrap_or_default(),
            _ => "", // the core group, or no resource at all
        };
        parts.next(); // the version
        let mut namespace = None;
        if parts.peek() == Some(&"namespaces") {
            let mut ahead = parts.clone();
            ahead.next();
            let named = ahead.next();
            if ahead.peek().is_some() {
                namespace = named.map(str::to_owned);
                parts = ahead;
            }
        }
        let resource = parts.next().unwrap_or_default();
        let name = parts.next().map(str::to_owned);
        let subresource = parts.next().map(|sub| format!("/{sub}")).unwrap_or_default();
        let watches = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let verb = match (request.method(), &name) {
            (&Method::GET, _) if watches => "watch",
            (&Method::GET, None) => "list",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, Some(_)) => "delete",
            (&Method::DELETE, None) => "deletecollection",
            _ => "get",
        };
        Self {
            verb: verb.to_owned(),
            group: group.to_owned(),
            resource: format!("{resource}{subresource}"),
            namespace,
            name,
            path: path.to_owned(),
        }
    }
}
