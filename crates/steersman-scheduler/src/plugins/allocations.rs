//! The devices that claims have, and allocations that were decided upon and are not seen in their claims
//! yet.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

/// A device by driver, pool and name.
pub(super) type DeviceId = [String; 3];

/// The devices that claims have, and those that are on their way into them. All profiles share them.
#[derive(Debug, Default)]
pub(crate) struct Allocations(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// By the uid of the claim.
    on_their_way: HashMap<String, OnItsWay>,
    /// What claims were seen to have, once somebody tells of every change of one.
    seen: Option<Seen>,
}

#[derive(Debug)]
struct OnItsWay {
    allocation: AllocationResult,
    /// The version of the claim in which it was written; not yet if there is none.
    written: Option<u64>,
}

/// What claims were seen to have.
#[derive(Debug, Default)]
struct Seen {
    /// By the uid of the claim; those that have none are not there.
    claims: HashMap<String, Vec<DeviceId>>,
    /// The same devices, with how many claims have each. Attempts look at a copy.
    devices: imbl::HashMap<DeviceId, usize>,
}

impl Seen {
    fn set(&mut self, uid: &str, devices: Vec<DeviceId>) {
        for device in self.claims.remove(uid).into_iter().flatten() {
            let left = self.devices.get(&device).map_or(0, |count| count - 1);
            match left {
                0 => self.devices.remove(&device),
                left => self.devices.insert(device, left),
            };
        }
        for device in &devices {
            *self.devices.entry(device.clone()).or_default() += 1;
        }
        if !devices.is_empty() {
            self.claims.insert(uid.to_owned(), devices);
        }
    }
}

/// The devices that are taken, as one attempt sees them.
#[derive(Debug, Default)]
pub(super) struct Taken {
    by_claims: imbl::HashMap<DeviceId, usize>,
    on_their_way: HashSet<DeviceId>,
}

impl Taken {
    pub(super) fn contains(&self, device: [&str; 3]) -> bool {
        if self.by_claims.is_empty() && self.on_their_way.is_empty() {
            return false;
        }
        let device = device.map(str::to_owned);
        self.by_claims.contains_key(&device) || self.on_their_way.contains(&device)
    }
}

impl FromIterator<DeviceId> for Taken {
    fn from_iter<T: IntoIterator<Item = DeviceId>>(devices: T) -> Self {
        Self { on_their_way: devices.into_iter().collect(), ..Self::default() }
    }
}

impl Allocations {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on every claim and every change of one is told.
    pub(crate) fn follow(&self) {
        self.lock().seen.get_or_insert_default();
    }

    /// A claim is new or has changed.
    pub(crate) fn saw(&self, claim: &ResourceClaim) {
        let mut state = self.lock();
        let uid = uid(claim);
        if state.on_their_way.get(uid).is_some_and(|it| it.is_seen_in(claim)) {
            state.on_their_way.remove(uid);
        }
        if let Some(seen) = &mut state.seen {
            seen.set(uid, allocation(claim).into_iter().flat_map(devices).collect());
        }
    }

    /// A claim is gone.
    pub(crate) fn lost(&self, uid: &str) {
        let mut state = self.lock();
        if state.on_their_way.get(uid).is_some_and(|it| it.written.is_some()) {
            state.on_their_way.remove(uid);
        }
        if let Some(seen) = &mut state.seen {
            seen.set(uid, Vec::new());
        }
    }

    /// Takes devices for a claim.
    pub(super) fn begin(&self, claim: &ResourceClaim, allocation: AllocationResult) {
        let on_its_way = OnItsWay { allocation, written: None };
        self.lock().on_their_way.insert(uid(claim).to_owned(), on_its_way);
    }

    /// It is written, and will be seen in this version of the claim.
    pub(super) fn written(&self, claim: &ResourceClaim) {
        if let Some(on_its_way) = self.lock().on_their_way.get_mut(uid(claim)) {
            on_its_way.written = Some(version(claim));
        }
    }

    /// Gives the devices of a claim back, unless it has got them.
    pub(super) fn end(&self, claim: &ResourceClaim) {
        let all = &mut self.lock().on_their_way;
        if all.get(uid(claim)).is_some_and(|it| it.written.is_none()) {
            all.remove(uid(claim));
        }
    }

    /// Whether devices were taken for a claim that does not show it yet.
    pub(super) fn contain(&self, claim: &ResourceClaim) -> bool {
        let mut state = self.lock();
        let is_followed = state.seen.is_some();
        let all = &mut state.on_their_way;
        // Where claims are followed, it must not be forgotten before that has come this far.
        if !is_followed && all.get(uid(claim)).is_some_and(|it| it.is_seen_in(claim)) {
            all.remove(uid(claim));
        }
        all.contains_key(uid(claim))
    }

    /// All devices that are taken: by claims, which are listed only if nobody tells of them, or on
    /// their way.
    pub(super) fn devices(&self, claims: impl FnOnce() -> Vec<Arc<ResourceClaim>>) -> Taken {
        let mut state = self.lock();
        let State { on_their_way, seen } = &mut *state;
        if let Some(seen) = seen {
            let devices = on_their_way.values().flat_map(|it| devices(&it.allocation)).collect();
            return Taken { by_claims: seen.devices.clone(), on_their_way: devices };
        }
        let claims = claims();
        let known: HashMap<&str, &ResourceClaim> =
            claims.iter().map(|claim| (uid(claim), &**claim)).collect();
        on_their_way.retain(|uid, it| match known.get(uid.as_str()) {
            Some(claim) => !it.is_seen_in(claim),
            None => it.written.is_none(),
        });
        let of_claims = claims.iter().filter_map(|claim| allocation(claim));
        of_claims.chain(on_their_way.values().map(|it| &it.allocation)).flat_map(devices).collect()
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
        let taken = |claims: &[Arc<ResourceClaim>]| {
            let taken = allocations.devices(|| claims.to_vec());
            usize::from(taken.contains(["d", "p", "a"]))
        };
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

    #[test]
    fn who_hears_of_every_claim_lists_none() {
        let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "a"});
        let given = json!({"devices": {"results": [result]}});
        let (free, full) = (claim("5", &json!(null)), claim("7", &given));
        let allocations = Allocations::default();
        allocations.follow();
        let is_taken =
            || allocations.devices(|| unreachable!("they are listed")).contains(["d", "p", "a"]);
        allocations.saw(&free);
        assert!(!is_taken());
        allocations.begin(&free, object(given));
        assert!(is_taken());
        // Somebody reads the claim before its change is told.
        allocations.written(&full);
        assert!(allocations.contain(&full) && is_taken());
        allocations.saw(&full);
        assert!(!allocations.contain(&full) && is_taken());
        allocations.saw(&full);
        allocations.saw(&claim("9", &json!(null)));
        assert!(!is_taken());
        allocations.saw(&full);
        allocations.lost("c");
        assert!(!is_taken());
    }
}
