//! When a Pod has to go because of the devices that it uses: objects in, a time out.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{
    DeviceRequestAllocationResult, DeviceTaint, DeviceToleration, ResourceClaim, ResourceSlice,
};

use crate::pod::node_name;
use crate::pod_resource_claims::{ClaimName, entries, is_reserved_for};

/// What evicts.
const NO_EXECUTE: &str = "NoExecute";

/// What there is around a Pod.
pub(super) struct Around<'a> {
    /// The claim of this name.
    pub(super) claim: &'a dyn Fn(&str) -> Option<Arc<ResourceClaim>>,
    /// The slices of all pools.
    pub(super) slices: &'a [Arc<ResourceSlice>],
}

/// When a Pod has to go, if it has to.
pub(super) fn due(pod: &Pod, around: &Around<'_>) -> Option<Timestamp> {
    node_name(pod)?; // nothing runs yet
    let claims = entries(pod).iter().filter_map(|entry| {
        let known = ClaimName::of(pod, entry);
        let claim = (around.claim)(known.name()?)?;
        (known.is(&claim, pod) && is_reserved_for(&claim, pod)).then_some(claim)
    });
    claims.filter_map(|claim| claim_due(&claim, around.slices)).min()
}

/// When the users of a claim have to go: at the first of the times of its devices.
fn claim_due(claim: &ResourceClaim, slices: &[Arc<ResourceSlice>]) -> Option<Timestamp> {
    let times = results(claim).iter().flat_map(|device| {
        let tolerations = device.tolerations.as_deref().unwrap_or_default();
        taints(device, slices).filter_map(|taint| taint_due(taint, tolerations)).collect::<Vec<_>>()
    });
    times.min()
}

/// The devices that a claim got.
pub(super) fn results(claim: &ResourceClaim) -> &[DeviceRequestAllocationResult] {
    let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
    let devices = allocation.and_then(|allocation| allocation.devices.as_ref());
    devices.and_then(|devices| devices.results.as_deref()).unwrap_or_default()
}

/// The taints of a device, as the newest slices of its pool say.
fn taints<'a>(
    device: &'a DeviceRequestAllocationResult,
    slices: &'a [Arc<ResourceSlice>],
) -> impl Iterator<Item = &'a DeviceTaint> {
    let of_pool = move |slice: &&Arc<ResourceSlice>| {
        slice.spec.driver == device.driver && slice.spec.pool.name == device.pool
    };
    let newest = slices.iter().filter(of_pool).map(|slice| slice.spec.pool.generation).max();
    let current = slices.iter().filter(of_pool);
    let current = current.filter(move |slice| Some(slice.spec.pool.generation) == newest);
    let devices = current.flat_map(|slice| slice.spec.devices.iter().flatten());
    let found = devices.filter(move |it| it.name == device.device).take(1);
    found.flat_map(|device| device.taints.iter().flatten())
}

/// When a taint sends those away who tolerate it like this; never if it does not, or if one of them
/// tolerates it for ever.
fn taint_due(taint: &DeviceTaint, tolerations: &[DeviceToleration]) -> Option<Timestamp> {
    let since = taint.time_added.as_ref().filter(|_| taint.effect == NO_EXECUTE)?.0;
    let mut seconds = None;
    for toleration in tolerations.iter().filter(|toleration| tolerates(toleration, taint)) {
        let time = toleration.toleration_seconds?.clamp(0, i64::from(u32::MAX));
        seconds = Some(seconds.map_or(time, |least: i64| least.min(time)));
    }
    since.checked_add(SignedDuration::from_secs(seconds.unwrap_or(0))).ok()
}

/// Whether a toleration is for a taint that evicts. One without an effect is not, although it lets a
/// claim be allocated.
fn tolerates(toleration: &DeviceToleration, taint: &DeviceTaint) -> bool {
    let said = |text: &Option<String>| text.clone().unwrap_or_default();
    let key = said(&toleration.key);
    let fits = match toleration.operator.as_deref().unwrap_or_default() {
        "" | "Equal" => said(&toleration.value) == said(&taint.value),
        "Exists" => true,
        _ => false,
    };
    toleration.effect.as_deref() == Some(NO_EXECUTE) && (key.is_empty() || key == taint.key) && fits
}
