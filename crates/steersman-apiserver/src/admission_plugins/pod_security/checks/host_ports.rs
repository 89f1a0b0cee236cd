//! No container takes a port of its host.

use std::collections::BTreeSet;

use super::subject::items;
use super::wording::{containers, plural};
use super::{Pod, Violation};

pub(super) fn since_1_0(pod: Pod<'_>) -> Option<Violation> {
    // As texts, for so they are ordered.
    let mut taken = BTreeSet::new();
    let bad = pod.names_of(|container| {
        let ports = items(container.field("ports")).iter();
        let ports = ports.filter_map(|port| port["hostPort"].as_i64()).filter(|port| *port != 0);
        let ports: Vec<String> = ports.map(|port| port.to_string()).collect();
        let any = !ports.is_empty();
        taken.extend(ports);
        any
    });
    if bad.is_empty() {
        return None;
    }
    let uses = plural(bad.len(), "uses", "use");
    let word = plural(taken.len(), "hostPort", "hostPorts");
    let taken: Vec<String> = taken.into_iter().collect();
    let detail = format!("{} {uses} {word} {}", containers(&bad), taken.join(", "));
    Some(Violation::new("hostPort", detail))
}
