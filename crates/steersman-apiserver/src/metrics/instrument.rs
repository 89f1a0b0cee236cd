//! The instruments: numbers that many threads count in at once, without a lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::page::{Labels, Page};

/// What a family holds one of for each set of labels.
pub(crate) trait Instrument: Send + Sync + 'static {
    /// How the text format calls it.
    const KIND: &'static str;

    /// Appends its samples.
    fn write(&self, page: &mut Page<'_>, labels: &Labels<'_>);
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Instrument for Counter {
    const KIND: &'static str = "counter";

    fn write(&self, page: &mut Page<'_>, labels: &Labels<'_>) {
        page.sample("", labels, self.get());
    }
}

/// How often numbers were how large.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// Where the buckets end, in order; the last, which has no end, is not among them.
    ends: &'static [f64],
    /// How many numbers fell into each bucket, and into none of the others.
    counts: Box<[AtomicU64]>,
    sum: Real,
}

impl Histogram {
    pub(crate) fn new(ends: &'static [f64]) -> Self {
        let counts = (0..=ends.len()).map(|_| AtomicU64::new(0)).collect();
        Self { ends, counts, sum: Real::default() }
    }

    pub(crate) fn observe(&self, number: f64) {
        let bucket = self.ends.partition_point(|end| *end < number);
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.add(number);
    }

    /// How many numbers were observed.
    pub(crate) fn count(&self) -> u64 {
        self.counts.iter().map(|number| number.load(Ordering::Relaxed)).sum()
    }

    /// Observes how many seconds something took.
    pub(crate) fn took(&self, time: Duration) {
        self.observe(time.as_secs_f64());
    }
}

impl Instrument for Histogram {
    const KIND: &'static str = "histogram";

    fn write(&self, page: &mut Page<'_>, labels: &Labels<'_>) {
        let mut count = 0;
        for (end, number) in self.ends.iter().copied().chain([f64::INFINITY]).zip(&self.counts) {
            count += number.load(Ordering::Relaxed);
            page.bucket(labels, end, count);
        }
        page.sample("_sum", labels, self.sum.get());
        page.sample("_count", labels, count);
    }
}

/// A number with a fraction, as its bits.
#[derive(Debug, Default)]
struct Real(AtomicU64);

impl Real {
    fn add(&self, number: f64) {
        let mut bits = self.0.load(Ordering::Relaxed);
        loop {
            let sum = (f64::from_bits(bits) + number).to_bits();
            match self.0.compare_exchange_weak(bits, sum, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => bits = found,
            }
        }
    }

    fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}
