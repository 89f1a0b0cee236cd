//! The Endpoints controller: where the Pods are that a Service selects, in the form that came before
//! EndpointSlices, and which many still read.
//!
//! Endpoints have the name of their Service and no owner: who deletes the Service leaves them to
//! [`mod@leftovers`]. Those of a Service without a selector are written by somebody else. Those of
//! many Pods are large objects that few still read, so they are written [less often](pauses) than
//! EndpointSlices, which must not wait for them.

mod leftovers;
mod pauses;
mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Endpoints, Pod, Service};
use steersman::handler::Requests;
use steersman::informer::Event;
use steersman::{Controller, Kind};

use crate::service::Selectors;
pub(crate) use leftovers::{NAME as LEFTOVERS, controller as leftovers};
use reconcile::Memory;

/// The Endpoints controller.
pub(crate) fn controller() -> Controller {
    let memory = Arc::new(Memory::default());
    let forgetful = Arc::clone(&memory);
    let selectors = Selectors::default();
    let selecting = selectors.clone();
    Controller::of::<Service>()
        .named("endpoints-controller")
        .observes(move |event| selectors.observe(event))
        .watches_with(Kind::<Pod>::of(), move |event: &Event<Pod>, requests: &mut Requests| {
            selecting.of_pod(event, requests);
        })
        .watches_with(Kind::<Endpoints>::of(), replace)
        .on_deleted(move |gone, client| {
            forgetful.forget(&gone.key);
            leftovers::delete(gone.key, client)
        })
        .concurrency(5)
        .reconcile(memory)
}

/// Endpoints that somebody has deleted come back. What somebody else writes into them stays until the
/// Service or its Pods change, as in Kubernetes.
fn replace(event: &Event<Endpoints>, requests: &mut Requests) {
    if let Event::Deleted { object, .. } = event {
        requests.add(object.key());
    }
}
