//! Sharding: several replicas share the keys of one controller.
//!
//! Each replica is a *member*: it holds a Lease of its own, marked with the group's label, and
//! renews it. Consistent hashing over the live members (`ring`) says who owns which key; when a
//! member comes or goes, only the keys move that it gets or had. Nobody is elected and nothing
//! is assigned: every member decides for itself, and the Leases keep two of them from
//! reconciling one key at a time.
//!
//! # Why no key is reconciled by two at once
//!
//! A *view* is a set of members; it gives each key to one of them. Every member publishes, in
//! its Lease, the view by which it *claims* keys. A member reconciles a key only while
//!
//! 1. the view that it has published gives it the key, and so does the newest view it knows;
//! 2. no other live member's published view gives that key to that member. This was read after
//!    its own claim was published: of two who claim the same key, at least one sees the other;
//! 3. its own Lease has time left, by its own clock.
//!
//! It publishes a view that gives up keys only when no reconcile of those runs any more. A member
//! counts as dead when its Lease was still unchanged in an answer that was *asked for* a whole
//! lease duration after the Lease was first seen so. By then it has itself aborted its reconciles,
//! and its [`Fence`](crate::fence::Fence) has stopped its writes. When it comes back, it first
//! claims nothing. A Lease that somebody deleted counts as alive until its time is over.
//!
//! Every replica caches all objects of the kind, also those that others reconcile. What a
//! reconcile does outside of its future, such as in spawned tasks or blocking threads, cannot be
//! aborted; its writes through the context's client are refused once the member's own Lease is
//! over, but not when only the key has moved on. And a member that is asked to stop keeps its
//! keys until the last of its reconciles has ended: give those a
//! [timeout](crate::controller::Builder::timeout).

pub(crate) mod gate;
mod lease;
mod member;
mod membership;
mod ring;

use std::fmt;
use std::time::Duration;

use steersman_values::names;

use crate::election::{InvalidSettings, Timing, check_names, random_identity};

pub(crate) use member::{Member, Seat};

/// How long reconciles of keys that move elsewhere may go on, unless said otherwise.
const HANDOVER_TIMEOUT: Duration = Duration::from_secs(30);

/// How a replica shares the keys of a controller with others.
#[derive(Clone)]
pub struct Sharding {
    namespace: String,
    group: String,
    identity: String,
    timing: Timing,
    handover_timeout: Duration,
}

impl Sharding {
    /// Shares with all replicas that name the same group, through Leases in this namespace.
    /// Controllers of different names do not meet, even in one group.
    pub fn new(namespace: impl Into<String>, group: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            group: group.into(),
            identity: random_identity(),
            timing: Timing::default(),
            handover_timeout: HANDOVER_TIMEOUT,
        }
    }

    /// What this replica is called in its Lease. No other may have the same name, neither now
    /// nor shortly before; otherwise it is the host's name and a random number.
    #[must_use]
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self
    }

    /// How long others wait before they take over from a member that renews no more; 15 seconds
    /// unless said otherwise.
    #[must_use]
    pub fn lease_duration(mut self, duration: Duration) -> Self {
        self.timing.lease_duration = duration;
        self
    }

    /// How long after its last renewal a member goes on; 10 seconds unless said otherwise.
    #[must_use]
    pub fn renew_deadline(mut self, deadline: Duration) -> Self {
        self.timing.renew_deadline = deadline;
        self
    }

    /// How often a member renews its Lease and looks at those of the others; 2 seconds unless
    /// said otherwise.
    #[must_use]
    pub fn retry_period(mut self, period: Duration) -> Self {
        self.timing.retry_period = period;
        self
    }

    /// How long reconciles of keys that now belong to others may go on before they are aborted;
    /// half a minute unless said otherwise.
    #[must_use]
    pub fn handover_timeout(mut self, timeout: Duration) -> Self {
        self.handover_timeout = timeout;
        self
    }

    /// Whether this can work for the controller of that name. A manager asks before it starts it.
    pub(crate) fn check(&self, controller: &str) -> Result<(), InvalidSettings> {
        let Self { namespace, group, identity, timing, .. } = self;
        check_names(&[("namespace", namespace), ("group", group), ("identity", identity)])?;
        // Both are labels of the Leases, whose names begin with the group.
        fits("group", group, names::dns1123_subdomain(group))?;
        fits("group", group, names::label_value(group))?;
        fits("controller", controller, names::label_value(controller))?;
        timing.check()
    }
}

fn fits(what: &'static str, value: &str, against: Vec<String>) -> Result<(), InvalidSettings> {
    let Some(why) = against.into_iter().next() else { return Ok(()) };
    Err(InvalidSettings::Unfit { what, value: value.to_owned(), why })
}

impl fmt::Debug for Sharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, group, identity, timing, .. } = self;
        write!(f, "Sharding({namespace}/{group} as {identity}, {timing:?})")
    }
}
