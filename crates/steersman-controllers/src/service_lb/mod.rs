//! The Service load balancer controller: gives Services of the type `LoadBalancer` an address of a
//! pool, as a cloud would.
//!
//! Nothing listens there. But whoever waits for the address, as charts do, need not wait for ever.
//! Services that name a class are somebody else's. [`plan`] says what a Service gets, [`hosts`] which
//! nodes a balancer would have, of which people are told.

mod hosts;
mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Service};
use steersman::handler::EnqueueRequestsFromMapFunc;
use steersman::source::Watch;
use steersman::workqueue::ExponentialBackoff;
use steersman::{Controller, predicate};

use crate::cidr::Cidr;
use plan::{concerns, needs_update};
use reconcile::Balancer;

/// How soon, and how late at most, what failed is tried again: a cloud is not asked in a hurry. As in
/// Kubernetes, each Service has only its own failures to wait for.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

/// In Kubernetes it is a part of cloud-controller-manager.
pub(crate) const NAME: &str = "service-lb-controller";

/// The Service load balancer controller, which gives addresses of this pool.
pub(crate) fn controller(pool: Cidr) -> Controller {
    let balancer = Balancer::new(pool);
    let balanced = balancer.clone();
    let nodes = Watch::<Node>::of().when(predicate::funcs().on_update(hosts::differ));
    Controller::of::<Service>()
        .named(NAME)
        .when(predicate::funcs().on_update(needs_update))
        .only(concerns)
        .watches_with(nodes, EnqueueRequestsFromMapFunc::new(move |_: &Node| balanced.all()))
        .rate_limit(ExponentialBackoff::new(BACKOFF.0, BACKOFF.1))
        .reconcile(balancer)
}
