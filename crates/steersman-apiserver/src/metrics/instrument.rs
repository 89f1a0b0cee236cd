//! The instruments: numbers that many threads count in at once, without a lock and without meeting.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::page::{Labels, Page};

/// What a family holds one of for each set of labels.
pub(crate) trait Instrument: Send + Sync + 'static {
    /// How the text format calls it.
    const KIND: &'static str;

    /// Appends its samples.
    fn write(&self, page: &mut Page<'_>, labels: &Labels<'_>);
}

/// In how many places a number is counted. Cores that count in the same place wait for each other.
const PLACES: usize = 4;

/// How many numbers lie between two places at least, so that they share no line of a cache.
const APART: usize = 8;

thread_local! {
    /// Where this thread counts.
    static PLACE: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % PLACES
    };
}

/// Some numbers, each of which is the sum of what is counted in all places. A place takes memory once
/// something is counted there: definitions can make thousands of series that hardly anybody needs.
#[derive(Debug)]
struct Numbers {
    count: usize,
    places: [OnceLock<Box<[AtomicU64]>>; PLACES],
}

impl Numbers {
    fn new(count: usize) -> Self {
        Self { count, places: Default::default() }
    }

    /// The number where this thread counts.
    fn here(&self, index: usize) -> &AtomicU64 {
        let new = || (0..self.count + APART).map(|_| AtomicU64::new(0)).collect();
        &self.places[PLACE.with(|place| *place)].get_or_init(new)[index]
    }

    /// What is counted of a number in each place.
    fn everywhere(&self, index: usize) -> impl Iterator<Item = u64> {
        let places = self.places.iter().filter_map(OnceLock::get);
        places.map(move |numbers| numbers[index].load(Ordering::Relaxed))
    }

    fn sum(&self, index: usize) -> u64 {
        self.everywhere(index).fold(0, u64::wrapping_add)
    }
}

/// Several numbers that only grow.
#[derive(Debug)]
pub(super) struct Counters(Numbers);

impl Counters {
    pub(super) fn new(count: usize) -> Self {
        Self(Numbers::new(count))
    }

    pub(super) fn increment(&self, index: usize) {
        self.0.here(index).fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn get(&self, index: usize) -> u64 {
        self.0.sum(index)
    }
}

/// A number that only grows.
#[derive(Debug)]
pub(crate) struct Counter(Numbers);

impl Default for Counter {
    fn default() -> Self {
        Self(Numbers::new(1))
    }
}

impl Counter {
    pub(crate) fn add(&self, number: u64) {
        self.0.here(0).fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn increment(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.sum(0)
    }
}

impl Instrument for Counter {
    const KIND: &'static str = "counter";

    fn write(&self, page: &mut Page<'_>, labels: &Labels<'_>) {
        page.sample("", labels, self.get());
    }
}

/// How many of something there are.
#[derive(Debug)]
pub(crate) struct Gauge(Numbers);

impl Default for Gauge {
    fn default() -> Self {
        Self(Numbers::new(1))
    }
}

impl Gauge {
    pub(crate) fn rise(&self) {
        self.0.here(0).fetch_add(1, Ordering::Relaxed);
    }

    /// Wherever it rose: only the sum says something.
    pub(crate) fn fall(&self) {
        self.0.here(0).fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> i64 {
        self.0.sum(0).cast_signed()
    }
}

/// How often numbers were how large.
#[derive(Debug)]
pub(crate) struct Histogram {
    /// Where the buckets end, in order; the last, which has no end, is not among them.
    ends: &'static [f64],
    /// How many numbers fell into each bucket, and into none of the others; then their sum, as the
    /// bits of a number with a fraction.
    numbers: Numbers,
}

impl Histogram {
    pub(crate) fn new(ends: &'static [f64]) -> Self {
        Self { ends, numbers: Numbers::new(ends.len() + 2) }
    }

    pub(crate) fn observe(&self, number: f64) {
        let bucket = self.ends.partition_point(|end| *end < number);
        self.numbers.here(bucket).fetch_add(1, Ordering::Relaxed);
        let sum = self.numbers.here(self.ends.len() + 1);
        let mut bits = sum.load(Ordering::Relaxed);
        loop {
            let new = (f64::from_bits(bits) + number).to_bits();
            match sum.compare_exchange_weak(bits, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(found) => bits = found,
            }
        }
    }

    /// How many numbers were observed.
    pub(crate) fn count(&self) -> u64 {
        (0..=self.ends.len()).map(|bucket| self.numbers.sum(bucket)).sum()
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
        for (bucket, end) in self.ends.iter().copied().chain([f64::INFINITY]).enumerate() {
            count += self.numbers.sum(bucket);
            page.bucket(labels, end, count);
        }
        let sums = self.numbers.everywhere(self.ends.len() + 1).map(f64::from_bits);
        page.sample("_sum", labels, sums.fold(0.0, |all, sum| all + sum));
        page.sample("_count", labels, count);
    }
}

#[cfg(test)]
mod tests {
    use super::{Counter, Counters, Gauge, Histogram, PLACES};

    #[test]
    fn what_threads_count_apart_is_told_together() {
        let (counter, gauge) = (Counter::default(), Gauge::default());
        let (counters, histogram) = (Counters::new(2), Histogram::new(&[0.5]));
        gauge.rise();
        std::thread::scope(|scope| {
            for _ in 0..2 * PLACES {
                scope.spawn(|| {
                    counter.add(3);
                    counters.increment(1);
                    histogram.observe(0.25);
                    histogram.observe(4.0);
                });
            }
            scope.spawn(|| gauge.fall());
        });
        let threads = 2 * PLACES as u64;
        assert_eq!(counter.get(), 3 * threads);
        assert_eq!([counters.get(0), counters.get(1)], [0, threads]);
        assert_eq!(histogram.count(), 2 * threads);
        assert_eq!(gauge.get(), 0);
    }
}
