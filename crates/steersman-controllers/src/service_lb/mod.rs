//! The Service load balancer controller: gives Services of the type `LoadBalancer` an address of a
//! pool, as a cloud would.
//!
//! Nothing listens there. But whoever waits for the address, as charts do, need not wait for ever.
//! Services that name a class are somebody else's.

mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::Service;
use steersman::Controller;

use crate::cidr::Cidr;
use plan::concerns;
use reconcile::Balancer;

/// The Service load balancer controller, which gives addresses of this pool.
pub(crate) fn controller(pool: Cidr) -> Controller {
    Controller::of::<Service>()
        .named("service-lb-controller")
        .only(concerns)
        .reconcile(Balancer::new(pool))
}
