//! Priority and fairness: which request is served now, which one waits, which one is refused.
//!
//! A request belongs to the first [`schema`] that matches it, and with it to a priority level; its
//! user or its namespace makes it part of a flow. A [`level`] has seats, of which a request takes as
//! many as its [work](estimate) is [worth](work). Where there are none left, it waits in a queue of
//! its flow's [hand](deal), and [`queues`] decides who is next. Levels lend each other
//! [what they do not need](shares), by what was [wanted](demand) lately.
//!
//! Who [waits for a webhook](lending) lends its seats to flows of which nobody is served.
//!
//! A request that finds a seat costs a lock of its level for a moment, and no memory. Nothing runs
//! beside requests: what is due is done by the next one that comes. Everything about time is
//! tokio's, so that it is the same on virtual time.

mod configuration;
mod counts;
mod deal;
pub(crate) mod defaults;
mod demand;
mod dropped;
mod dump;
pub(crate) mod estimate;
mod flow;
mod lending;
mod level;
mod metrics;
mod objects;
mod queues;
mod schema;
mod shares;
mod spec;
mod watches;
mod work;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use steersman_store::{Event, Revision, Store, StoreError};
use tokio::time::Instant;

use crate::authz::Attributes;
use configuration::Configuration;
pub(crate) use flow::Flow;
pub(crate) use lending::{Lender, elsewhere, serving};
pub(crate) use level::{Begun, Seat};
use objects::Known;
pub(crate) use objects::folders;
pub(crate) use watches::Watched;
use watches::Watches;
pub(crate) use work::Work;

/// How often seats are divided anew.
const PERIOD: Duration = Duration::from_secs(10);

/// Who is served, who waits, who is refused.
#[derive(Debug)]
pub(crate) struct Fairness {
    began: Instant,
    /// When the seats are divided anew, in milliseconds.
    due: AtomicU64,
    /// Locked before the configuration.
    known: Mutex<Known>,
    configuration: Arc<RwLock<Configuration>>,
    /// Who hears of writes.
    pub(crate) watches: Watches,
}

impl Fairness {
    /// A server with so many seats, which knows no more than what always is.
    pub(crate) fn new(seats: u32) -> Self {
        Self {
            began: Instant::now(),
            due: AtomicU64::new(millis(PERIOD)),
            known: Mutex::default(),
            configuration: Arc::new(RwLock::new(Configuration::new(seats))),
            watches: Watches::default(),
        }
    }

    /// The flow schema and the level of a request that comes now.
    pub(crate) fn classify(&self, asked: &Attributes<'_>, now: Instant) -> Option<Arc<Flow>> {
        self.divide_if_due(now);
        let configuration = self.configuration.read().unwrap_or_else(PoisonError::into_inner);
        let flows = &configuration.flows;
        let flow = flows.iter().find(|flow| flow.schema.matches(asked));
        // Everybody is authenticated or not, and so belongs at least to the last.
        flow.or(flows.last()).cloned()
    }

    /// Reads all schemas and levels that are stored, and says of which revision that is.
    pub(crate) async fn load(&self, store: &dyn Store) -> Result<Revision, StoreError> {
        let (objects, revision) = objects::read(store).await?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.replace(objects);
        self.digest(&known);
        Ok(revision)
    }

    /// Takes in what a watch of the [`folders`] tells.
    pub(crate) fn follow(&self, events: &[Arc<Event>]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let news = events.iter().filter(|event| known.hear(event)).count();
        if news > 0 {
            self.digest(&known);
        }
    }

    fn digest(&self, known: &Known) {
        let mut configuration = self.configuration.write().unwrap_or_else(PoisonError::into_inner);
        configuration.digest(known.objects());
    }

    /// Divides the seats anew if nobody has for a while.
    fn divide_if_due(&self, now: Instant) {
        let now = millis(now.saturating_duration_since(self.began));
        let due = self.due.load(Ordering::Relaxed);
        if now < due {
            return;
        }
        let next = now + millis(PERIOD);
        if self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
            let periods = 1 + (now - due) / millis(PERIOD);
            let mut configuration =
                self.configuration.write().unwrap_or_else(PoisonError::into_inner);
            configuration.adjust(u32::try_from(periods).unwrap_or(u32::MAX));
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
