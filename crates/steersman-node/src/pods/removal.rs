//! When a Pod that has ended, and is being deleted, is removed for good.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

/// How long the server may take to remove a Pod whose grace period has been cut to nothing.
const REMOVED_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug, PartialEq)]
pub(super) enum Removal {
    /// Remove it.
    Now,
    /// Look again, if it is still there then.
    After(Duration),
    /// Finalizers keep it, and nothing else does.
    LeftToOthers,
}

/// What to do about a Pod without running containers. Once its grace period is nothing, the server
/// removes it by itself, but it does so after it has marked it, and may be killed in between.
pub(super) fn removal(pod: &Pod, now: Timestamp) -> Removal {
    let meta = &pod.metadata;
    if meta.deletion_grace_period_seconds != Some(0) {
        return Removal::Now;
    }
    if meta.finalizers.as_ref().is_some_and(|all| !all.is_empty()) {
        return Removal::LeftToOthers;
    }
    let marked = meta.deletion_timestamp.as_ref().map(|time| time.0);
    let age = marked.and_then(|at| Duration::try_from(now.duration_since(at)).ok());
    match age.and_then(|age| REMOVED_WITHIN.checked_sub(age)) {
        Some(rest) => Removal::After(rest + Duration::from_millis(1)),
        None => Removal::Now,
    }
}
