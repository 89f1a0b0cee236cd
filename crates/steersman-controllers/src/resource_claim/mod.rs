//! The ResourceClaim controller: makes the claims of Pods from templates, says in the Pods' status what
//! they are called, and lets go of claims whose Pods have ended.
//!
//! Two queues share the work, as two sorts of keys do in Kubernetes: one looks at [Pods](pods), the
//! other at [claims]. Which devices a claim gets is the scheduler's business; if somebody has bound a
//! Pod without it, the claims that are allocated are reserved for the Pod here.

mod census;
mod claims;
mod metrics;
mod pods;
mod release;
mod template;
#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{ResourceClaim, ResourceClaimTemplate};
use steersman::handler::Requests;
use steersman::informer::Event;
use steersman::{Controller, Kind, Metrics, ObjectKey};

use crate::pod::{is_terminal, node_name};
use crate::pod_resource_claims::{claim_keys, entries};
use census::Census;

/// The controller, by its part that looks at Pods.
pub(crate) const NAME: &str = "resourceclaim-controller";
/// The part that looks at claims.
pub(crate) const CLAIMS: &str = "resourceclaim-release-controller";
/// Who tells of Pods.
const COMPONENT: &str = "resource_claim";
/// On a claim: for which entry of its Pod it was made.
const POD_CLAIM_NAME: &str = "resource.kubernetes.io/pod-claim-name";
/// Keeps a claim that is allocated.
const FINALIZER: &str = "resource.kubernetes.io/delete-protection";
/// How many objects each part looks at at once, as in Kubernetes.
const WORKERS: usize = 10;

/// Both parts.
pub(crate) fn controllers(metrics: &Metrics) -> [Controller; 2] {
    [of_pods(metrics), of_claims(metrics)]
}

fn of_pods(metrics: &Metrics) -> Controller {
    Controller::of::<Pod>()
        .named(NAME)
        .only(needs_claims)
        .watches_referenced::<ResourceClaim, _>(claim_keys)
        .watches_referenced::<ResourceClaimTemplate, _>(templates)
        .concurrency(WORKERS)
        .reconcile(pods::Pods { metrics: metrics.families() })
}

fn of_claims(metrics: &Metrics) -> Controller {
    let census = Census::new(metrics.families());
    Controller::of::<ResourceClaim>()
        .named(CLAIMS)
        .observes(move |event| census.observe(event))
        .watches_with(Kind::<Pod>::of(), users_that_end)
        .concurrency(WORKERS)
        .reconcile(claims::reconcile)
}

/// Whether a Pod has entries, and may still run. What was made for one that has ended goes, and is not
/// made again.
fn needs_claims(pod: &Pod) -> bool {
    !entries(pod).is_empty() && pod.metadata.deletion_timestamp.is_none() && !is_terminal(pod)
}

/// The templates that a Pod names.
fn templates(pod: &Pod) -> Vec<ObjectKey> {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let names =
        entries(pod).iter().filter_map(|entry| entry.resource_claim_template_name.as_deref());
    names.map(|name| ObjectKey::namespaced(namespace, name)).collect()
}

/// Asks for the claims of a Pod that needs them no longer.
fn users_that_end(event: &Event<Pod>, requests: &mut Requests) {
    let Some(pod) = event.object().object() else { return };
    if matches!(event, Event::Deleted { .. }) || is_done(&pod) {
        claim_keys(&pod).into_iter().for_each(|claim| requests.add(claim));
    }
}

/// Whether none of a Pod's containers runs, or ever will.
fn is_done(pod: &Pod) -> bool {
    let never_ran = pod.metadata.deletion_timestamp.is_some() && node_name(pod).is_none();
    is_terminal(pod) || never_ran
}

/// Whether a claim is allocated.
fn is_allocated(claim: &ResourceClaim) -> bool {
    claim.status.as_ref().is_some_and(|status| status.allocation.is_some())
}

/// Whether a claim asks for devices past all who use them.
fn wants_admin_access(claim: &ResourceClaim) -> bool {
    let devices = claim.spec.devices.as_ref();
    let mut requests = devices.and_then(|devices| devices.requests.as_ref()).into_iter().flatten();
    requests.any(|it| it.exactly.as_ref().is_some_and(|exact| exact.admin_access == Some(true)))
}
