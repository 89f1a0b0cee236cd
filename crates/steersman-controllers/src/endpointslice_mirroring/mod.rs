//! The EndpointSlice mirroring controller: what somebody writes into the Endpoints of a Service
//! without a selector is told in EndpointSlices as well.
//!
//! Each subset becomes one slice for each family of addresses.

mod metrics;
mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Endpoints, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use steersman::workqueue::{ExponentialBackoff, MaxOf, TokenBucket};
use steersman::{Controller, Metrics, ObjectKey};

use crate::service::{MANAGED_BY, SERVICE_NAME};
use metrics::Meters;
use reconcile::Mirror;

/// Whom slices of this controller name as their manager.
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";

/// How soon, and how late at most, what failed is tried again.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(100));

/// The EndpointSlice mirroring controller, which counts here.
pub(crate) fn controller(metrics: &Metrics) -> Controller {
    let meters: Meters = metrics.families();
    let forgetful = meters.clone();
    Controller::of::<Endpoints>()
        .named("endpointslice-mirroring-controller")
        .watches(|service: &Service| [ObjectKey::of_meta(&service.metadata)])
        .watches(endpoints_of)
        .on_deleted(move |gone, client| {
            forgetful.forget(&gone.key);
            reconcile::delete_all(gone.key, client)
        })
        .concurrency(5)
        .rate_limit(
            MaxOf::new()
                .and(ExponentialBackoff::new(BACKOFF.0, BACKOFF.1))
                .and(TokenBucket::new(10, 100)),
        )
        .reconcile(Mirror { meters })
}

/// The Endpoints that a slice of this controller mirrors.
fn endpoints_of(slice: &EndpointSlice) -> Option<ObjectKey> {
    let labels = slice.metadata.labels.as_ref()?;
    let service = labels.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    let ours = labels.get(MANAGED_BY).is_some_and(|manager| manager == MANAGER);
    let namespace = slice.metadata.namespace.as_deref().filter(|_| ours)?;
    Some(ObjectKey::namespaced(namespace, service.as_str()))
}
