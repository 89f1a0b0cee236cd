//! How many seats a level wanted over a while: the input of lending and borrowing.

use std::time::Duration;

/// Half of what was wanted is forgotten after five minutes: the weight of the past at each
/// adjustment.
const SMOOTHING: f64 = 0.977;

/// Sums over time of the number of seats that were wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Demand {
    seconds: f64,
    sum: f64,
    squares: f64,
    max: u32,
}

/// What is known of the demand, smoothed over the past.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Smoothed {
    pub(super) average: f64,
    pub(super) deviation: f64,
    pub(super) max: u32,
    pub(super) smoothed: f64,
}

impl Demand {
    /// Nothing yet, but that so many are wanted.
    pub(super) fn beginning_with(wanted: u32) -> Self {
        Self { max: wanted, ..Self::default() }
    }

    /// So many were wanted for a while.
    pub(super) fn advance(&mut self, passed: Duration, wanted: u32) {
        let (seconds, wanted_) = (passed.as_secs_f64(), f64::from(wanted));
        self.seconds += seconds;
        self.sum += seconds * wanted_;
        self.squares += seconds * wanted_ * wanted_;
        self.note(wanted);
    }

    /// So many are wanted from now on.
    pub(super) fn note(&mut self, wanted: u32) {
        self.max = self.max.max(wanted);
    }
}

impl Smoothed {
    /// Takes in what was wanted over a number of periods of adjustment.
    pub(super) fn take_in(&mut self, demand: &Demand, periods: u32) {
        self.max = demand.max;
        if demand.seconds <= 0.0 {
            return;
        }
        self.average = demand.sum / demand.seconds;
        let variance = demand.squares / demand.seconds - self.average * self.average;
        self.deviation = variance.max(0.0).sqrt();
        let envelope = self.average + self.deviation;
        let past = SMOOTHING.powi(i32::try_from(periods.max(1)).unwrap_or(i32::MAX));
        self.smoothed = envelope.max(past * self.smoothed + (1.0 - past) * envelope);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Demand, Smoothed};

    #[test]
    fn the_past_fades_and_the_present_counts_at_once() {
        let mut smoothed = Smoothed::default();
        let mut demand = Demand::beginning_with(0);
        demand.advance(Duration::from_secs(5), 0);
        demand.advance(Duration::from_secs(5), 20);
        smoothed.take_in(&demand, 1);
        assert_eq!((smoothed.average, smoothed.deviation, smoothed.max), (10.0, 10.0, 20));
        assert!((smoothed.smoothed - 20.0).abs() < 1e-9);
        let mut idle = Demand::beginning_with(0);
        idle.advance(Duration::from_secs(300), 0);
        smoothed.take_in(&idle, 30);
        assert!((9.0..11.0).contains(&smoothed.smoothed), "{}", smoothed.smoothed);
        assert_eq!(smoothed.max, 0);
    }
}
