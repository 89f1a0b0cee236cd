//! How the seats of the server are divided between its priority levels.
//!
//! Each level has a nominal number by its shares, may lend some of it, and may borrow what others
//! do not need. [`divide`] gives every level between its lower and its upper bound, in proportion
//! to what it wants.

/// A level that takes part in the division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Claim {
    /// What it gets at least.
    pub(super) lower: f64,
    /// What it gets at most.
    pub(super) upper: f64,
    /// What it wants, at least the lower bound.
    pub(super) target: f64,
}

/// What a level may have, by its configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) nominal: u32,
    pub(super) lower: u32,
    pub(super) upper: u32,
}

/// The share of a level of all seats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) shares: u32,
    pub(super) lendable_percent: u32,
    /// Without one it may borrow whatever there is.
    pub(super) borrowing_percent: Option<u32>,
}

/// A target that is not zero, for proportions.
const TARGET_MIN: f64 = 0.001;

impl Share {
    /// The bounds of a level among levels whose shares sum up to `sum`.
    pub(super) fn bounds(self, seats: u32, sum: u32) -> Bounds {
        let nominal = if sum == 0 {
            0
        } else {
            let wide = (u64::from(seats) * u64::from(self.shares)).div_ceil(u64::from(sum));
            u32::try_from(wide).unwrap_or(u32::MAX)
        };
        let percent = |percent: u32| {
            let rounded = (u64::from(nominal) * u64::from(percent) + 50) / 100;
            u32::try_from(rounded).unwrap_or(u32::MAX)
        };
        let lent = percent(self.lendable_percent).min(nominal);
        let borrowed = self.borrowing_percent.map_or(seats, percent);
        Bounds { nominal, lower: nominal - lent, upper: nominal.saturating_add(borrowed) }
    }
}

/// Divides seats between levels: each has `proportion * target`, the same proportion for all, or
/// its bound where that lies beyond. Nobody is divided fairly if the bounds do not allow it; then
/// it is the lower or the upper bounds.
pub(super) fn divide(seats: f64, claims: &[Claim]) -> Vec<f64> {
    let given = |proportion: f64| {
        let one = move |claim: &Claim| {
            (proportion * claim.target.max(TARGET_MIN)).clamp(claim.lower, claim.upper)
        };
        claims.iter().map(one)
    };
    // What is given grows with the proportion, by straight lines between the bounds.
    let mut corners: Vec<f64> = claims
        .iter()
        .flat_map(|claim| {
            let target = claim.target.max(TARGET_MIN);
            [claim.lower / target, claim.upper / target]
        })
        .collect();
    corners.sort_by(f64::total_cmp);
    let mut below = (0.0, given(0.0).sum::<f64>());
    for corner in corners {
        let sum: f64 = given(corner).sum();
        if sum >= seats {
            let (low, low_sum) = below;
            let part =
                if sum > low_sum { (seats - low_sum).max(0.0) / (sum - low_sum) } else { 0.0 };
            return given(low + (corner - low) * part).collect();
        }
        below = (corner, sum);
    }
    given(f64::MAX / 1e9).collect()
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Claim, Share, divide};

    #[test]
    fn bounds_follow_from_shares() {
        // Kubernetes' own levels, of 600 seats and 245 shares.
        for (shares, lendable, expected) in [
            (30, 33, (74, 50)),
            (40, 25, (98, 73)),
            (10, 0, (25, 25)),
            (40, 50, (98, 49)),
            (100, 90, (245, 24)),
            (20, 50, (49, 24)),
            (5, 0, (13, 13)),
            (0, 0, (0, 0)),
        ] {
            let share = Share { shares, lendable_percent: lendable, borrowing_percent: None };
            let Bounds { nominal, lower, upper } = share.bounds(600, 245);
            assert_eq!((nominal, lower), expected, "{shares}");
            assert_eq!(upper, nominal + 600);
        }
        let share = Share { shares: 10, lendable_percent: 0, borrowing_percent: Some(50) };
        assert_eq!(share.bounds(600, 245), Bounds { nominal: 25, lower: 25, upper: 38 });
    }

    #[test]
    fn seats_are_divided_by_what_is_wanted_within_bounds() {
        let claim = |lower, upper, target| Claim { lower, upper, target };
        for (seats, claims, expected) in [
            (30.0, vec![claim(0.0, 100.0, 10.0), claim(0.0, 100.0, 20.0)], vec![10.0, 20.0]),
            (60.0, vec![claim(0.0, 100.0, 10.0), claim(0.0, 100.0, 20.0)], vec![20.0, 40.0]),
            (60.0, vec![claim(0.0, 15.0, 10.0), claim(0.0, 100.0, 20.0)], vec![15.0, 45.0]),
            (60.0, vec![claim(30.0, 100.0, 30.0), claim(5.0, 100.0, 90.0)], vec![30.0, 30.0]),
            (10.0, vec![claim(6.0, 9.0, 6.0), claim(4.0, 9.0, 4.0)], vec![6.0, 4.0]),
            (18.0, vec![claim(6.0, 9.0, 6.0), claim(4.0, 9.0, 4.0)], vec![9.0, 9.0]),
            (50.0, vec![claim(0.0, 60.0, 0.0), claim(0.0, 60.0, 0.0)], vec![25.0, 25.0]),
        ] {
            let divided = divide(seats, &claims);
            let near = divided.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6);
            assert!(near, "{seats} {claims:?}: {divided:?} {expected:?}");
        }
    }
}
