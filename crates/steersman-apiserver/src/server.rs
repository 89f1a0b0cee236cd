//! The service itself: what it is made of, and how HTTP enters it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use steersman_store::Store;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

use crate::admission_plugins::PluginSelection;
use crate::admission_registration::Webhooks;
use crate::authentication::{Authentication, Issuer};
use crate::authn::{ClientCertificate, Credentials};
use crate::authz::{AuthorizationMode, Authorizer};
use crate::caller::Caller;
use crate::negotiate::Wishes;
use crate::on_demand::OnDemand;
use crate::pipeline::Pipeline;
use crate::random::Random;
use crate::read::bookmarks;
use crate::registry::Registry;
use crate::reply::{self, ResponseBody};
use crate::state::events::SharedEvents;
use crate::state::node_ports::NodePorts;
use crate::state::{Clock, Server};
use crate::status::{BODY_LIMIT, Result, Status, panic_text};
use crate::token::Signer;
use crate::user::User;
use crate::webhook_client::{Origins, WebhookHandler};
use crate::{allocate, authn, bootstrap, crd, effects, follow, policy, presence, starts, user};

/// A body larger than this is worked on apart.
const HEAVY: usize = 64 * 1024;

/// How long the body of a request may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(60);

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
    /// Which admission plug-ins are on. For a server by itself these are Kubernetes' own but for
    /// `ServiceAccount`, which would refuse every Pod: no controller makes the account `default`
    /// of a namespace.
    pub admission: PluginSelection,
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
            admission: PluginSelection::without_controllers(),
        }
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
        let start = starts::count(&*config.store).await?;
        let server = Arc::new(Server {
            store: config.store,
            clock: config.clock,
            random: Random::new(start.seed(config.seed)),
            registry: Registry::new(),
            ended: config.shutdown.child_token().drop_guard(),
            shutdown: config.shutdown,
            issuers: config.authentication.issuers.iter().map(Issuer::new).collect(),
            authentication: config.authentication,
            authorizer: Authorizer::new(config.authorization),
            definitions: Arc::default(),
            events: SharedEvents::default(),
            node_ports: NodePorts::default(),
            effects: effects::all(),
            signer: Signer::default(),
            plugins: config.admission.plugins(),
            webhooks: Webhooks::new(config.admission.webhooks()),
            origins: Origins::default(),
            endpoint: OnceLock::new(),
            advertised: Notify::new(),
            moved: watch::Sender::new(()),
            part_refused: watch::Sender::new(None),
            on_demand: OnceLock::new(),
        });
        follow::read(&server).await?;
        allocate::repair(&server).await?;
        bootstrap::run(&server).await?;
        policy::reconcile(&server).await?;
        // Whoever wrote them, the roles that every cluster has count from the first request on.
        server.authorizer.rbac.load(&*server.store).await?;
        follow::start(&server);
        allocate::start_repairs(&server);
        bookmarks::start(&server);
        tokio::spawn(crd::tend(Arc::clone(&server)));
        let pipeline = Arc::new(Pipeline::new(server));
        Ok(Self { pipeline, caller: Caller::default(), user: None })
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

    /// Ends all watches; the service goes on answering other requests.
    pub fn shutdown(&self) {
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
        Ok(authn::request(self.server(), &credentials).await?.user)
    }

    pub(crate) fn server(&self) -> &Arc<Server> {
        &self.pipeline.server
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
            if let Some(user) = user.filter(|_| parts.extensions.get::<User>().is_none()) {
                parts.extensions.insert(User::clone(&user));
            }
            let wishes = Wishes::of(&parts.uri, &parts.headers);
            let body = read_body(body).await;
            let is_heavy = body.as_ref().is_ok_and(|body| body.len() > HEAVY);
            // What a request breaks, it breaks for itself alone.
            let answer = AssertUnwindSafe(pipeline.answer(parts, body, &wishes)).catch_unwind();
            let answer = if is_heavy { apart(answer).await } else { answer.await };
            Ok(answer.unwrap_or_else(|panic| {
                tracing::error!(panic = panic_text(&*panic), "request panicked");
                reply::failure(&Status::internal("the request could not be processed"), &wishes)
            }))
        })
    }
}

/// Works on a large body without holding up a worker of the runtime: what is read, merged and
/// checked there can take long, and nobody else should notice.
async fn apart<F: Future>(work: F) -> F::Output {
    let runtime = Handle::current();
    match runtime.runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(|| runtime.block_on(work)),
        _ => work.await,
    }
}

/// Reads a body up to the limit. What is larger, breaks off or does not end in time is an error
/// to answer.
async fn read_body<B>(body: B) -> Result<Bytes>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: Into<BoxError>,
{
    if body.size_hint().lower() > BODY_LIMIT as u64 {
        return Err(Status::too_large());
    }
    let whole = Limited::new(body, BODY_LIMIT).collect();
    match tokio::time::timeout(BODY_TIME, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Err(_) => Err(Status::timeout("the body of the request did not arrive in time")),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Status::too_large()),
        Ok(Err(error)) => Err(Status::bad_request(format!("error reading the body: {error}"))),
    }
}
