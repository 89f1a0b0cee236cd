//! The EndpointSlice controller: where the Pods are that a Service selects.
//!
//! [`plan`] compares Pods with the slices that there are: [`endpoint`] makes an endpoint of a Pod,
//! [`packing`] puts endpoints into slices with as few writes as can be, [`hints`] and [`topology`]
//! say for whom they are. Once slices tell of all Pods, [`settled`] knows which have to be looked at.
//! Slices without selected Pods, of another name, or of other managers are nobody's business here.

mod endpoint;
mod hints;
mod metrics;
mod packing;
mod plan;
mod reconcile;
mod settled;
#[cfg(test)]
mod tests;
mod topology;

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use steersman::handler::Requests;
use steersman::informer::Event;
use steersman::source::Watch;
use steersman::workqueue::{ExponentialBackoff, MaxOf, TokenBucket};
use steersman::{Controller, Kind, Metrics, ObjectKey};

use crate::service::{MANAGED_BY, SERVICE_NAME, Selectors, concerns_some_endpoint, selector};
use metrics::Meters;
use reconcile::Memory;
use settled::Changed;

/// Whom slices of this controller name as their manager.
pub(super) const MANAGER: &str = "endpointslice-controller.k8s.io";

/// How soon, and how late at most, what failed is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(1000));

/// The EndpointSlice controller, which counts here.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    let changed = Changed::default();
    let memory = Arc::new(Memory::new(Meters::of(metrics), changed.clone()));
    let forgetful = Arc::clone(&memory);
    let selectors = Selectors::default();
    let selecting = selectors.clone();
    let auto = hints::Automatic::default();
    let with_hints = auto.clone();
    let nodes = changed.clone();
    let services = changed.clone();
    Controller::of::<Service>()
        .named("endpointslice-controller")
        .observes(move |event| {
            selectors.observe(event);
            auto.observe(event);
            if event.object().object().is_some_and(|service| selector(&service).is_some()) {
                services.note_service(event.object().key());
            }
        })
        .only(|service| selector(service).is_some())
        .watches_with(Kind::<Pod>::of(), move |event: &Event<Pod>, requests: &mut Requests| {
            let services = selecting.of(event);
            services.iter().for_each(|service| changed.note(service, event.object().key()));
            if !services.is_empty() && concerns_some_endpoint(event) {
                services.into_iter().for_each(|service| requests.add(service));
            }
        })
        .watches(service_of)
        .watches_with(
            Watch::<Node>::of().when(topology::concerns_zones),
            move |_: &Event<Node>, requests: &mut Requests| {
                nodes.note_node();
                with_hints.all(requests);
            },
        )
        .on_deleted(move |gone, _| {
            forgetful.forget(&gone.key);
            std::future::ready(Ok(()))
        })
        .concurrency(5)
        .rate_limit(
            MaxOf::new()
                .and(ExponentialBackoff::new(BACKOFF.0, BACKOFF.1))
                .and(TokenBucket::new(10, 100)),
        )
        .reconcile(memory)
}

/// The Service that a slice of this controller is of.
fn service_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let labels = slice.metadata.labels.as_ref()?;
    let service = labels.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    let ours = labels.get(MANAGED_BY).is_some_and(|manager| manager == MANAGER);
    let namespace = slice.metadata.namespace.as_deref().filter(|_| ours)?;
    Some(ObjectKey::namespaced(namespace, service.as_str()))
}
