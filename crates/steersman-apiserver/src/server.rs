//! The service itself: what it is made of, and how HTTP enters it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response, header};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use steersman_store::Store;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, ServiceExt};

use crate::admission_plugins::PluginSelection;
use crate::admission_policies::Policies;
use crate::admission_registration::Webhooks;
use crate::apart::Apart;
use crate::audit::{Audit, Auditing};
use crate::authentication::{Asked, Authentication, Issuer};
use crate::authn::{ClientCertificate, Credentials};
use crate::authz::{AuthorizationMode, Authorizer};
use crate::caller::Caller;
use crate::clock::Clock;
use crate::fairness::Fairness;
use crate::metrics::Metrics;
use crate::negotiate::Wishes;
use crate::noted::{self, Noted};
use crate::on_demand::OnDemand;
use crate::pipeline::Pipeline;
use crate::random::Random;
use crate::read::bookmarks;
use crate::registry::Registry;
use crate::reply::{self, ResponseBody};
use crate::runtime_config::RuntimeConfig;
use crate::scrape::MetricsSource;
use crate::state::Server;
use crate::state::events::SharedEvents;
use crate::state::extended::Extended;
use crate::state::node_ports::NodePorts;
use crate::state::remotes::Remotes;
use crate::state::residents::Resident;
use crate::state::resting::Resting;
use crate::state::reviews::Reviewer;
use crate::state::service_ranges::ServiceRanges;
use crate::status::{Result, Status, panic_text};
use crate::token::Signer;
use crate::user::User;
use crate::webhook_client::{ExtensionHandler, Origins, WebhookHandler, pieces};
use crate::{
    aggregation, allocate, authn, bootstrap, crd, effects, flow_control, follow, policy, presence,
    starts, user,
};

/// How many requests are served at once, unless said otherwise: Kubernetes' 400 and 200.
pub const REQUESTS_INFLIGHT_MAX: u32 = 600;

/// What an [`ApiServer`] is made of.
#[derive(Clone)]
pub struct Config {
    /// Where objects are kept.
    pub store: Arc<dyn Store>,
    /// Where timestamps come from.
    pub clock: Clock,
    /// The seed of everything random: uids, generated names, jitter. It may be the same at
    /// another start over the same store, and what follows from it is not.
    pub seed: u64,
    /// Ends watches when cancelled; other requests are answered to the end.
    pub shutdown: CancellationToken,
    /// How users of the network are known.
    pub authentication: Authentication,
    /// How requests are authorised.
    pub authorization: AuthorizationMode,
    /// What is audited, and who is told.
    pub audit: Option<Auditing>,
    /// Which admission plug-ins are on. For a server by itself these are Kubernetes' own but for
    /// `ServiceAccount`, which would refuse every Pod: no controller makes the account `default`
    /// of a namespace.
    pub admission: PluginSelection,
    /// How many requests are served at once, but for those that are exempt; others wait. These are
    /// the seats that priority levels share: in Kubernetes the sum of `--max-requests-inflight` and
    /// `--max-mutating-requests-inflight`.
    pub requests_inflight_max: u32,
    /// Where Services get their cluster addresses from.
    pub service_ranges: ServiceRanges,
    /// What is served that Kubernetes serves on request only.
    pub runtime_config: RuntimeConfig,
    /// Servers behind this one that belong to it.
    pub residents: Vec<Resident>,
}

impl Config {
    /// A server over a store, with a seed of zero, nobody known but whom the cluster knows, and the
    /// plug-ins of a server beside which no controllers run.
    pub fn new(store: Arc<dyn Store>, clock: Clock) -> Self {
        Self {
            store,
            clock,
            seed: 0,
            shutdown: CancellationToken::new(),
            authentication: Authentication::default(),
            authorization: AuthorizationMode::default(),
            audit: None,
            admission: PluginSelection::without_controllers(),
            requests_inflight_max: REQUESTS_INFLIGHT_MAX,
            service_ranges: ServiceRanges::default(),
            runtime_config: RuntimeConfig::default(),
            residents: Vec::new(),
        }
    }

    /// The same as kube-apiserver's flags, as `/flagz` tells them.
    fn flags(&self) -> BTreeMap<&'static str, String> {
        let mode = match self.authorization {
            AuthorizationMode::NodeRbac => "Node,RBAC",
            AuthorizationMode::Rbac => "RBAC",
            AuthorizationMode::AlwaysAllow => "AlwaysAllow",
        };
        let [enabled, disabled] = self.admission.switched().map(|names| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("[{}]", names.join(","))
        });
        let served: Vec<String> =
            self.runtime_config.served().map(|version| format!("{version}=true")).collect();
        BTreeMap::from([
            ("authorization-mode", format!("[{mode}]")),
            ("disable-admission-plugins", disabled),
            ("enable-admission-plugins", enabled),
            // All seats are of one sort.
            ("max-requests-inflight", self.requests_inflight_max.to_string()),
            ("runtime-config", served.join(",")),
            ("service-cluster-ip-range", self.service_ranges.texts().join(",")),
        ])
    }
}

/// Kubernetes' API as a [`tower::Service`]. Clones share everything.
///
/// Requests without an [`user::User`] among their extensions come from within the process and
/// are cluster admins; [`crate::listen`] puts one into every request from the network.
#[derive(Clone)]
pub struct ApiServer {
    pipeline: Arc<Pipeline>,
    caller: Caller,
    /// Whom requests come from that do not say.
    user: Option<Arc<User>>,
}

impl std::fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiServer").finish_non_exhaustive()
    }
}

impl ApiServer {
    /// Starts to serve what is in the store, and writes what every cluster has: the system's
    /// namespaces, the service `kubernetes` and the bootstrap policy.
    pub async fn start(config: Config) -> Result<Self> {
        let registry = Registry::serving(&config.runtime_config);
        let started = Self::assemble(config, registry, Extended::default()).await?;
        let server = started.server();
        follow::read(server).await?;
        allocate::repair(server).await?;
        bootstrap::run(server).await?;
        policy::reconcile(server).await?;
        flow_control::reconcile(server).await?;
        aggregation::local::reconcile(server).await?;
        aggregation::load(server).await?;
        // Whoever wrote them, the roles that every cluster has count from the first request on.
        server.authorizer.rbac.load(&*server.store).await?;
        server.fairness.load(&*server.store).await?;
        follow::start(server);
        allocate::start_repairs(server);
        tokio::spawn(crd::tend(Arc::clone(server)));
        Ok(started)
    }

    /// A server over what is in a store, which writes nothing by itself and knows only what it is
    /// told directly.
    pub(crate) async fn assemble(
        config: Config,
        registry: Registry,
        extended: Extended,
    ) -> Result<Self> {
        let start = starts::count(&*config.store).await?;
        // They can be long, and few read them.
        config.store.hold_compactly(&crd::folder());
        let metrics = Metrics::default();
        let plugins = config.admission.plugins(&metrics.admission);
        let plugins = plugins.map_err(|why| Status::failure(why.to_string()))?;
        let fairness = Fairness::new(config.requests_inflight_max);
        fairness.register(&metrics.registry);
        let request_ids = Random::new(!start.seed(config.seed));
        let server = Arc::new(Server {
            flags: config.flags(),
            store: config.store,
            clock: config.clock,
            audit: OnceLock::new(),
            random: Random::new(start.seed(config.seed)),
            life: request_ids.uid(),
            request_ids,
            registry,
            ended: config.shutdown.child_token().drop_guard(),
            shutdown: config.shutdown,
            stopping: AtomicBool::new(false),
            issuers: config.authentication.issuers.iter().map(Issuer::new).collect(),
            token_webhook: config.authentication.webhook.as_ref().map(Asked::new),
            authentication: config.authentication,
            authorizer: Authorizer::new(config.authorization),
            fairness,
            apart: Apart::default(),
            definitions: Arc::default(),
            finalizing: Mutex::default(),
            resting: Resting::default(),
            events: SharedEvents::default(),
            node_ports: NodePorts::default(),
            service_ranges: config.service_ranges,
            effects: effects::all(),
            signer: Signer::default(),
            plugins,
            policies: Policies::new(config.admission.policies()),
            webhooks: Webhooks::new(config.admission.webhooks()),
            origins: Origins::default(),
            remotes: Remotes::default(),
            residents: config.residents,
            extended,
            endpoint: OnceLock::new(),
            advertised: Notify::new(),
            moved: watch::Sender::new(()),
            part_refused: watch::Sender::new(None),
            on_demand: OnceLock::new(),
            metrics,
        });
        for resident in &server.residents {
            server.origins.extend(&resident.origin(), Some(Arc::clone(&resident.handler)));
        }
        bookmarks::start(&server);
        let pipeline = Arc::new(Pipeline::new(server));
        let started = Self { pipeline, caller: Caller::default(), user: None };
        if let Some(auditing) = config.audit {
            started.audit(auditing);
        }
        Ok(started)
    }

    /// The same service for clients that call it themselves, with nothing in between that could
    /// hold up, break or lose what passes. Answers to watches say so: such a watch need not be
    /// begun anew now and then to know that it lives, and gets bookmarks only when there is news.
    #[must_use]
    pub fn direct(&self) -> Self {
        Self { caller: Caller::Direct, ..self.clone() }
    }

    /// The same for parts of the cluster itself: what they look at is not brought up to date
    /// [on demand](Self::on_demand).
    #[must_use]
    pub fn for_own_parts(&self) -> Self {
        Self { caller: Caller::Own, ..self.clone() }
    }

    /// The same for a user: requests that do not say whom they come from come from that one, and
    /// may do what roles allow it.
    #[must_use]
    pub fn acting_as(&self, user: User) -> Self {
        Self { user: Some(Arc::new(user)), ..self.clone() }
    }

    /// Lets somebody keep objects up to date only while others look at them. The first one stays.
    pub fn on_demand(&self, keeper: Arc<dyn OnDemand>) {
        let _ = self.server().on_demand.set(keeper);
    }

    /// Audits requests from now on. Who was told first to audit stays.
    pub fn audit(&self, auditing: Auditing) {
        let server = self.server();
        let mut begins = false;
        server.audit.get_or_init(|| {
            begins = true;
            Audit::start(auditing, &server.metrics.registry, &server.clock)
        });
        if begins {
            noted::start_webhook(server);
        }
    }

    /// Lets `/metrics` tell what a part of this process counts, such as controllers. A part that
    /// has told before is replaced.
    pub fn expose_metrics(&self, part: &'static str, source: MetricsSource) {
        self.pipeline.others.set(part, source);
    }

    /// Waits until a [part of the cluster](Self::for_own_parts) is refused something for lack of a
    /// permission, and says what: its role is wrong then, or was changed.
    pub fn part_refused(&self) -> impl Future<Output = String> + Send + 'static {
        let mut refused = self.server().part_refused.subscribe();
        async move {
            match refused.wait_for(Option::is_some).await.map(|refused| refused.clone()) {
                Ok(Some(refused)) => refused,
                // Nobody serves any more.
                _ => std::future::pending().await,
            }
        }
    }

    /// How many bytes of request bodies from afar are held at the moment.
    pub fn body_bytes(&self) -> usize {
        self.pipeline.bodies.held()
    }

    /// Says that this server is about to stop: `/readyz` fails from now on, so that clients go
    /// elsewhere, and everything else goes on.
    pub fn stop_soon(&self) {
        self.server().stopping.store(true, Ordering::Relaxed);
    }

    /// Ends all watches, with a bookmark where those are wanted; the service goes on answering other
    /// requests.
    pub fn shutdown(&self) {
        self.stop_soon();
        self.server().shutdown.cancel();
    }

    /// Who a bearer token stands for.
    pub fn tokens(&self) -> &user::Tokens {
        &self.server().authentication.tokens
    }

    /// Lets a handler of this process answer the webhooks of an origin, such as
    /// `https://webhooks.test` or, for a service, `https://name.namespace.svc`. No socket is
    /// opened for it, so that it works on virtual time. Every other origin is called over HTTPS.
    pub fn serve_webhooks(&self, origin: &str, handler: WebhookHandler) {
        self.server().origins.serve(origin, handler);
    }

    /// Lets a server of this process answer what APIServices lead to an origin, such as
    /// `https://name.namespace.svc`; no Service is needed for it, and no socket is opened. Requests
    /// carry their [`User`] as an extension, and in the headers of a front proxy.
    pub fn serve_extension<S, B>(&self, origin: &str, extension: S)
    where
        S: tower::Service<Request<Full<Bytes>>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send,
        B: http_body::Body<Data = Bytes, Error: std::fmt::Display> + Send + 'static,
    {
        let handler: ExtensionHandler = Arc::new(move |request| {
            let extension = extension.clone();
            Box::pin(async move {
                let answer = extension.oneshot(request.map(Full::new)).await;
                let response = answer.unwrap_or_else(|never| match never {});
                response.map(pieces)
            })
        });
        self.server().origins.extend(origin, Some(handler));
        self.server().remotes.look();
    }

    /// Lets nobody in this process answer for an origin any more.
    pub fn withdraw_extension(&self, origin: &str) {
        self.server().origins.extend(origin, None);
        self.server().remotes.look();
    }

    /// Says where clients reach this server, for the endpoints of the service `kubernetes`. The
    /// first address stays.
    pub fn advertise(&self, endpoint: SocketAddr) {
        let _ = self.server().endpoint.set(endpoint);
        self.server().advertised.notify_one();
    }

    /// Takes this server, which is about to stop, out of the endpoints of the service
    /// `kubernetes`. [`crate::listen::serve`] does so when it ends.
    pub async fn withdraw(&self) -> Result<()> {
        presence::withdraw(self.server()).await
    }

    /// Who a request from the network comes from: the user of its connection's certificate, which
    /// was verified, or of its bearer token.
    pub async fn authenticate(
        &self,
        headers: &HeaderMap,
        certificate: Option<&User>,
    ) -> Result<User> {
        let certificate = certificate.cloned().map(ClientCertificate::of);
        let certificate = certificate.as_ref();
        let credentials = Credentials { headers, path: "/", certificate };
        let known = authn::request(self.server(), &credentials).await?;
        Ok(Arc::unwrap_or_clone(known.user))
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.pipeline.server
    }
}

/// Answers the reviews of servers behind it that are in the same process.
impl Reviewer for ApiServer {
    fn review(&self, review: Value) -> BoxFuture<'static, Result<Value, String>> {
        let api = self.clone();
        Box::pin(async move {
            let path = match review["kind"].as_str() {
                Some("TokenReview") => "/apis/authentication.k8s.io/v1/tokenreviews",
                _ => "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            };
            let request = Request::post(path).header(header::CONTENT_TYPE, "application/json");
            let request = request.body(Full::from(review.to_string()));
            let request = request.map_err(|error| error.to_string())?;
            let response = api.oneshot(request).await.unwrap_or_else(|never| match never {});
            let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
            serde_json::from_slice(&body.to_bytes()).map_err(|error| error.to_string())
        })
    }
}

impl<B> tower::Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { pipeline, caller, user } = self.clone();
        Box::pin(async move {
            let (mut parts, body) = request.into_parts();
            parts.extensions.insert(caller);
            if let Some(user) = user.filter(|_| User::among(&parts.extensions).is_none()) {
                parts.extensions.insert(user);
            }
            let wishes = Wishes::of(&parts.uri, &parts.headers);
            let noted = Noted::of(&pipeline.server, &mut parts);
            let body = std::pin::pin!(body.map_err(Into::into));
            // What a request breaks, it breaks for itself alone.
            let answer = AssertUnwindSafe(pipeline.answer(parts, body, &wishes)).catch_unwind();
            Ok(match answer.await {
                Ok(response) => noted.answered(response),
                Err(panic) => {
                    let why = panic_text(&*panic);
                    tracing::error!(panic = why, "request panicked");
                    let status = Status::internal("the request could not be processed");
                    noted.panicked(why, reply::failure(&status, &wishes))
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use http::Request;
    use http_body_util::Full;
    use jiff::Timestamp;
    use steersman_store::memory::MemoryStore;
    use tower::Service;

    use super::{ApiServer, Config};

    /// It is made in one place and copied to another for every request, whatever that asks for: with
    /// all verbs in it, it had fifteen kilobytes, and copying it took a twentieth of a get's time.
    #[tokio::test]
    async fn the_future_of_a_request_is_small() {
        let config = Config::new(Arc::new(MemoryStore::new()), Arc::new(|| Timestamp::UNIX_EPOCH));
        let mut api = ApiServer::start(config).await.unwrap();
        let future = api.call(Request::new(Full::<Bytes>::default()));
        let size = size_of_val(&*future);
        assert!(size < 6 * 1024, "{size} bytes");
    }
}
