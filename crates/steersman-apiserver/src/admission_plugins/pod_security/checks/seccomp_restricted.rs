//! Every container has a filter of system calls, from the Pod or of its own.

use super::seccomp_baseline::{self, profile};
use super::wording::containers;
use super::{Pod, Violation};

pub(super) fn since_1_19(pod: Pod<'_>) -> Option<Violation> {
    if let bad @ Some(_) = seccomp_baseline::since_1_19(pod) {
        return bad;
    }
    if profile(pod.security()).is_some() {
        return None;
    }
    let silent = pod.names_of(|container| profile(container.security()).is_none());
    let detail = || {
        let silent = containers(&silent);
        format!(
            "pod or {silent} must set securityContext.seccompProfile.type to \
             \"RuntimeDefault\" or \"Localhost\""
        )
    };
    (!silent.is_empty()).then(|| Violation::new("seccompProfile", detail()))
}

/// On Windows the field must not be set.
pub(super) fn since_1_25(pod: Pod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { since_1_19(pod) }
}
