//! Devices that have to be made ready for a node first, such as those that are attached to it.
//!
//! A device names conditions, and its driver says in the status of the claim which of them hold. A Pod
//! is not bound before all that mean that the device is ready do. If one holds that means that it
//! never will be, or if it takes too long, the claim is given up, for other devices.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::resource::v1::{DeviceRequestAllocationResult, ResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::plugins::allocations::allocation;

/// Whether devices of a claim have to be waited for at all.
pub(super) fn has_any(claim: &ResourceClaim) -> bool {
    results(claim).any(|result| !conditions(result).is_empty())
}

/// Whether all devices of a claim are ready; otherwise why one never will be.
pub(super) fn are_met(claim: &ResourceClaim) -> Result<bool, String> {
    if allocation(claim).is_none() {
        return Ok(false);
    }
    for result in results(claim).filter(|result| !conditions(result).is_empty()) {
        let Some(told) = told_of(claim, result) else { return Ok(false) };
        let find = |type_: &String| told.iter().find(|it| it.type_ == *type_);
        let is_true = |type_: &String| find(type_).is_some_and(|it| it.status == "True");
        let mut failures = result.binding_failure_conditions.iter().flatten();
        if let Some(failed) = failures.find(|type_| is_true(type_)).and_then(find) {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            let Condition { reason, message, .. } = failed;
            return Err(format!(
                "device binding failed: claim={name}, reason={reason}, message={message:?}"
            ));
        }
        if !conditions(result).iter().all(is_true) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether devices of a claim could have been ready long ago.
pub(super) fn is_late(claim: &ResourceClaim, timeout: Duration, now: &Time) -> bool {
    let since = allocation(claim).and_then(|it| it.allocation_timestamp.as_ref());
    let age = since.and_then(|since| Duration::try_from(now.0.duration_since(since.0)).ok());
    let is_waited_for = || results(claim).any(|result| result.binding_conditions.is_some());
    age.is_some_and(|age| age > timeout) && is_waited_for()
}

/// The drivers of the devices of a claim, or only of those that have to be waited for: one for each.
pub(super) fn drivers(claim: &ResourceClaim, only_conditional: bool) -> Vec<Arc<str>> {
    let counted = results(claim).filter(|it| !only_conditional || !conditions(it).is_empty());
    counted.map(|result| result.driver.as_str().into()).collect()
}

fn results(claim: &ResourceClaim) -> impl Iterator<Item = &DeviceRequestAllocationResult> {
    let devices = allocation(claim).and_then(|allocation| allocation.devices.as_ref());
    devices.into_iter().flat_map(|devices| devices.results.iter().flatten())
}

fn conditions(result: &DeviceRequestAllocationResult) -> &[String] {
    result.binding_conditions.as_deref().unwrap_or_default()
}

/// What the driver says of a device, if it says something.
fn told_of<'c>(
    claim: &'c ResourceClaim,
    result: &DeviceRequestAllocationResult,
) -> Option<&'c [Condition]> {
    let mut devices = claim.status.iter().flat_map(|status| status.devices.iter().flatten());
    let device = devices.find(|it| {
        it.device == result.device && it.driver == result.driver && it.pool == result.pool
    })?;
    Some(device.conditions.as_deref().unwrap_or_default())
}
