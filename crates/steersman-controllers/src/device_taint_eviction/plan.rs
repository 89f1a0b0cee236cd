//! When a Pod has to go because of the devices that it uses, and because of which rules: objects in, an
//! eviction out.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::resource::v1::{
    DeviceRequestAllocationResult, DeviceTaint, DeviceToleration, ResourceClaim, ResourceSlice,
};
use k8s_openapi::api::resource::v1beta2::DeviceTaintRule;

use crate::pod::node_name;
use crate::pod_resource_claims::{ClaimName, entries, is_reserved_for};

/// What evicts.
pub(super) const NO_EXECUTE: &str = "NoExecute";

/// What there is around a Pod.
pub(super) struct Around<'a> {
    /// The claim of this name.
    pub(super) claim: &'a dyn Fn(&str) -> Option<Arc<ResourceClaim>>,
    /// The slices of all pools.
    pub(super) slices: &'a [Arc<ResourceSlice>],
    /// The rules that taint devices.
    pub(super) rules: &'a [Arc<DeviceTaintRule>],
}

/// That a Pod has to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Eviction {
    /// The first of the times at which one of its devices sends it away.
    pub(super) at: Timestamp,
    /// The names of all rules that send it away, sooner or later.
    pub(super) rules: BTreeSet<String>,
}

impl Eviction {
    /// One that happens when either would, for the reasons of both.
    fn and(mut self, other: Self) -> Self {
        self.rules.extend(other.rules);
        Self { at: self.at.min(other.at), rules: self.rules }
    }
}

/// When and why a Pod has to go, if it has to.
pub(super) fn eviction(pod: &Pod, around: &Around<'_>) -> Option<Eviction> {
    node_name(pod)?; // nothing runs yet
    let claims = entries(pod).iter().filter_map(|entry| {
        let known = ClaimName::of(pod, entry);
        let claim = (around.claim)(known.name()?)?;
        (known.is(&claim, pod) && is_reserved_for(&claim, pod)).then_some(claim)
    });
    claims.filter_map(|claim| claim_eviction(&claim, around)).reduce(Eviction::and)
}

/// When and why the users of a claim have to go.
fn claim_eviction(claim: &ResourceClaim, around: &Around<'_>) -> Option<Eviction> {
    results(claim).iter().filter_map(|device| device_eviction(device, around)).reduce(Eviction::and)
}

fn device_eviction(
    device: &DeviceRequestAllocationResult,
    around: &Around<'_>,
) -> Option<Eviction> {
    let tolerations = device.tolerations.as_deref().unwrap_or_default();
    let own = taints(device, around.slices).filter_map(|taint| {
        Some(Eviction { at: taint_due(taint, tolerations)?, rules: BTreeSet::new() })
    });
    let of_rules = around.rules.iter().filter(|rule| selects(rule, device)).filter_map(|rule| {
        let at = taint_due(&taint_of(rule), tolerations)?;
        Some(Eviction { at, rules: BTreeSet::from([rule.metadata.name.clone()?]) })
    });
    own.chain(of_rules).reduce(Eviction::and)
}

/// The devices that a claim got.
pub(super) fn results(claim: &ResourceClaim) -> &[DeviceRequestAllocationResult] {
    let allocation = claim.status.as_ref().and_then(|status| status.allocation.as_ref());
    let devices = allocation.and_then(|allocation| allocation.devices.as_ref());
    devices.and_then(|devices| devices.results.as_deref()).unwrap_or_default()
}

/// Something that names a device as a rule may.
pub(super) trait NamesDevice {
    /// Its driver, its pool and its own name.
    fn names(&self) -> [&str; 3];
}

impl NamesDevice for DeviceRequestAllocationResult {
    fn names(&self) -> [&str; 3] {
        [&self.driver, &self.pool, &self.device]
    }
}

impl NamesDevice for [&str; 3] {
    fn names(&self) -> [&str; 3] {
        *self
    }
}

/// Whether a rule is for a device. One without a selector is for none, with an empty one for all.
pub(super) fn selects(rule: &DeviceTaintRule, device: &impl NamesDevice) -> bool {
    rule.spec.device_selector.as_ref().is_some_and(|selector| {
        let wanted = [&selector.driver, &selector.pool, &selector.device];
        wanted
            .iter()
            .zip(device.names())
            .all(|(wanted, is)| wanted.as_deref().is_none_or(|wanted| wanted == is))
    })
}

/// The taint of a rule, as devices have it.
fn taint_of(rule: &DeviceTaintRule) -> DeviceTaint {
    let taint = rule.spec.taint.clone();
    let (key, value, effect) = (taint.key, taint.value, taint.effect);
    DeviceTaint { key, value, effect, time_added: taint.time_added }
}

/// The slices that count: of each pool the newest ones.
pub(super) fn current(slices: &[Arc<ResourceSlice>]) -> Vec<&ResourceSlice> {
    let pool = |slice: &'_ ResourceSlice| (slice.spec.driver.clone(), slice.spec.pool.name.clone());
    let mut newest: HashMap<(String, String), i64> = HashMap::new();
    for slice in slices {
        let known = newest.entry(pool(slice)).or_insert(i64::MIN);
        *known = slice.spec.pool.generation.max(*known);
    }
    let is_newest =
        |slice: &&ResourceSlice| newest.get(&pool(slice)) == Some(&slice.spec.pool.generation);
    slices.iter().map(AsRef::as_ref).filter(is_newest).collect()
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
