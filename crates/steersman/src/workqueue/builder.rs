//! Putting a queue together.

use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::DefaultHashBuilder;

use super::metrics::{QueueFamilies, QueueMetrics};
use super::{ExponentialBackoff, Key, RateLimiter, WorkQueue};
use crate::metrics::Metrics;

/// Tells the group of a key, as a number.
pub(super) type GroupOf<T> = Box<dyn Fn(&T) -> u64 + Send + Sync>;

/// A queue that is not built yet; see [`WorkQueue::builder`].
#[must_use = "nothing happens until the queue is built"]
pub struct WorkQueueBuilder<T> {
    pub(super) name: Arc<str>,
    pub(super) limiter: Box<dyn RateLimiter<T>>,
    pub(super) group_of: Option<GroupOf<T>>,
    pub(super) metrics: Option<Metrics>,
}

impl<T: Key> WorkQueueBuilder<T> {
    pub(super) fn new() -> Self {
        Self {
            name: "".into(),
            limiter: Box::new(ExponentialBackoff::default()),
            group_of: None,
            metrics: None,
        }
    }

    /// What metrics and dumps call the queue.
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// How retries are spaced out; by [`ExponentialBackoff`] unless said otherwise.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<T> + 'static) -> Self {
        self.limiter = Box::new(limiter);
        self
    }

    /// Lets groups of keys take turns within a priority, so that a flood of one group does not
    /// hold up the others: `fair_by(|key: &ObjectKey| key.namespace.clone())`.
    pub fn fair_by<G: Hash>(mut self, group: impl Fn(&T) -> G + Send + Sync + 'static) -> Self {
        // Two groups whose hashes are equal share their turns, which does no harm.
        let hasher = DefaultHashBuilder::default();
        self.group_of = Some(Box::new(move |key| hasher.hash_one(group(key))));
        self
    }

    /// Where the queue reports its metrics; nowhere unless said otherwise. Only a queue with
    /// metrics reads the clock for every key: dumps then tell how long each waits and runs, and
    /// priorities are exact.
    pub fn metrics(mut self, metrics: &Metrics) -> Self {
        self.metrics = Some(metrics.clone());
        self
    }

    /// The queue, empty.
    pub fn build(self) -> WorkQueue<T> {
        let metrics = self.metrics.clone();
        let durations = metrics.as_ref().map(|metrics| QueueMetrics::new(metrics, &self.name));
        let queue = WorkQueue::assemble(self, durations);
        if let Some(metrics) = metrics {
            metrics.families::<QueueFamilies>().watch(&queue);
        }
        queue
    }
}
