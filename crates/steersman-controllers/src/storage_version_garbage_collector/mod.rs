//! The storage version garbage collector: API servers that are gone encode nothing any more. Where
//! StorageVersions are served, which Kubernetes 1.36 does on request.
//!
//! An API server says in a Lease in `kube-system`, with a label, that it is there, and in the status of
//! StorageVersions how it encodes what it stores. When its Lease goes, so does what it said. [`plan`] says
//! what is left.

mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use k8s_openapi::api::apiserverinternal::v1alpha1::StorageVersion;
use k8s_openapi::api::coordination::v1::Lease;
use kube::core::PartialObjectMeta;
use steersman::informer::Event;
use steersman::source::Watch;
use steersman::{Controller, ObjectKey};

use plan::{identity, servers};
use reconcile::Collector;

pub(crate) const NAME: &str = "storageversion-garbage-collector-controller";

/// The storage version garbage collector.
pub(crate) fn controller() -> Controller {
    let leases = Watch::<PartialObjectMeta<Lease>>::metadata().when(is_end_of_server);
    Controller::of::<StorageVersion>()
        .named(NAME)
        .watches_referenced_with(leases, |version: &StorageVersion| {
            servers(version).map(identity).collect::<Vec<ObjectKey>>()
        })
        .reconcile(Collector)
}

/// Whether an API server has gone, and not just said again that it is there.
fn is_end_of_server(event: &Event<PartialObjectMeta<Lease>>) -> bool {
    matches!(event, Event::Deleted { object, .. } if object.label(plan::COMPONENT) == Some(plan::SERVER))
}
