//! What a Pod's conditions say of a resize.

use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::sizes::{ERROR, IN_PROGRESS, PENDING, Pending, Progress, Sizes};

/// Why a resize waits that its node has no room for now.
const DEFERRED: &str = "Deferred";

/// The conditions of a Pod with these sizes that had others before, or the same.
pub(in crate::pods) fn conditions(
    sizes: &Sizes,
    old: &[PodCondition],
    now: &Time,
) -> Vec<PodCondition> {
    let pending = sizes.pending.as_ref().map(|Pending { message, generation }| {
        said(PENDING, Some((DEFERRED, message.as_str())), *generation)
    });
    let progress = sizes.progress.as_ref().map(|Progress { generation, error }| {
        said(IN_PROGRESS, error.as_ref().map(|error| (ERROR, error.as_str())), *generation)
    });
    pending.into_iter().chain(progress).map(|said| timed(said, old, now)).collect()
}

/// Whether a condition is of those.
pub(in crate::pods) fn is_own_condition(type_: &str) -> bool {
    [PENDING, IN_PROGRESS].contains(&type_)
}

fn said(type_: &str, why: Option<(&str, &str)>, generation: Option<i64>) -> PodCondition {
    PodCondition {
        type_: type_.to_owned(),
        status: "True".to_owned(),
        reason: why.map(|(reason, _)| reason.to_owned()),
        message: why.map(|(_, message)| message.to_owned()),
        observed_generation: generation,
        ..PodCondition::default()
    }
}

/// One that says the same as before keeps its times: else each look would be news.
fn timed(new: PodCondition, old: &[PodCondition], now: &Time) -> PodCondition {
    let before = old.iter().find(|old| old.type_ == new.type_ && old.reason == new.reason);
    let same = before.filter(|old| {
        old.message == new.message && old.observed_generation == new.observed_generation
    });
    let now = || Some(now.clone());
    PodCondition {
        last_probe_time: same.map_or_else(now, |old| old.last_probe_time.clone()),
        last_transition_time: before.map_or_else(now, |old| old.last_transition_time.clone()),
        ..new
    }
}
