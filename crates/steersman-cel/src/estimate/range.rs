//! Ranges of sizes and costs that never overflow.

/// From so much to so much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Estimate {
    /// At least.
    pub min: u64,
    /// At most.
    pub max: u64,
}

impl Estimate {
    /// Nothing is known.
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(super) fn fixed(number: u64) -> Self {
        Self { min: number, max: number }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Each end times a factor, rounded up.
    pub(super) fn scaled(self, factor: f64) -> Self {
        Self { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    /// What contains both.
    pub(super) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn scaled(number: u64, factor: f64) -> u64 {
    // Conversion saturates where cel-go checks for overflow.
    (number as f64 * factor).ceil() as u64
}
