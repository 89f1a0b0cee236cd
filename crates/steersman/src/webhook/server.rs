//! The webhook server: HTTPS for the API server, or a handler to call without a socket.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::{Either, pending};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::authentication::{self, Authenticator, ErasedAuthenticator};
use super::conversion::Conversion;
use super::defaulter::{CustomDefaulter, Defaulter};
use super::handler::{self, ErasedHandler, Handler};
use super::registration::{Phase, Webhook};
use super::shared_ca::{Keeper, SharedCa};
use super::site::{BuildError, Site};
use super::validator::{CustomValidator, Validator};
use crate::error::{Error, Result};
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
    /// Through which a shared authority is kept.
    client: Option<kube::Client>,
    started: Arc<AtomicBool>,
}

/// Where the server's certificate comes from.
enum Source {
    Files { certificate: PathBuf, key: PathBuf },
    SelfSigned(Box<SelfSigned>),
    Shared(Box<SharedCa>, Certificates),
}

impl WebhookServer {
    /// Begins a server without webhooks, for the program of this name. Its configurations are
    /// called `<name>-mutating` and `<name>-validating`, whoever writes them: they belong to the
    /// whole cluster, so each program in it needs a name of its own.
    pub fn builder(name: impl Into<String>) -> WebhookServerBuilder {
        WebhookServerBuilder {
            name: name.into(),
            parts: Vec::new(),
            address: Some(SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT))),
            certificates: Chosen::Directory(CERT_DIR.into()),
        }
    }

    /// Answers reviews without a socket: for tests, and for whoever has a server already.
    pub fn handler(&self) -> serve::Handler {
        let site = Arc::clone(&self.site);
        serve::handler(move |request| Arc::clone(&site).answer(request))
    }

    /// The name of the program, which its configurations begin with.
    pub fn name(&self) -> &str {
        &self.name
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

    /// The authority that signed its certificate, in PEM, if it made that itself and for itself.
    pub fn ca(&self) -> Option<&str> {
        match &self.certificates {
            Source::SelfSigned(made) => Some(&made.ca),
            Source::Files { .. } | Source::Shared(..) => None,
        }
    }

    /// The certificate that it makes, for whoever has a server already; kept up to date while
    /// this one runs. `None` if it comes from files.
    pub fn certificates(&self) -> Option<&Certificates> {
        match &self.certificates {
            Source::SelfSigned(made) => Some(&made.certificates),
            Source::Shared(_, certificates) => Some(certificates),
            Source::Files { .. } => None,
        }
    }

    /// The authority that it shares with other replicas, if it does.
    pub(crate) fn shared_ca(&self) -> Option<&SharedCa> {
        match &self.certificates {
            Source::Shared(shared, _) => Some(shared),
            Source::Files { .. } | Source::SelfSigned(_) => None,
        }
    }

    /// Keeps a shared authority through this client. A manager gives it its own.
    #[must_use]
    pub fn through(mut self, client: kube::Client) -> Self {
        self.client = Some(client);
        self
    }

    /// The same unless it was given another.
    pub(crate) fn or_through(mut self, client: &kube::Client) -> Self {
        self.client.get_or_insert_with(|| client.clone());
        self
    }

    /// Serves until `shutdown`, then lets what is under way end. Fails if it cannot listen or has
    /// no certificate.
    pub async fn run(self, shutdown: CancellationToken) -> Result<()> {
        let listener = match self.address {
            Some(address) => Some(listen(address).await?),
            None => None,
        };
        self.serve(listener, shutdown).await
    }

    /// Like [`run`](Self::run), on a listener that is there already.
    pub async fn run_on(self, listener: TcpListener, shutdown: CancellationToken) -> Result<()> {
        self.serve(Some(listener), shutdown).await
    }

    async fn serve(self, listener: Option<TcpListener>, shutdown: CancellationToken) -> Result<()> {
        let mut keeper = self.keeper()?;
        if let Some(keeper) = &mut keeper {
            tokio::select! {
                () = keeper.begin() => {}
                () = shutdown.cancelled() => return Ok(()),
            }
        }
        let serving = match listener {
            Some(listener) => {
                let server = Server::new(listener).tls(self.shown()?).body_max(BODY_MAX);
                tracing::info!(address = %server.local_addr()?, "serving webhooks");
                Either::Left(server.run(self.handler(), shutdown))
            }
            None => Either::Right(shutdown.cancelled_owned()),
        };
        let keeping = keeper.map_or(Either::Right(pending()), |keeper| Either::Left(keeper.keep()));
        self.started.store(true, Ordering::Release);
        tokio::select! {
            () = serving => {}
            () = keeping => {}
        }
        self.started.store(false, Ordering::Release);
        Ok(())
    }

    /// What keeps its shared authority, if it has one.
    fn keeper(&self) -> Result<Option<Keeper>> {
        let Source::Shared(shared, certificates) = &self.certificates else { return Ok(None) };
        let Some(client) = self.client.clone() else {
            let text = "a server with a shared CA needs a client: `Manager::webhooks` gives it one, \
                        or `.through(client)` does";
            return Err(Error::message(text));
        };
        Ok(Some(shared.keeper(&self.name, client, certificates.clone())))
    }

    /// What connections are shown.
    fn shown(&self) -> Result<Certificates, CertificateError> {
        match &self.certificates {
            Source::Files { certificate, key } => Certificates::from_files(certificate, key),
            Source::SelfSigned(made) => Ok(made.certificates.clone()),
            Source::Shared(_, certificates) => Ok(certificates.clone()),
        }
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
    Authenticator(String, ErasedAuthenticator),
    Conversion(Conversion),
}

/// Where the certificate is to come from.
enum Chosen {
    Directory(PathBuf),
    Files(PathBuf, PathBuf),
    SelfSigned(Vec<String>),
    Shared(Box<SharedCa>),
}

/// A webhook server that is not built yet.
#[must_use]
pub struct WebhookServerBuilder {
    name: String,
    parts: Vec<Part>,
    address: Option<SocketAddr>,
    certificates: Chosen,
}

impl WebhookServerBuilder {
    /// Another name than the one it was [begun](WebhookServer::builder) with.
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

    /// Says at this path whose a token is. The API server learns of it from a file, not from a
    /// configuration.
    pub fn authenticates(
        mut self,
        path: impl Into<String>,
        authenticator: impl Authenticator,
    ) -> Self {
        let authenticator = authentication::erase(authenticator);
        self.parts.push(Part::Authenticator(path.into(), authenticator));
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

    /// Makes an authority and a certificate for these hosts, which nobody else knows: for tests, and
    /// for a single replica. Who calls must trust [`WebhookServer::ca`].
    pub fn self_signed(mut self, hosts: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.certificates = Chosen::SelfSigned(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Makes its certificate with an authority that all replicas share, and sees to it that the API
    /// server trusts that.
    pub fn shared_ca(mut self, shared: SharedCa) -> Self {
        self.certificates = Chosen::Shared(Box::new(shared));
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
            client: None,
            started: Arc::default(),
        };
        server.have_its_ca_trusted();
        Ok(server)
    }
}

impl WebhookServer {
    /// Lets the shared authority be trusted where this server is registered.
    fn have_its_ca_trusted(&mut self) {
        // Only what there is: who runs it may have no right to look at the rest.
        let registered = |phase| self.site.registrations(phase).next().is_some();
        let configuration = |phase| registered(phase).then(|| self.configuration_name(phase));
        let mutating = configuration(Phase::Mutating);
        let validating = configuration(Phase::Validating);
        let converted = self.converted();
        if let Source::Shared(shared, _) = &mut self.certificates {
            shared.injection.mutating.extend(mutating);
            shared.injection.validating.extend(validating);
            shared.injection.definitions.extend(converted);
        }
    }
}

fn add(site: &mut Site, part: Part) -> Result<(), BuildError> {
    match part {
        Part::Webhook(webhook) => site.add(*webhook),
        Part::Raw(path, handler) => site.handle(&path, handler),
        Part::Authenticator(path, authenticator) => site.authenticate(&path, authenticator),
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
        Chosen::Shared(shared) => Source::Shared(shared, Certificates::pending()),
    })
}
