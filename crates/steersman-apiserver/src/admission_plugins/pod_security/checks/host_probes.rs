//! No probe and no lifecycle handler makes a node connect to another host than the Pod.

use std::collections::BTreeSet;

use super::subject::{Container, text};
use super::wording::{containers, plural, quoted};
use super::{Pod, Violation};

pub(super) fn since_1_34(pod: Pod<'_>) -> Option<Violation> {
    let mut hosts = BTreeSet::new();
    let bad: BTreeSet<&str> = pod
        .containers()
        .filter(|container| {
            let found = hosts_of(*container);
            hosts.extend(found.iter().copied());
            !found.is_empty()
        })
        .map(Container::name)
        .collect();
    if bad.is_empty() {
        return None;
    }
    let bad: Vec<&str> = bad.into_iter().collect();
    let uses = plural(bad.len(), "uses", "use");
    let word = plural(hosts.len(), "probe or lifecycle host", "probe or lifecycle hosts");
    let detail = format!("{} {uses} {word} {}", containers(&bad), quoted(&hosts));
    Some(Violation::new("probe or lifecycle host", detail))
}

/// The hosts that a container names.
fn hosts_of(container: Container<'_>) -> Vec<&str> {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"];
    let probes = probes.into_iter().map(|probe| container.field(probe));
    let lifecycle = container.field("lifecycle");
    let handlers = ["postStart", "preStop"].into_iter().map(|handler| &lifecycle[handler]);
    probes
        .chain(handlers)
        .flat_map(|handler| [&handler["httpGet"], &handler["tcpSocket"]])
        .map(|way| text(&way["host"]))
        .filter(|host| !host.is_empty())
        .collect()
}
