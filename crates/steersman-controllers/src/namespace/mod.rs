//! The namespace controller: empties a namespace that is being deleted, then lets it go.
//!
//! Pods go first and must be gone before anything else, so that nothing they use is taken from
//! under them. The namespace itself is held by the finalizer `kubernetes` in its spec; it is
//! removed once nothing is left.

mod plan;
mod reconcile;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::Namespace;
use steersman::Controller;

/// The namespace controller.
pub(crate) fn controller() -> Controller {
    Controller::of::<Namespace>()
        .named("namespace-controller")
        .only(|namespace| namespace.metadata.deletion_timestamp.is_some())
        .concurrency(10)
        .reconcile(reconcile::reconcile)
}
