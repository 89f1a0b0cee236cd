//! What the manager serves over HTTP, and where.
//!
//! Health is for everybody who can reach the address, since probes bring no token. Metrics and
//! the debug page can ask for one. The debug page names objects and shows errors, so it is
//! served only where callers are authenticated or local, unless it is asked for.

use std::net::SocketAddr;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};

use super::access::Access;
use crate::debug::Inspection;
use crate::health::Health;
use crate::metrics::Metrics;
use crate::serve::{self, Certificates, Handler};

/// What is served at an address.
#[derive(Clone)]
pub struct Site {
    pub(super) address: SocketAddr,
    pub(super) tls: Option<Certificates>,
    health: bool,
    metrics: bool,
    debug: Option<bool>,
    authenticated: bool,
    routes: Vec<(String, Handler)>,
}

impl Site {
    /// Health, metrics and debug page at one address; port 0 takes any that is free.
    pub fn all(address: impl Into<SocketAddr>) -> Self {
        Self { health: true, ..Self::metrics(address) }
    }

    /// Health alone; controller-runtime has it at port 8081.
    pub fn health(address: impl Into<SocketAddr>) -> Self {
        Self { health: true, metrics: false, debug: Some(false), ..Self::metrics(address) }
    }

    /// Metrics and debug page; controller-runtime has metrics at port 8080.
    pub fn metrics(address: impl Into<SocketAddr>) -> Self {
        Self {
            address: address.into(),
            tls: None,
            health: false,
            metrics: true,
            debug: None,
            authenticated: false,
            routes: Vec::new(),
        }
    }

    /// Speaks HTTPS with these certificates.
    #[must_use]
    pub fn tls(mut self, certificates: Certificates) -> Self {
        self.tls = Some(certificates);
        self
    }

    /// Asks for a bearer token, except for health. A TokenReview on the cluster says whose it
    /// is, and by a SubjectAccessReview whether that user may `get` the path, such as the
    /// non-resource URL `/metrics`. Use TLS with it: tokens are secrets.
    #[must_use]
    pub fn authenticated(mut self) -> Self {
        self.authenticated = true;
        self
    }

    /// Serves the debug page, or does not. Unless said, it is served where callers are
    /// authenticated, and on loopback addresses.
    #[must_use]
    pub fn debug(mut self, serve: bool) -> Self {
        self.debug = Some(serve);
        self
    }

    /// Serves something else under a path and everything below it. Callers are authenticated as
    /// they are for metrics.
    #[must_use]
    pub fn route(mut self, path: impl Into<String>, handler: Handler) -> Self {
        self.routes.push((path.into(), handler));
        self
    }

    pub(super) fn has_metrics(&self) -> bool {
        self.metrics
    }

    fn has_debug(&self) -> bool {
        self.debug.unwrap_or(self.authenticated || self.address.ip().is_loopback())
    }

    /// What answers the requests.
    pub(super) fn handler(&self, content: &Content) -> Handler {
        let site = Served {
            access: self.authenticated.then(|| content.access.clone()),
            site: self.clone(),
            content: content.clone(),
        };
        serve::handler(move |request| {
            let site = site.clone();
            async move { site.answer(request).await }
        })
    }
}

/// What sites show.
#[derive(Clone)]
pub(super) struct Content {
    pub(super) health: Health,
    pub(super) metrics: Metrics,
    pub(super) inspection: Inspection,
    pub(super) access: Access,
}

/// A site with what it shows.
#[derive(Clone)]
struct Served {
    site: Site,
    content: Content,
    access: Option<Access>,
}

impl Served {
    async fn answer(&self, request: Request<Bytes>) -> Response<Bytes> {
        if self.site.health
            && let Some(answer) = self.content.health.answer(&request).await
        {
            return answer;
        }
        if let Some(access) = &self.access
            && let Err(refused) = access.check(&request).await
        {
            return refused;
        }
        let path = request.uri().path().trim_end_matches('/').to_owned();
        if let Some((_, handler)) =
            self.site.routes.iter().find(|(route, _)| is_below(&path, route))
        {
            return handler(request).await;
        }
        let known = match path.as_str() {
            "/metrics" => self.site.metrics,
            "/debug" | "/debug/json" => self.site.has_debug(),
            _ => false,
        };
        match () {
            () if !known => serve::text(StatusCode::NOT_FOUND, "404 page not found\n"),
            () if !matches!(*request.method(), Method::GET | Method::HEAD) => {
                serve::text(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed\n")
            }
            () if path == "/metrics" => self.metrics(&request),
            () => self.content.inspection.answer(&request),
        }
    }

    fn metrics(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let accept = request.headers().get(header::ACCEPT).and_then(|it| it.to_str().ok());
        let (content_type, text) = self.content.metrics.negotiated(accept);
        serve::answer(StatusCode::OK, content_type, text)
    }
}

fn is_below(path: &str, route: &str) -> bool {
    let route = route.trim_end_matches('/');
    path.strip_prefix(route).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
