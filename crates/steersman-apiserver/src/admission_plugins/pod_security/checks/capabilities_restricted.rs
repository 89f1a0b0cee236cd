//! Every container drops all capabilities, and gets none back but that to bind to low ports.

use std::collections::BTreeSet;

use super::subject::{items, text};
use super::wording::{containers, quoted};
use super::{Pod, Violation};

pub(super) fn since_1_22(pod: Pod<'_>) -> Option<Violation> {
    let keeping = pod.names_of(|container| {
        !items(&container.security()["capabilities"]["drop"]).iter().any(|name| name == "ALL")
    });
    let mut added = BTreeSet::new();
    let adding = pod.names_of(|container| {
        let adds = items(&container.security()["capabilities"]["add"]).iter().map(text);
        let more: Vec<&str> = adds.filter(|name| *name != "NET_BIND_SERVICE").collect();
        added.extend(more.iter().copied());
        !more.is_empty()
    });
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let keeping = containers(&keeping);
        details.push(format!("{keeping} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    if !adding.is_empty() {
        let adding = containers(&adding);
        let added = quoted(&added);
        details
            .push(format!("{adding} must not include {added} in securityContext.capabilities.add"));
    }
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

/// On Windows the field must not be set.
pub(super) fn since_1_25(pod: Pod<'_>) -> Option<Violation> {
    if pod.is_windows() { None } else { since_1_22(pod) }
}
