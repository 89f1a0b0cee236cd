//! The namespace controller: empties a namespace that is being deleted, then lets it go.
//!
//! Pods go first and must be gone before anything else, so that nothing they use is taken from
//! under them. What is in the way stands in the namespace's conditions. The namespace itself is
//! held by the finalizer `kubernetes` in its spec; it is removed once nothing is left.

mod conditions;
mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use steersman::Controller;
use steersman::workqueue::ExponentialBackoff;

/// How long a namespace waits that could not be emptied.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(60));

/// The namespace controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Namespace>()
        .named("namespace-controller")
        .only(|namespace| namespace.metadata.deletion_timestamp.is_some())
        .concurrency(10)
        .rate_limit(ExponentialBackoff::new(BACKOFF.0, BACKOFF.1))
        .reconcile(reconcile::reconcile)
}

/// Whether nothing could be put into a namespace because it goes or is gone.
pub(crate) fn refuses_content(error: &steersman::Error) -> bool {
    error.is_not_found() || error.status().is_some_and(kube::core::Status::is_forbidden)
}

/// Whether the server refused because the namespace is being deleted: then there is nothing
/// to do and nothing to report.
pub(crate) fn namespace_terminating(error: &steersman::Error) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| {
        details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating")
    })
}
