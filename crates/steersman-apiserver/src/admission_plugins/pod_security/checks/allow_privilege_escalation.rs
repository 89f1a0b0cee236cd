//! Every container gives up gaining more privileges than its parent process has.

use super::wording::containers;
use super::{Pod, Violation};

pub(super) fn since_1_8(pod: Pod<'_>) -> Option<Violation> {
    let bad = pod.names_of(|container| container.security()["allowPrivilegeEscalation"] != false);
    let detail =
        || format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&bad));
    (!bad.is_empty()).then(|| Violation::new("allowPrivilegeEscalation != false", detail()))
}

/// On Windows the field must not be set.
pub(super) fn since_1_25(pod: Pod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { since_1_8(pod) }
}
