//! No container is privileged.

use super::wording::containers;
use super::{Pod, Violation};

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    let bad = pod.names_of(|container| container.security()["privileged"] == true);
    let detail = || format!("{} must not set securityContext.privileged=true", containers(&bad));
    (!bad.is_empty()).then(|| Violation::new("privileged", detail()))
}
