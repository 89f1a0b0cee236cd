//! Following what other servers over the same store write: definitions, whose resources must be
//! served here as well, configurations of webhooks and admission policies, which count here as well,
//! roles and their bindings, by which requests here are authorised, and flow schemas and priority
//! levels, by which they are served, and APIServices, by which they go elsewhere. Of the last two,
//! this server's own writes are heard of here as well.
//!
//! What this server writes itself it has taken in before its client hears of it; news that are
//! none change nothing. A watch that ends, for whatever reason, is begun anew behind a fresh look
//! at everything, which also shows what is gone. It is started with the server and ends with it,
//! or at its shutdown.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt;
use futures::future::select_all;
use steersman_store::{Event, Revision, StoreError, Watch, WatchRequest};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::state::Server;
use crate::status::{Result, Status, panic_text};
use crate::{
    admission_policies, admission_registration, aggregation, authz, crd, fairness, flow_control,
};

/// How long to wait before looking again after a failure.
const BACKOFF: Duration = Duration::from_millis(100);

/// How long that becomes when it fails again and again.
const BACKOFF_MAX: Duration = Duration::from_secs(5);

/// How long another server may take to end what it began with a definition.
const CARE_PERIOD: Duration = Duration::from_secs(10);

/// Reads what all servers over the store must know, and says of which revision that is.
pub(crate) async fn read(server: &Server) -> Result<Revision> {
    let definitions = crd::refresh(server).await?;
    let webhooks = server.load_webhooks().await?;
    let policies = server.load_policies().await?;
    let roles = server.authorizer.rbac.load(&*server.store).await?;
    let flows = server.fairness.load(&*server.store).await?;
    Ok(definitions.min(webhooks).min(policies).min(roles).min(flows))
}

/// Follows from now on.
pub(crate) fn start(server: &Arc<Server>) {
    let ended = server.ended();
    let following = run(Arc::downgrade(server));
    tokio::spawn(async move { ended.run_until_cancelled(following).await });
}

async fn run(server: Weak<Server>) {
    let mut seen = Revision(0);
    let mut backoff = BACKOFF;
    loop {
        let since = Instant::now();
        let followed = AssertUnwindSafe(follow(&server, &mut seen)).catch_unwind().await;
        match followed {
            Ok(Ok(())) => return,
            Ok(Err(status)) if status.code == 410 => {}
            Ok(Err(status)) => {
                tracing::warn!(error = %status, "watch of other servers' writes failed, relisting");
            }
            Err(panic) => {
                tracing::error!(
                    panic = panic_text(&*panic),
                    "watch of other servers' writes panicked"
                );
            }
        }
        if since.elapsed() > BACKOFF_MAX {
            backoff = BACKOFF;
        }
        tokio::time::sleep(backoff).await;
        backoff = (2 * backoff).min(BACKOFF_MAX);
    }
}

/// Follows until a watch fails, or the server is gone. `seen` is the last revision heard of.
async fn follow(server: &Weak<Server>, seen: &mut Revision) -> Result<()> {
    let Some(mut watches) = begin(server, seen).await? else { return Ok(()) };
    let mut care = Care::default();
    loop {
        care.consider(server);
        let Some(news) = watches.next(&mut care).await? else {
            care.give(server);
            continue;
        };
        let Some(server) = server.upgrade() else { return Ok(()) };
        *seen = news.revision().max(*seen);
        news.take_in(&server).await?;
    }
}

/// Reads everything and watches from there. The server is not held beyond that: it ends while
/// nothing is heard.
async fn begin(server: &Weak<Server>, seen: &mut Revision) -> Result<Option<Watches>> {
    let Some(server) = server.upgrade() else { return Ok(None) };
    let from = read(&server).await?.min(aggregation::load(&server).await?);
    if from < *seen {
        tracing::warn!(%from, %seen, "the history of the store was replaced, relisting");
        server.registry.forget_after(from);
        server.webhooks.forget();
        server.policies.forget();
        server.authorizer.rbac.forget();
        *seen = Revision(0);
        // What was read by revisions of the other history is read again.
        return Err(Status::expired("the store has another history"));
    }
    *seen = from;
    Ok(Some(Watches::open(&server, from).await?))
}

/// What was heard.
enum News {
    Definitions(Vec<Arc<Event>>),
    Webhooks(Vec<Arc<Event>>),
    Policies(Vec<Arc<Event>>),
    Roles(Vec<Arc<Event>>),
    Flows(Vec<Arc<Event>>),
    ApiServices(Vec<Arc<Event>>),
}

impl News {
    fn revision(&self) -> Revision {
        let (Self::Definitions(events)
        | Self::Webhooks(events)
        | Self::Policies(events)
        | Self::Roles(events)
        | Self::Flows(events)
        | Self::ApiServices(events)) = self;
        events.last().map_or(Revision(0), |event| event.revision)
    }

    async fn take_in(&self, server: &Arc<Server>) -> Result<()> {
        match self {
            Self::Definitions(events) => {
                // Others have checked them, and still they can be long.
                for event in events.iter().filter(|event| crd::is_news(server, event)) {
                    let work = pin!(async { crd::followed(server, event) });
                    server.apart.run(true, work).await;
                }
            }
            Self::Roles(events) => {
                events.iter().for_each(|event| server.authorizer.rbac.follow(event));
            }
            Self::Flows(events) => {
                server.fairness.follow(events);
                flow_control::tell_whether_dangling(server).await?;
            }
            Self::ApiServices(events) => {
                for event in events {
                    aggregation::followed(server, event).await;
                }
            }
            Self::Policies(_) => {
                if server.policies.revision() < self.revision() {
                    server.load_policies().await?;
                }
            }
            Self::Webhooks(_) => {
                if server.webhooks.revision() < self.revision() {
                    server.load_webhooks().await?;
                }
            }
        }
        Ok(())
    }
}

/// The folders that are watched.
struct Watches {
    definitions: Box<dyn Watch>,
    webhooks: [Box<dyn Watch>; 2],
    /// Admission policies and bindings.
    policies: [Box<dyn Watch>; 4],
    /// Roles and bindings.
    roles: [Box<dyn Watch>; 4],
    /// Flow schemas and priority levels.
    flows: [Box<dyn Watch>; 2],
    api_services: Box<dyn Watch>,
}

impl Watches {
    async fn open(server: &Server, after: Revision) -> Result<Self, StoreError> {
        let watch = |prefix: String| server.store.watch(WatchRequest { prefix, after });
        let [mutating, validating] = admission_registration::folders();
        let [changing, changing_bindings, judging, judging_bindings] =
            admission_policies::folders();
        let [cluster_roles, roles, cluster_bindings, bindings] = authz::folders();
        let [schemas, levels] = fairness::folders();
        Ok(Self {
            definitions: watch(crd::folder()).await?,
            webhooks: [watch(mutating).await?, watch(validating).await?],
            policies: [
                watch(changing).await?,
                watch(changing_bindings).await?,
                watch(judging).await?,
                watch(judging_bindings).await?,
            ],
            roles: [
                watch(cluster_roles).await?,
                watch(roles).await?,
                watch(cluster_bindings).await?,
                watch(bindings).await?,
            ],
            flows: [watch(schemas).await?, watch(levels).await?],
            api_services: watch(aggregation::folder()).await?,
        })
    }

    /// Waits for news; `None` when a definition needs care first.
    async fn next(&mut self, care: &mut Care) -> Result<Option<News>, StoreError> {
        let [mutating, validating] = &mut self.webhooks;
        let policies = select_all(self.policies.iter_mut().map(|watch| watch.next()));
        let roles = select_all(self.roles.iter_mut().map(|watch| watch.next()));
        let flows = select_all(self.flows.iter_mut().map(|watch| watch.next()));
        Ok(Some(tokio::select! {
            events = self.definitions.next() => News::Definitions(events?),
            events = mutating.next() => News::Webhooks(events?),
            events = validating.next() => News::Webhooks(events?),
            (events, ..) = policies => News::Policies(events?),
            (events, ..) = roles => News::Roles(events?),
            (events, ..) = flows => News::Flows(events?),
            events = self.api_services.next() => News::ApiServices(events?),
            () = care.due() => return Ok(None),
        }))
    }
}

/// When to look after definitions that another server has begun something with.
#[derive(Default)]
struct Care {
    due: Option<Instant>,
    given: Option<JoinHandle<()>>,
}

impl Care {
    /// Looks whether care is needed; who needs it still has a while to get it elsewhere.
    fn consider(&mut self, server: &Weak<Server>) {
        let needed = server.upgrade().is_some_and(|server| crd::needs_care(&server));
        match (needed, self.due) {
            (false, _) => self.due = None,
            (true, None) => self.due = Some(Instant::now() + CARE_PERIOD),
            (true, Some(_)) => {}
        }
    }

    async fn due(&self) {
        match self.due {
            Some(due) => tokio::time::sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Gives it, beside what goes on, unless it is still being given.
    fn give(&mut self, server: &Weak<Server>) {
        self.due = None;
        if self.given.as_ref().is_none_or(JoinHandle::is_finished)
            && let Some(server) = server.upgrade()
        {
            self.given = Some(tokio::spawn(crd::tend(server)));
        }
    }
}
