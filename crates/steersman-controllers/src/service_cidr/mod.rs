//! The ServiceCIDR controller: says which ranges of cluster addresses can be used, and keeps those
//! from going whose addresses Services still have.

mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use steersman::handler::Requests;
use steersman::informer::Event;
use steersman::{Controller, Kind};

use plan::Ranges;

/// Under its own name it applies what it says of ranges.
const NAME: &str = "service-cidr-controller";
/// Keeps a range until no Service has an address of it.
const FINALIZER: &str = "networking.k8s.io/service-cidr-finalizer";

/// The ServiceCIDR controller.
pub(crate) fn controller() -> Controller {
    let ranges = Arc::new(Ranges::default());
    let containing = Arc::clone(&ranges);
    Controller::of::<ServiceCIDR>()
        .named(NAME)
        .observes(move |event| ranges.observe(event))
        .watches_with(
            Kind::<IPAddress>::of(),
            move |event: &Event<IPAddress>, requests: &mut Requests| match event {
                Event::Added { .. } | Event::Deleted { .. } => {
                    containing.leaving(event.object().key(), requests);
                }
                _ => {}
            },
        )
        .cleanup(FINALIZER, reconcile::clean_up)
        .reconcile(reconcile::reconcile)
}
