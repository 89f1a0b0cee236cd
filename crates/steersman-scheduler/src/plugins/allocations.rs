//! Allocations that were decided upon and are not seen in their claims yet.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

/// A device by driver, pool and name.
pub(super) type DeviceId = [String; 3];

/// Allocations that are on their way into their claims, by the uid of those. All profiles share them.
#[derive(Debug, Default)]
pub(crate) struct Allocations(Mutex<HashMap<String, OnItsWay>>);

#[derive(Debug)]
struct OnItsWay {
    allocation: AllocationResult,
    /// The version of the claim in which it was written; not yet if there is none.
    written: Option<u64>,
}

impl Allocations {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, OnItsWay>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes devices for a claim.
    pub(super) fn begin(&self, claim: &ResourceClaim, allocation: AllocationResult) {
        let on_its_way = OnItsWay { allocation, written: None };
        self.lock().insert(uid(claim).to_owned(), on_its_way);
    }

    /// It is written, and will be seen in this version of the claim.
    pub(super) fn written(&self, claim: &ResourceClaim) {
        if let Some(on_its_way) = self.lock().get_mut(uid(claim)) {
            on_its_way.written = Some(version(claim));
        }
    }

    /// Gives the devices of a claim back, unless it has got them.
    pub(super) fn end(&self, claim: &ResourceClaim) {
        let mut all = self.lock();
        if all.get(uid(claim)).is_some_and(|it| it.written.is_none()) {
            all.remove(uid(claim));
        }
    }

    /// Whether devices were taken for a claim that does not show it yet.
    pub(super) fn contain(&self, claim: &ResourceClaim) -> bool {
        let mut all = self.lock();
        let is_seen = all.get(uid(claim)).is_some_and(|it| it.is_seen_in(claim));
        if is_seen {
            all.remove(uid(claim));
        }
        all.contains_key(uid(claim))
    }

    /// All devices that are taken: by these claims, which are all that are known, or on their way.
    pub(super) fn devices(&self, claims: &[Arc<ResourceClaim>]) -> HashSet<DeviceId> {
        let known: HashMap<&str, &ResourceClaim> =
            claims.iter().map(|claim| (uid(claim), &**claim)).collect();
        let mut all = self.lock();
        all.retain(|uid, it| match known.get(uid.as_str()) {
            Some(claim) => !it.is_seen_in(claim),
            None => it.written.is_none(),
        });
        let of_claims = claims.iter().filter_map(|claim| allocation(claim));
        of_claims.chain(all.values().map(|it| &it.allocation)).flat_map(devices).collect()
    }
}

impl OnItsWay {
    fn is_seen_in(&self, claim: &ResourceClaim) -> bool {
        self.written.is_some_and(|written| version(claim) >= written)
    }
}

fn version(claim: &ResourceClaim) -> u64 {
    let version = claim.metadata.resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// The devices of an allocation that nobody else can have.
fn devices(allocation: &AllocationResult) -> impl Iterator<Item = DeviceId> {
    let results = allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten());
    let own = results.filter(|result| result.admin_access != Some(true));
    own.map(|result| [result.driver.clone(), result.pool.clone(), result.device.clone()])
}

/// What a claim has been given.
pub(super) fn allocation(claim: &ResourceClaim) -> Option<&AllocationResult> {
    claim.status.as_ref()?.allocation.as_ref()
}

pub(super) fn uid(claim: &ResourceClaim) -> &str {
    claim.metadata.uid.as_deref().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::object;

    fn claim(version: &str, allocation: &serde_json::Value) -> Arc<ResourceClaim> {
        let metadata = json!({"name": "c", "uid": "c", "resourceVersion": version});
        let status = json!({"allocation": allocation});
        Arc::new(object(json!({"metadata": metadata, "spec": {}, "status": status})))
    }

    #[test]
    fn devices_are_taken_until_their_claim_shows_what_became_of_them() {
        let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "a"});
        let given = json!({"devices": {"results": [result]}});
        let (free, full) = (claim("5", &json!(null)), claim("7", &given));
        let allocations = Allocations::default();
        let taken = |claims: &[Arc<ResourceClaim>]| allocations.devices(claims).len();
        assert_eq!(taken(&[Arc::clone(&free)]), 0);
        allocations.begin(&free, object(given.clone()));
        assert_eq!(taken(&[Arc::clone(&free)]), 1);
        allocations.end(&free);
        assert!(!allocations.contain(&free));

        allocations.begin(&free, object(given));
        allocations.written(&full);
        allocations.end(&free); // too late
        assert!(allocations.contain(&free));
        assert_eq!(taken(&[Arc::clone(&free)]), 1);
        assert_eq!(taken(&[Arc::clone(&full)]), 1);
        // It was seen, and is free again.
        assert_eq!(taken(&[claim("9", &json!(null))]), 0);
    }
}
