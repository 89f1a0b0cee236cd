//! The kinds that Kubernetes itself defines, true to 1.36 at their stable versions, and few others that
//! are served on request: a folder for each API group, a file for each kind.
//!
//! A kind's file says what there is to decide about it: names and abilities, defaults and validation, columns of
//! `kubectl get`, and what field selectors may name. A new kind is a file and two lines in the
//! `mod.rs` of its group; CONTRIBUTING.md lists the tables of facts that also name it. Its fields come
//! from the generated table of [`crate::schema`], their numbers in protobuf from that of
//! [`crate::protobuf`].

mod admissionregistration;
mod apiextensions;
mod apiregistration;
mod apiserverinternal;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
mod core;
mod discovery;
mod events;
mod flowcontrol;
mod kind;
mod networking;
mod node;
mod policy;
mod rbac;
mod resource;
mod scheduling;
mod storage;
mod storagemigration;
#[cfg(test)]
mod tests;

use kind::Kind;

pub use apiextensions::custom_resource_definition;
pub use core::{qos_class, service};

use crate::resource::Resource;

/// The groups, in the order of discovery.
const GROUPS: [&[Kind]; 23] = [
    core::KINDS,
    apiregistration::KINDS,
    apps::KINDS,
    events::KINDS,
    authentication::KINDS,
    authorization::KINDS,
    autoscaling::KINDS,
    batch::KINDS,
    certificates::KINDS,
    networking::KINDS,
    policy::KINDS,
    rbac::KINDS,
    storage::KINDS,
    admissionregistration::KINDS,
    apiextensions::KINDS,
    scheduling::KINDS,
    coordination::KINDS,
    node::KINDS,
    discovery::KINDS,
    resource::KINDS,
    flowcontrol::KINDS,
    apiserverinternal::KINDS,
    storagemigration::KINDS,
];

/// Every built-in resource that is served unless somebody says otherwise, in the order in which
/// discovery shows groups and versions.
pub fn all() -> Vec<Resource> {
    all_and(|_| false)
}

/// The same, and among them those that Kubernetes serves on request only, if they are asked for.
pub fn all_and(asked_for: impl Fn(&Resource) -> bool) -> Vec<Resource> {
    let kinds = GROUPS.iter().flat_map(|group| group.iter());
    let resources = kinds.map(|kind| (kind, kind.resource()));
    let served = resources.filter(|(kind, it)| !kind.is_on_request() || asked_for(it));
    served.map(|(_, resource)| resource).collect()
}

/// The resources that Kubernetes serves on request only: of versions that are not stable yet.
pub fn on_request() -> Vec<Resource> {
    let kinds = GROUPS.iter().flat_map(|group| group.iter());
    kinds.filter(|kind| kind.is_on_request()).map(Kind::resource).collect()
}

/// The rules of a built-in kind.
pub fn rules_of(group: &str, kind: &str) -> Option<&'static crate::rules::Rules> {
    let mut kinds = GROUPS.iter().flat_map(|kinds| kinds.iter());
    kinds.find(|known| known.group == group && known.name == kind).map(|found| found.rules)
}

/// The rules of a built-in kind that there is.
#[cfg(test)]
fn for_kind(group: &str, kind: &str) -> &'static crate::rules::Rules {
    rules_of(group, kind).unwrap_or_else(|| panic!("{group} has no {kind}"))
}
