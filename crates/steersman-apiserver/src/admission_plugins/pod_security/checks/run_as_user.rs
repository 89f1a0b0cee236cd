//! Nobody asks to run as root.

use super::wording::setters;
use super::{Pod, Violation};

pub(super) fn since_1_23(pod: Pod<'_>) -> Option<Violation> {
    let bad = pod.names_of(|container| container.security()["runAsUser"] == 0);
    let setters = setters(pod.security()["runAsUser"] == 0, &bad)?;
    Some(Violation::new("runAsUser=0", format!("{setters} must not set runAsUser=0")))
}

/// Root in a user namespace is nobody on the host.
pub(super) fn since_1_35(pod: Pod<'_>) -> Option<Violation> {
    if pod.has_user_namespace() { None } else { since_1_23(pod) }
}
