//! No container gets a capability that a container runtime would not give it by default.

use std::collections::BTreeSet;

use super::subject::{items, text};
use super::wording::{containers, quoted};
use super::{Pod, Violation};

const DEFAULTS: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    let mut added = BTreeSet::new();
    let bad = pod.names_of(|container| {
        let adds = items(&container.security()["capabilities"]["add"]).iter().map(text);
        let more: Vec<&str> = adds.filter(|name| !DEFAULTS.contains(name)).collect();
        added.extend(more.iter().copied());
        !more.is_empty()
    });
    let detail = || {
        let bad = containers(&bad);
        let added = quoted(&added);
        format!("{bad} must not include {added} in securityContext.capabilities.add")
    };
    (!bad.is_empty()).then(|| Violation::new("non-default capabilities", detail()))
}
