//! Judging a Pod: the checks that hold at a level and version, and what they find.

use super::checks::CHECKS;
use super::policy::{LevelVersion, Version};
use super::subject::Pod;
use super::violation::Violations;

/// Judges a Pod by the checks of a level, as they were in a version of Kubernetes. Those of a
/// version that is yet to come are the newest there are.
pub(super) fn evaluate(at: LevelVersion, pod: Pod<'_>) -> Violations {
    let minor = match at.version {
        Version::Latest => i64::MAX,
        Version::Minor(minor) => minor,
    };
    let checks = CHECKS.iter().filter_map(|check| check.at(at.level, minor));
    checks.filter_map(|check| check(pod)).collect()
}
