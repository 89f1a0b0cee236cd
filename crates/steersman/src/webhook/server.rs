//! The webhook server: HTTPS for the API server, or a handler to call without a socket.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::Either;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::conversion::Conversion;
use super::defaulter::{CustomDefaulter, Defaulter};
use super::handler::{self, ErasedHandler, Handler};
use super::injection::CaInjection;
use super::registration::Webhook;
use super::site::{BuildError, Site};
use super::validator::{CustomValidator, Validator};
use crate::error::Result;
use crate::metrics::Metrics;
use crate::object::Object;
use crate::serve::{self, CertificateError, Certificates, SelfSigned, Server};

/// Where it listens unless said otherwise, as controller-runtime's does.
const PORT: u16 = 9443;
/// Where certificates are looked for unless said otherwise, as controller-runtime does.
const CERT_DIR: &str = "/tmp/k8s-webhook-server/serving-certs";
/// What one request may weigh. A ConversionReview brings whole lists; what an AdmissionReview
/// may weigh is checked when it is read.
const BODY_MAX: usize = 64 * 1024 * 1024;

/// Serves webhooks. Give it to the manager, or [`run`](Self::run) it.
pub struct WebhookServer {
    pub(super) name: String,
    pub(super) site: Arc<Site>,
    address: Option<SocketAddr>,
    certificates: Source,
    injection: Option<CaInjection>,
    started: Arc<AtomicBool>,
}

/// Where the server's certificate comes from.
enum Source {
    Files { certificate: PathBuf, key: PathBuf },
    SelfSigned(Box<SelfSigned>),
}

impl WebhookServer {
    /// Begins a server without webhooks.
    pub fn builder() -> WebhookServerBuilder {
        WebhookServerBuilder {
            name: "webhooks".to_owned(),
            parts: Vec::new(),
            address: Some(SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT))),
            certificates: Chosen::Directory(CERT_DIR.into()),
            injection: None,
        }
    }

    /// Answers reviews without a socket: for tests, and for whoever has a server already.
    pub fn handler(&self) -> serve::Handler {
        let site = Arc::clone(&self.site);
        serve::handler(move |request| Arc::clone(&site).answer(request))
    }

    /// Reports what it counts.
    pub(crate) fn register_metrics(&self, metrics: &Metrics) {
        metrics.with_registry(|registry| self.site.metrics.register(registry));
    }

    /// Tells whether it takes connections; for a readiness check.
    pub(crate) fn started(&self) -> impl Fn() -> bool + Clone + Send + Sync + 'static {
        let started = Arc::clone(&self.started);
        move || started.load(Ordering::Acquire)
    }

    /// The authority that signed its certificate, in PEM, if it made that itself.
    pub fn ca(&self) -> Option<&str> {
        match &self.certificates {
            Source::SelfSigned(made) => Some(&made.ca),
            Source::Files { .. } => None,
        }
    }

    /// Serves until `shutdown`, then lets what is under way end. Fails if it cannot listen or has
    /// no certificate.
    pub async fn run(self, shutdown: CancellationToken) -> Result<()> {
        let Some(address) = self.address else {
            self.started.store(true, Ordering::Release);
            shutdown.cancelled().await;
            return Ok(());
        };
        let listener = listen(address).await?;
        self.run_on(listener, shutdown).await
    }

    /// Like [`run`](Self::run), on a listener that is there already.
    pub async fn run_on(self, listener: TcpListener, shutdown: CancellationToken) -> Result<()> {
        let handler = self.handler();
        let ca = self.ca().map(str::to_owned);
        let certificates = match self.certificates {
            Source::Files { certificate, key } => Certificates::from_files(certificate, key)?,
            Source::SelfSigned(made) => made.certificates,
        };
        let server = Server::new(listener).tls(certificates).body_max(BODY_MAX);
        let address = server.local_addr()?;
        tracing::info!(%address, "serving webhooks");
        self.started.store(true, Ordering::Release);
        let keep = match (self.injection, ca) {
            (Some(injection), Some(ca)) => Either::Left(injection.keep(ca)),
            _ => Either::Right(std::future::pending()),
        };
        tokio::select! {
            () = server.run(handler, shutdown) => {}
            () = keep => {}
        }
        self.started.store(false, Ordering::Release);
        Ok(())
    }
}

/// Takes an address. Where there is no IPv6, every address means every one of IPv4.
async fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(error)
            if address.ip() == Ipv6Addr::UNSPECIFIED
                && error.kind() != std::io::ErrorKind::AddrInUse =>
        {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }
}

/// What a server is given before it is built, in order.
enum Part {
    Webhook(Box<Webhook>),
    Raw(String, ErasedHandler),
    Conversion(Conversion),
}

/// Where the certificate is to come from.
enum Chosen {
    Directory(PathBuf),
    Files(PathBuf, PathBuf),
    SelfSigned(Vec<String>),
}

/// A webhook server that is not built yet.
#[must_use]
pub struct WebhookServerBuilder {
    name: String,
    parts: Vec<Part>,
    address: Option<SocketAddr>,
    certificates: Chosen,
    injection: Option<CaInjection>,
}

impl WebhookServerBuilder {
    /// The name that its configurations begin with: `<name>-mutating`, `<name>-validating`.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the defaults that a kind knows itself.
    pub fn defaults<K: Defaulter>(self) -> Self {
        self.with(Webhook::defaults::<K>())
    }

    /// Sets defaults on objects of a kind.
    pub fn defaults_with<K: Object>(self, defaulter: impl CustomDefaulter<K>) -> Self {
        self.with(Webhook::defaults_with(defaulter))
    }

    /// Makes the checks that a kind knows itself.
    pub fn validates<K: Validator>(self) -> Self {
        self.with(Webhook::validates::<K>())
    }

    /// Validates objects of a kind.
    pub fn validates_with<K: Object>(self, validator: impl CustomValidator<K>) -> Self {
        self.with(Webhook::validates_with(validator))
    }

    /// Adds a webhook of which there is more to say.
    pub fn with(mut self, webhook: Webhook) -> Self {
        self.parts.push(Part::Webhook(Box::new(webhook)));
        self
    }

    /// Serves a handler that somebody else registers with the API server.
    pub fn handle(mut self, path: impl Into<String>, handler: impl Handler) -> Self {
        self.parts.push(Part::Raw(path.into(), handler::erase(handler)));
        self
    }

    /// Converts between the versions of a kind, at `/convert`.
    pub fn converts(mut self, conversion: impl Into<Conversion>) -> Self {
        self.parts.push(Part::Conversion(conversion.into()));
        self
    }

    /// Listens at this port of every address; 9443 unless said otherwise.
    pub fn port(self, port: u16) -> Self {
        self.address(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))
    }

    /// Listens at this address.
    pub fn address(mut self, address: SocketAddr) -> Self {
        self.address = Some(address);
        self
    }

    /// Does not listen at all; it is reached through [`WebhookServer::handler`].
    pub fn in_process(mut self) -> Self {
        self.address = None;
        self
    }

    /// Shows the certificate `tls.crt` with the key `tls.key` of this folder, and looks for
    /// changes of them: `/tmp/k8s-webhook-server/serving-certs` unless said otherwise.
    pub fn cert_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.certificates = Chosen::Directory(folder.into());
        self
    }

    /// Shows this certificate with this key, and looks for changes of them.
    pub fn certificate(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.certificates = Chosen::Files(certificate.into(), key.into());
        self
    }

    /// Makes an authority and a certificate for these hosts. For development: who calls must
    /// trust [`WebhookServer::ca`], which [`inject_ca`](Self::inject_ca) can see to.
    pub fn self_signed(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.certificates = Chosen::SelfSigned(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Writes the authority of a self-signed certificate where the API server looks for it. For one
    /// replica: several have an authority each, and would replace each other's.
    pub fn inject_ca(mut self, injection: CaInjection) -> Self {
        self.injection = Some(injection);
        self
    }

    /// The server, if everything fits together.
    pub fn build(self) -> Result<WebhookServer> {
        let mut site = Site::default();
        for part in self.parts {
            add(&mut site, part)?;
        }
        let mut server = WebhookServer {
            name: self.name,
            site: Arc::new(site),
            address: self.address,
            certificates: source(self.certificates)?,
            injection: None,
            started: Arc::default(),
        };
        server.injection = self.injection.map(|injection| injection.of(&server));
        Ok(server)
    }
}

fn add(site: &mut Site, part: Part) -> Result<(), BuildError> {
    match part {
        Part::Webhook(webhook) => site.add(*webhook),
        Part::Raw(path, handler) => site.handle(&path, handler),
        Part::Conversion(conversion) => site.convert(conversion),
    }
}

fn source(chosen: Chosen) -> Result<Source, CertificateError> {
    Ok(match chosen {
        Chosen::Directory(folder) => {
            Source::Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key") }
        }
        Chosen::Files(certificate, key) => Source::Files { certificate, key },
        Chosen::SelfSigned(hosts) => {
            Source::SelfSigned(Box::new(Certificates::self_signed(hosts)?))
        }
    })
}
