//! What is counted of the requests of one schema, in atomic numbers.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use super::queues::Refusal;

/// Where the buckets of the histograms end, in milliseconds: Kubernetes'.
pub(super) const BUCKETS: [u64; 13] =
    [0, 5, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000];

/// The requests of a schema.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) dispatched: AtomicU64,
    pub(super) concurrency_limit: AtomicU64,
    pub(super) queue_full: AtomicU64,
    pub(super) time_out: AtomicU64,
    pub(super) waiting: AtomicI64,
    pub(super) waiting_seats: AtomicI64,
    pub(super) executing: AtomicI64,
    pub(super) seats: AtomicI64,
    /// How long those waited that were served.
    pub(super) served_after: Histogram,
    /// How long those waited that were not.
    pub(super) refused_after: Histogram,
    pub(super) executed_for: Histogram,
}

/// How long something took, how often.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    /// The last has no end.
    pub(super) buckets: [AtomicU64; BUCKETS.len() + 1],
    pub(super) nanoseconds: AtomicU64,
}

impl Histogram {
    fn observe(&self, took: Duration) {
        let within = BUCKETS.iter().position(|end| took <= Duration::from_millis(*end));
        add(&self.buckets[within.unwrap_or(BUCKETS.len())]);
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }
}

impl Counts {
    /// A request is served on so many seats; says how many are taken now.
    pub(super) fn started(&self, seats: u32) -> i64 {
        add(&self.dispatched);
        self.executing.fetch_add(1, Ordering::Relaxed);
        let seats = i64::from(seats);
        self.seats.fetch_add(seats, Ordering::Relaxed) + seats
    }

    /// It is not any more.
    pub(super) fn left(&self, seats: u32) {
        self.executing.fetch_sub(1, Ordering::Relaxed);
        self.seats.fetch_sub(i64::from(seats), Ordering::Relaxed);
    }

    /// The same, after so long.
    pub(super) fn ended(&self, seats: u32, took: Duration) {
        self.left(seats);
        self.executed_for.observe(took);
    }

    pub(super) fn enqueued(&self, seats: u32) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.waiting_seats.fetch_add(i64::from(seats), Ordering::Relaxed);
    }

    pub(super) fn dequeued(&self, seats: u32) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.waiting_seats.fetch_sub(i64::from(seats), Ordering::Relaxed);
    }

    pub(super) fn waited(&self, served: bool, waited: Duration) {
        let histogram = if served { &self.served_after } else { &self.refused_after };
        histogram.observe(waited);
    }

    pub(super) fn refused(&self, refusal: Refusal) {
        add(match refusal {
            Refusal::ConcurrencyLimit => &self.concurrency_limit,
            Refusal::QueueFull => &self.queue_full,
        });
    }

    pub(super) fn timed_out(&self) {
        add(&self.time_out);
    }
}

fn add(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}
