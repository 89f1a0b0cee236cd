//! Leader election: of several replicas, one acts.
//!
//! Candidates compete for one Lease, as `client-go`'s do and together with them: the holder
//! renews it, and who has not seen it renewed for its whole duration takes it. Only the local
//! monotonic clock counts; the timestamps in the Lease are for people. `candidate` decides,
//! `elector` does the requests, and the [`Fence`](crate::fence::Fence) sees to it that a
//! holder that lost the Lease without noticing does not write.
//!
//! Compared with `client-go`: a holder that sees another's name in the Lease stops at once
//! rather than at its deadline; a Lease that was deleted is not taken before its last known
//! holder's time is over; and the Lease is given back only when every guarded write has been
//! answered.

mod candidate;
mod elector;
mod lock;
mod metrics;
mod settings;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::metrics::Metrics;
use crate::random;

pub use elector::Elector;
pub(crate) use lock::{Lock, LockError};
pub(crate) use metrics::ElectionFamilies;
pub use settings::InvalidSettings;
pub(crate) use settings::{Timing, check_names};

/// Waits between tries are lengthened by up to this factor of themselves.
pub(crate) const JITTER: f64 = 1.2;

/// Called with the identity of each new leader.
type Observer = Arc<dyn Fn(&str) + Send + Sync>;

/// How a replica takes part in an election.
#[derive(Clone)]
pub struct LeaderElection {
    namespace: String,
    name: String,
    identity: String,
    timing: Timing,
    release_on_stop: bool,
    labels: BTreeMap<String, String>,
    on_new_leader: Option<Observer>,
}

/// Why an election cannot begin, or has ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ElectionError {
    /// It was set up in a way that cannot work.
    #[error(transparent)]
    Settings(#[from] InvalidSettings),
    /// The Lease could not be renewed in time.
    #[error("lost leader lease {lease}: not renewed in time")]
    Lost {
        /// Which Lease.
        lease: Arc<str>,
    },
    /// Somebody else holds the Lease.
    #[error("lost leader lease {lease}: taken by {holder}")]
    Taken {
        /// Which Lease.
        lease: Arc<str>,
        /// Who holds it.
        holder: String,
    },
}

impl LeaderElection {
    /// Competes for the Lease of this name.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: random_identity(),
            timing: Timing::default(),
            release_on_stop: true,
            labels: BTreeMap::new(),
            on_new_leader: None,
        }
    }

    /// Competes under this name, which no other process may have, neither now nor shortly
    /// before; otherwise it is the host's name and a random number.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// How long others wait after they last saw the Lease renewed; 15 seconds unless said
    /// otherwise. In the Lease it stands in whole seconds, rounded up.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.timing.lease_duration = duration;
        self
    }

    /// How long after its last renewal the leader goes on; 10 seconds unless said otherwise.
    #[must_use]
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.timing.renew_deadline = deadline;
        self
    }

    /// How often the Lease is renewed, or tried for; 2 seconds unless said otherwise.
    #[must_use]
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.timing.retry_period = period;
        self
    }

    /// Whether a leader that stops gives the Lease back, so that another takes it at once. It
    /// does unless said otherwise.
    #[must_use]
    pub fn release_on_stop(mut self, release: bool) -> Self {
        self.release_on_stop = release;
        self
    }

    /// Labels the Lease when this replica becomes the leader and with every renewal; nobody takes the
    /// label off when it stops. Labels of others stay as they are.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Calls `observer` with each new leader's identity, this one's too. Must not block.
    #[must_use]
    pub fn on_new_leader(mut self, observer: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_new_leader = Some(Arc::new(observer));
        self
    }

    /// A candidate, ready to [run](Elector::run). Its client should be its own and
    /// [not retry by itself](client). Fails if the settings cannot work.
    pub fn elector(
        self,
        client: kube::Client,
        metrics: &Metrics,
    ) -> Result<Elector, ElectionError> {
        self.check()?;
        Ok(Elector::new(self, client, metrics))
    }

    fn check(&self) -> Result<(), InvalidSettings> {
        let Self { namespace, name, identity, timing, .. } = self;
        check_names(&[("namespace", namespace), ("name", name), ("identity", identity)])?;
        timing.check()
    }
}

impl fmt::Debug for LeaderElection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, name, identity, timing, .. } = self;
        write!(f, "LeaderElection({namespace}/{name} as {identity}, {timing:?})")
    }
}

/// A client for elections: with a connection of its own, so that it does not wait behind other
/// requests, and without retries, which would outlast the deadline.
pub fn client(mut config: kube::Config) -> Result<kube::Client> {
    config.default_retry = false;
    Ok(kube::Client::try_from(config)?)
}

/// The host's name and a random number.
pub(crate) fn random_identity() -> String {
    let host = std::env::var("HOSTNAME").ok().filter(|host| !host.is_empty());
    format!("{}-{:016x}", host.as_deref().unwrap_or("steersman"), random::next_u64())
}
