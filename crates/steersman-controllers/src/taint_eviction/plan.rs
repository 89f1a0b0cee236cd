//! When a Pod has to go: taints, tolerations and the time in, a decision out.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use steersman::placement::tolerates;

/// What was decided about a Pod before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Scheduled {
    /// When it is deleted.
    pub(super) at: Timestamp,
}

/// What becomes of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// It stays.
    Stay,
    /// It stays, though it was to go.
    Cancel,
    /// It goes then.
    At(Timestamp),
    /// It goes now, since its time has come.
    Now,
    /// It goes now, and what was decided before does not count any more.
    Instead,
}

/// What becomes of a Pod on a node with these `NoExecute` taints. What was decided stays decided as
/// long as it is to go at all.
pub(super) fn decide(
    taints: &[Taint],
    tolerations: &[Toleration],
    scheduled: Option<Scheduled>,
    now: Timestamp,
) -> Decision {
    let stay = if scheduled.is_some() { Decision::Cancel } else { Decision::Stay };
    if taints.is_empty() {
        return stay;
    }
    let Some(used) = used(taints, tolerations) else {
        return if scheduled.is_some() { Decision::Instead } else { Decision::Now };
    };
    let Some(time) = tolerated_for(&used) else { return stay };
    due(scheduled.map_or(now + time, |scheduled| scheduled.at), now)
}

/// A Pod goes at this time.
pub(super) fn due(at: Timestamp, now: Timestamp) -> Decision {
    if at <= now { Decision::Now } else { Decision::At(at) }
}

/// The tolerations by which all these taints are tolerated; none if one is not.
fn used<'a>(taints: &[Taint], tolerations: &'a [Toleration]) -> Option<Vec<&'a Toleration>> {
    let tolerated = |taint| tolerations.iter().find(|toleration| tolerates(toleration, taint));
    taints.iter().map(tolerated).collect()
}

/// For how long all of them tolerate; for ever if none says.
fn tolerated_for(tolerations: &[&Toleration]) -> Option<SignedDuration> {
    let seconds =
        tolerations.iter().filter_map(|toleration| toleration.toleration_seconds).min()?;
    Some(SignedDuration::from_secs(seconds.clamp(0, i64::from(u32::MAX))))
}
