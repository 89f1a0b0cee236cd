//! What is counted of the requests of one schema, without a lock.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use super::queues::Refusal;
use crate::metrics::{Counter, Gauge, Histogram};

/// Where the buckets of the histograms end, in seconds: Kubernetes'.
const BUCKETS: &[f64] = &[0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0];

/// The requests of a schema.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) dispatched: Counter,
    pub(super) concurrency_limit: AtomicU64,
    pub(super) queue_full: AtomicU64,
    pub(super) time_out: AtomicU64,
    pub(super) waiting: AtomicI64,
    pub(super) waiting_seats: AtomicI64,
    pub(super) executing: Gauge,
    pub(super) seats: AtomicI64,
    /// How long those waited that were served.
    pub(super) served_after: Histogram,
    /// How long those waited that were not.
    pub(super) refused_after: Histogram,
    pub(super) executed_for: Histogram,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            dispatched: Counter::default(),
            concurrency_limit: AtomicU64::new(0),
            queue_full: AtomicU64::new(0),
            time_out: AtomicU64::new(0),
            waiting: AtomicI64::new(0),
            waiting_seats: AtomicI64::new(0),
            executing: Gauge::default(),
            seats: AtomicI64::new(0),
            served_after: Histogram::new(BUCKETS),
            refused_after: Histogram::new(BUCKETS),
            executed_for: Histogram::new(BUCKETS),
        }
    }
}

impl Counts {
    /// A request is served on so many seats; says how many are taken now.
    pub(super) fn started(&self, seats: u32) -> i64 {
        self.dispatched.increment();
        self.executing.rise();
        let seats = i64::from(seats);
        self.seats.fetch_add(seats, Ordering::Relaxed) + seats
    }

    /// It is not any more.
    pub(super) fn left(&self, seats: u32) {
        self.executing.fall();
        self.seats.fetch_sub(i64::from(seats), Ordering::Relaxed);
    }

    /// The same, after so long.
    pub(super) fn ended(&self, seats: u32, took: Duration) {
        self.left(seats);
        self.executed_for.took(took);
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
        histogram.took(waited);
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
