//! Numbers that may be percentages, such as `maxUnavailable`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// What becomes of the fraction of a percentage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// It counts as one more.
    Up,
    /// It is dropped.
    Down,
}

/// A number, or a percentage of `total`; never negative.
pub(crate) fn scaled(value: &IntOrString, total: i32, round: Round) -> i32 {
    let percent = match value {
        IntOrString::Int(number) => return (*number).max(0),
        IntOrString::String(text) => text.trim_end_matches('%').parse::<i64>().unwrap_or(0),
    };
    let hundredths = percent.max(0).saturating_mul(i64::from(total));
    let whole = match round {
        Round::Up => hundredths.saturating_add(99) / 100,
        Round::Down => hundredths / 100,
    };
    i32::try_from(whole).unwrap_or(i32::MAX)
}
