//! Times, counted by size: as many as there are, in little room, to within two percent.

use std::time::Duration;

/// Of each doubling of the time, so many parts are told apart.
const PARTS: u64 = 64;

/// How often which time was measured.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// By [`place`]; as long as the longest time needs.
    counts: Vec<u64>,
    count: u64,
    longest: Duration,
}

impl Histogram {
    /// Counts a time.
    pub fn record(&mut self, time: Duration) {
        let place = place(micros(time));
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
        self.count += 1;
        self.longest = self.longest.max(time);
    }

    /// The longest of all.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// The time that this part of all did not exceed.
    pub fn quantile(&self, part: f64) -> Duration {
        let rank = ((self.count as f64 * part).ceil() as u64).max(1);
        let mut passed = 0;
        for (place, count) in self.counts.iter().enumerate() {
            passed += count;
            if passed >= rank {
                return Duration::from_micros(highest(place)).min(self.longest);
            }
        }
        self.longest
    }
}

/// Whatever is longer counts as this: two thousand years.
const MICROS_MAX: u64 = u64::MAX >> 8;

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(MICROS_MAX).min(MICROS_MAX)
}

/// Where a time is counted: one place each up to [`PARTS`] microseconds, then [`PARTS`] places for
/// each doubling.
fn place(micros: u64) -> usize {
    let doublings = u64::from((micros / PARTS).checked_ilog2().map_or(0, |log| log + 1));
    let place = match doublings {
        0 => micros,
        _ => doublings * PARTS + (micros >> (doublings - 1)) - PARTS,
    };
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// The longest time that is counted at a place.
fn highest(place: usize) -> u64 {
    let place = place as u64;
    match place / PARTS {
        0 => place,
        doublings => ((place % PARTS + PARTS + 1) << (doublings - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Histogram, MICROS_MAX, highest, place};

    #[test]
    fn places_follow_each_other_and_hold_what_they_say() {
        let mut last = 0;
        for micros in 0..100_000 {
            let place = place(micros);
            assert!(place == last || place == last + 1, "{micros}");
            assert!(
                highest(place) >= micros && highest(place) as f64 <= micros as f64 * 1.02 + 1.0
            );
            last = place;
        }
        assert!(highest(place(MICROS_MAX)) >= MICROS_MAX);
    }

    #[test]
    fn quantiles_are_those_of_the_times() {
        let mut times = Histogram::default();
        (1..=1000).for_each(|millis| times.record(Duration::from_millis(millis)));
        for (part, millis) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1000.0), (0.0, 1.0)] {
            let found = times.quantile(part).as_secs_f64() * 1000.0;
            assert!((found / millis - 1.0).abs() < 0.02, "{part}: {found} ms");
        }
        assert_eq!(Histogram::default().quantile(0.5), Duration::ZERO);
    }
}
