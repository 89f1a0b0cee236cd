//! Clients of an API server: of nobody, of who has a token, of who has a certificate.

use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tower::Service;

use super::{Authorities, BootstrapToken, JoinError};

/// Whose client it is.
pub(super) enum As<'a> {
    /// Nobody's: of what is public.
    Anybody,
    Token(&'a BootstrapToken),
    /// A certificate and its key in PEM, encoded as kubeconfigs have it.
    Certificate(String),
}

/// A client of a server. Without authorities the server is not verified.
pub(super) async fn client(
    server: &str,
    authorities: Option<&Authorities>,
    who: As<'_>,
) -> Result<kube::Client, JoinError> {
    let user = match who {
        As::Anybody => json!({}),
        As::Token(token) => json!({"token": token.to_string()}),
        As::Certificate(both) => json!({"client-certificate-data": both, "client-key-data": both}),
    };
    let cluster = match authorities {
        Some(authorities) => {
            json!({"server": server, "certificate-authority-data": authorities.data()})
        }
        None => json!({"server": server, "insecure-skip-tls-verify": true}),
    };
    let failed = |error: &dyn std::error::Error| JoinError::server(server, error);
    let kubeconfig: Kubeconfig =
        serde_json::from_value(kubeconfig(&cluster, &user)).map_err(|error| failed(&error))?;
    let options = KubeConfigOptions::default();
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await;
    let mut config = config.map_err(|error| failed(&error))?;
    config.default_retry = false; // who waits for what is decided here
    kube::Client::try_from(config).map_err(|error| failed(&error))
}

/// A kubeconfig with one cluster and one user.
pub(super) fn kubeconfig(cluster: &Value, user: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default-cluster", "cluster": cluster}],
        "users": [{"name": "default-auth", "user": user}],
        "contexts": [{
            "name": "default-context",
            "context": {"cluster": "default-cluster", "user": "default-auth"},
        }],
        "current-context": "default-context",
    })
}

/// A client that can be replaced behind its users' backs. What is under way goes on with the one
/// before.
#[derive(Clone)]
pub(super) struct Replaceable {
    current: Arc<RwLock<kube::Client>>,
}

impl Replaceable {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { current: Arc::new(RwLock::new(client)) }
    }

    /// The client of those who need not know.
    pub(super) fn client(&self) -> kube::Client {
        kube::Client::new(self.clone(), "default")
    }

    pub(super) fn replace(&self, client: kube::Client) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = client;
    }
}

impl Service<Request<Body>> for Replaceable {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let current = self.current.read().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move { current.send(request).await })
    }
}
