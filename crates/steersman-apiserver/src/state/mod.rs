//! What all requests share: the store, the clock, the registry of what is served.
//!
//! What the parts of a request keep between requests is here as well, one file each, so that they
//! need not know each other.

pub(crate) mod effects;
pub(crate) mod events;
pub(crate) mod extended;
pub(crate) mod node_ports;
pub(crate) mod plugins;
pub(crate) mod remotes;
pub(crate) mod residents;
pub(crate) mod resting;
pub(crate) mod reviews;
pub(crate) mod service_ranges;

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use steersman_rules::metadata;
use steersman_store::{Entry, Revision, Store, StoreError};
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::admission_policies::Policies;
use crate::admission_registration::Webhooks;
use crate::apart::Apart;
use crate::audit::Audit;
use crate::authentication::{Asked, Authentication, Issuer};
use crate::authz::Authorizer;
use crate::clock::Clock;
use crate::fairness::Fairness;
use crate::metrics::Metrics;
use crate::random::Random;
use crate::registry::Registry;
use crate::token::Signer;
use crate::webhook_client::Origins;
use crate::{lookup, on_demand, status};
use effects::Registered;
use events::SharedEvents;
use extended::Extended;
use node_ports::NodePorts;
use plugins::Plugins;
use remotes::Remotes;
use residents::Resident;
use resting::Resting;
use service_ranges::ServiceRanges;

/// What all requests share.
pub(crate) struct Server {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    /// What the server was told when it started, by kube-apiserver's names for it.
    pub(crate) flags: BTreeMap<&'static str, String>,
    pub(crate) random: Random,
    /// What requests go by; apart, so that all else that is random stays the same however many
    /// there are.
    pub(crate) request_ids: Random,
    /// What this start of the server goes by.
    pub(crate) life: String,
    pub(crate) registry: Registry,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// Who did what, if anybody wants to know.
    pub(crate) audit: OnceLock<Arc<Audit>>,
    /// Ends watches.
    pub(crate) shutdown: CancellationToken,
    /// Whether this server is about to stop.
    pub(crate) stopping: AtomicBool,
    /// Ends what runs beside requests when nobody serves them any more.
    pub(crate) ended: DropGuard,
    /// Who is known beside whom the cluster itself knows.
    pub(crate) authentication: Authentication,
    /// Who else issues tokens.
    pub(crate) issuers: Vec<Issuer>,
    /// Who is asked about tokens that nobody else knows.
    pub(crate) token_webhook: Option<Asked>,
    /// Decides who may do what.
    pub(crate) authorizer: Authorizer,
    /// Decides who is served next.
    pub(crate) fairness: Fairness,
    /// Where long work is done.
    pub(crate) apart: Apart,
    /// Held while a custom resource definition is written, for its names depend on the others'.
    pub(crate) definitions: Arc<tokio::sync::Mutex<()>>,
    /// The definitions whose deletion is being ended here. Held for moments only.
    pub(crate) finalizing: Mutex<HashSet<String>>,
    /// Who lets schemas of definitions rest.
    pub(crate) resting: Resting,
    /// Events as they were written for the first who watches.
    pub(crate) events: SharedEvents,
    /// The node ports that services hold.
    pub(crate) node_ports: NodePorts,
    /// Where Services get their cluster addresses from.
    pub(crate) service_ranges: ServiceRanges,
    /// What writes mean to the server itself.
    pub(crate) effects: Registered,
    /// Signs the tokens of service accounts, and knows them again.
    pub(crate) signer: Signer,
    /// The parts of the server that are asked about writes.
    pub(crate) plugins: Plugins,
    /// What policies say about writes.
    pub(crate) policies: Policies,
    /// Who else is asked about writes.
    pub(crate) webhooks: Webhooks,
    /// The webhook servers of this process.
    pub(crate) origins: Origins,
    /// The servers elsewhere that answer for groups and versions.
    pub(crate) remotes: Remotes,
    /// Those of them that belong to this server.
    pub(crate) residents: Vec<Resident>,
    /// What this server has because it extends another.
    pub(crate) extended: Extended,
    /// Where clients reach the API, once someone listens.
    pub(crate) endpoint: OnceLock<SocketAddr>,
    /// Told when someone listens, for the endpoints to be written soon.
    pub(crate) advertised: Notify,
    /// Told now and then if anything was written.
    pub(crate) moved: watch::Sender<()>,
    /// What a part of the cluster was last refused for lack of a permission.
    pub(crate) part_refused: watch::Sender<Option<String>>,
    /// Who keeps objects up to date only while somebody looks.
    pub(crate) on_demand: on_demand::Registered,
}

impl Server {
    /// Tells when what runs beside requests must end: at the shutdown, or with the server.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.ended.token().clone()
    }

    /// Whether clients had better go elsewhere.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed) || self.shutdown.is_cancelled()
    }

    /// The time, as objects carry it.
    pub(crate) fn now(&self) -> String {
        metadata::time((self.clock)())
    }

    /// The entry of a key, as far as this server has heard.
    pub(crate) async fn known(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        lookup::known(&*self.store, key).await
    }

    /// The entry of a key as it was at a revision, which this server may yet have to hear of.
    pub(crate) async fn at(
        &self,
        key: &str,
        revision: Revision,
    ) -> Result<Option<Entry>, StoreError> {
        lookup::at(&*self.store, key, revision).await
    }

    /// Brings who is asked about writes up to the configurations that are stored, and says of
    /// which revision that is.
    pub(crate) async fn load_webhooks(&self) -> status::Result<Revision> {
        self.webhooks.load(&*self.store, &self.registry.table()).await
    }

    /// Brings what policies say about writes up to those that are stored, and says of which
    /// revision that is.
    pub(crate) async fn load_policies(&self) -> status::Result<Revision> {
        self.policies.load(&*self.store, &self.registry.table()).await
    }

    /// Where clients reach this server: "every address" is none, but this machine's own is.
    pub(crate) fn reachable(&self) -> Option<SocketAddr> {
        let mut endpoint = *self.endpoint.get()?;
        if endpoint.ip().is_unspecified() {
            endpoint.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        Some(endpoint)
    }

    /// The latest entry of a key.
    pub(crate) async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.store.get(key).await
    }
}
