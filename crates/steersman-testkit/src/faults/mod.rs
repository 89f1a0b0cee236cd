//! Trouble between a client and an API server, from one seed, on virtual time.
//!
//! [`Faults`] says which [`Fault`]s happen and how often; a client made with
//! [`Cluster::client_with`](crate::Cluster::client_with) meets them. Nothing is wrong with the
//! server itself: other clients see the truth, and after [`Faults::heal`] nothing new goes wrong.
//! Requests are sorted in `request`, hindered in `service`, and their answers spoiled in `list`
//! and `watch`.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use steersman::informer::Informer;
//! use steersman_testkit::{Fault, Faults};
//!
//! steersman_testkit::run(|cluster| async move {
//!     let faults = Faults::seeded(7).with(Fault::ConnectionRefused, 0.5).all(0.1);
//!     let client = cluster.client_with(&faults);
//!     let informer = Informer::<ConfigMap>::builder(client).start();
//!     cluster.advance(std::time::Duration::from_secs(600)).await;
//!     assert!(faults.injected(Fault::ConnectionRefused) > 0, "{faults}");
//!     faults.heal();
//!     informer.cache().synced().await;
//! });
//! ```

mod body;
mod fault;
mod list;
mod refusal;
mod request;
mod service;
mod watch;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Uri;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

pub use body::AnswerBody;
pub use fault::Fault;
pub(crate) use service::DIRECT;
pub use service::FaultyService;

/// Tells which requests can be hindered.
type Concern = Arc<dyn Fn(&Uri) -> bool + Send + Sync>;

/// Which faults happen, and how often.
///
/// Clones share the seed's dice, the switch of [`heal`](Self::heal) and the counts.
#[derive(Clone)]
pub struct Faults {
    chances: BTreeMap<Fault, f64>,
    concern: Option<Concern>,
    page_max: Option<u32>,
    state: Arc<State>,
}

/// What clones share.
struct State {
    seed: u64,
    healed: AtomicBool,
    dice: Mutex<Dice>,
}

struct Dice {
    generator: StdRng,
    injected: BTreeMap<Fault, u64>,
}

impl Faults {
    /// No faults yet; those that are added follow from this seed.
    pub fn seeded(seed: u64) -> Self {
        let dice = Dice { generator: StdRng::seed_from_u64(seed), injected: BTreeMap::new() };
        let state = State { seed, healed: AtomicBool::new(false), dice: Mutex::new(dice) };
        Self { chances: BTreeMap::new(), concern: None, page_max: None, state: Arc::new(state) }
    }

    /// Injects a fault with this probability, at each of its occasions: a request, or an event
    /// of a watch.
    #[must_use]
    pub fn with(mut self, fault: Fault, probability: f64) -> Self {
        self.chances.insert(fault, probability);
        self
    }

    /// Injects every fault that has no probability of its own with this one.
    #[must_use]
    pub fn all(mut self, probability: f64) -> Self {
        for fault in Fault::ALL {
            self.chances.entry(fault).or_insert(probability);
        }
        self
    }

    /// Hinders only the requests that `concern` chooses.
    #[must_use]
    pub fn only(mut self, concern: impl Fn(&Uri) -> bool + Send + Sync + 'static) -> Self {
        self.concern = Some(Arc::new(concern));
        self
    }

    /// Gives pages of lists at most this many objects, whatever limit was asked for, as servers
    /// may: few objects make many pages.
    #[must_use]
    pub fn pages_of(mut self, objects: u32) -> Self {
        self.page_max = Some(objects.max(1));
        self
    }

    /// The same service behind these faults.
    pub fn around<S>(&self, api: S) -> FaultyService<S> {
        FaultyService::new(api, self.clone())
    }

    /// From now on nothing is injected. What was broken stays so: a watch that fell silent does
    /// not speak again, and an object that came [malformed](Fault::Malformed) is not sent again
    /// before it changes.
    pub fn heal(&self) {
        self.state.healed.store(true, Ordering::Relaxed);
    }

    /// Injects again after [`heal`](Self::heal).
    pub fn resume(&self) {
        self.state.healed.store(false, Ordering::Relaxed);
    }

    /// How often a fault was injected.
    pub fn injected(&self, fault: Fault) -> u64 {
        self.dice().injected.get(&fault).copied().unwrap_or(0)
    }

    /// Decides whether a fault happens on this occasion.
    fn strikes(&self, fault: Fault) -> bool {
        let chance = self.chances.get(&fault).copied().unwrap_or(0.0);
        if chance <= 0.0 || self.state.healed.load(Ordering::Relaxed) {
            return false;
        }
        let mut dice = self.dice();
        let strikes = dice.generator.random::<f64>() < chance;
        if strikes {
            *dice.injected.entry(fault).or_default() += 1;
        }
        strikes
    }

    /// The first of these faults that happens on this occasion.
    fn strike(&self, faults: &[Fault]) -> Option<Fault> {
        faults.iter().copied().find(|fault| self.strikes(*fault))
    }

    /// A number from this range, from the same dice.
    fn pick(&self, range: RangeInclusive<usize>) -> usize {
        self.dice().generator.random_range(range)
    }

    fn concerns(&self, uri: &Uri) -> bool {
        self.concern.as_ref().is_none_or(|concern| concern(uri))
    }

    fn dice(&self) -> MutexGuard<'_, Dice> {
        self.state.dice.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, injected {:?}", self.state.seed, self.dice().injected)
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faults({self}, of {:?})", self.chances)
    }
}

#[cfg(test)]
mod tests;
