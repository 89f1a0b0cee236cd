//! Scores of any size become scores from 0 to 100.

use crate::framework::SCORE_MAX;

/// In proportion to the largest; turned around, so that the largest becomes the worst, if asked for.
pub(super) fn by_largest(scores: &mut [i64], is_reversed: bool) {
    let largest = scores.iter().copied().max().unwrap_or_default().max(0);
    for score in scores {
        *score = match (largest, is_reversed) {
            (0, true) => SCORE_MAX,
            (0, false) => *score,
            (_, true) => SCORE_MAX - SCORE_MAX.saturating_mul(*score) / largest,
            (_, false) => SCORE_MAX.saturating_mul(*score) / largest,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_are_in_proportion_to_the_largest() {
        for (scores, is_reversed, expected) in [
            ([0, 0, 0], false, [0, 0, 0]),
            ([0, 0, 0], true, [100, 100, 100]),
            ([1, 2, 4], false, [25, 50, 100]),
            ([1, 2, 4], true, [75, 50, 0]),
            ([0, 1, 3], false, [0, 33, 100]),
            ([0, 1, 3], true, [100, 67, 0]),
        ] {
            let mut found = scores;
            by_largest(&mut found, is_reversed);
            assert_eq!(found, expected, "{scores:?} {is_reversed}");
        }
    }
}
