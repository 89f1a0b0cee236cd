//! What a container runtime hides below `/proc` stays hidden.

use std::collections::BTreeSet;

use super::subject::text;
use super::wording::{containers, quoted};
use super::{Pod, Violation};

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    let mut types = BTreeSet::new();
    let bad = pod.names_of(|container| {
        let mount = &container.security()["procMount"];
        let bad = !mount.is_null() && mount != "Default";
        if bad {
            types.insert(text(mount));
        }
        bad
    });
    let detail = || {
        let bad = containers(&bad);
        let types = quoted(&types);
        format!("{bad} must not set securityContext.procMount to {types}")
    };
    (!bad.is_empty()).then(|| Violation::new("procMount", detail()))
}

/// In a user namespace there is nothing below `/proc` to hide.
pub(super) fn baseline_since_1_35(pod: Pod<'_>) -> Option<Violation> {
    if pod.has_user_namespace() { None } else { since_1_0(pod) }
}
