//! What makes a node better by how much of it is taken.

use crate::framework::SCORE_MAX;

/// A resource, and how much it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Weighted {
    pub(crate) name: String,
    pub(crate) weight: i64,
}

/// A point of a function from utilization, in percent, to scores, up to [`SCORE_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShapePoint {
    pub(crate) utilization: i64,
    pub(crate) score: i64,
}

/// What makes a node better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// That little of it is taken: Pods spread.
    LeastAllocated,
    /// That much of it is taken: Pods fill one node after the other.
    MostAllocated,
    /// What a function of the utilization says.
    RequestedToCapacityRatio(Vec<ShapePoint>),
}

impl Strategy {
    /// The score for one resource, of which so much is asked for with the Pod.
    pub(super) fn score(&self, requested: i64, capacity: i64) -> i64 {
        let wide = |part: i64| i128::from(part) * i128::from(SCORE_MAX) / i128::from(capacity);
        let narrow = |score: i128| i64::try_from(score).unwrap_or(SCORE_MAX);
        match self {
            Self::LeastAllocated if requested > capacity => 0,
            Self::LeastAllocated => narrow(wide(capacity - requested)),
            Self::MostAllocated => narrow(wide(requested.min(capacity))),
            Self::RequestedToCapacityRatio(shape) if requested > capacity => broken(shape, 100),
            Self::RequestedToCapacityRatio(shape) => broken(shape, narrow(wide(requested))),
        }
    }

    /// The score for all of them.
    pub(super) fn sum(&self, scores: impl Iterator<Item = (i64, i64)>) -> i64 {
        let mut sum = 0_i64;
        let mut weights = 0_i64;
        let is_ratio = matches!(self, Self::RequestedToCapacityRatio(_));
        for (score, weight) in scores.filter(|(score, _)| !is_ratio || *score > 0) {
            sum = sum.saturating_add(score.saturating_mul(weight));
            weights = weights.saturating_add(weight);
        }
        match weights {
            0 => 0,
            _ if is_ratio => (sum as f64 / weights as f64).round() as i64,
            _ => sum / weights,
        }
    }
}

/// The value of a function of straight lines between points.
fn broken(shape: &[ShapePoint], at: i64) -> i64 {
    let Some(right) = shape.iter().position(|point| at <= point.utilization) else {
        return shape.last().map_or(0, |point| point.score);
    };
    let Some(left) = right.checked_sub(1).map(|left| shape[left]) else {
        return shape[right].score;
    };
    let right = shape[right];
    left.score
        + (right.score - left.score) * (at - left.utilization)
            / (right.utilization - left.utilization)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_score_one_resource() {
        let shape = |points: &[(i64, i64)]| {
            let point = |(utilization, score): &(i64, i64)| ShapePoint {
                utilization: *utilization,
                score: *score,
            };
            Strategy::RequestedToCapacityRatio(points.iter().map(point).collect())
        };
        let rising = shape(&[(0, 0), (100, 100)]);
        let falling = shape(&[(0, 100), (100, 0)]);
        let hill = shape(&[(10, 0), (50, 100), (90, 20)]);
        for (strategy, requested, capacity, expected) in [
            (&Strategy::LeastAllocated, 0, 4000, 100),
            (&Strategy::LeastAllocated, 3000, 4000, 25),
            (&Strategy::LeastAllocated, 5000, 4000, 0),
            (&Strategy::LeastAllocated, 1, 3, 66),
            (&Strategy::MostAllocated, 3000, 4000, 75),
            (&Strategy::MostAllocated, 5000, 4000, 100),
            (&rising, 1000, 4000, 25),
            (&falling, 1000, 4000, 75),
            (&falling, 5000, 4000, 0),
            (&hill, 0, 100, 0),
            (&hill, 30, 100, 50),
            (&hill, 70, 100, 60),
            (&hill, 100, 100, 20),
        ] {
            let found = strategy.score(requested, capacity);
            assert_eq!(found, expected, "{strategy:?} {requested}/{capacity}");
        }
    }

    #[test]
    fn resources_count_by_weight() {
        let scores = || [(100, 3), (50, 1), (0, 4)].into_iter();
        assert_eq!(Strategy::LeastAllocated.sum(scores()), 43); // 350 / 8
        assert_eq!(Strategy::RequestedToCapacityRatio(Vec::new()).sum(scores()), 88); // 350 / 4
        assert_eq!(Strategy::MostAllocated.sum([].into_iter()), 0);
    }
}
