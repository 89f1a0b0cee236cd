//! The devices that claims have, and allocations that were decided upon and are not seen in their claims
//! yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};

use super::consumed::Consumed;

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

/// A device that a claim has.
#[derive(Clone, Debug)]
pub(super) struct Given {
    device: DeviceId,
    /// How much it takes of it if others may have the device as well.
    share: Option<Consumed>,
}

/// What of a device is taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Holding {
    /// How many claims have it for themselves.
    whole: usize,
    /// How many have a share of it.
    shares: usize,
    /// What those take together.
    consumed: Consumed,
}

impl Holding {
    /// Whether nobody has anything of it.
    pub(super) fn is_free(&self) -> bool {
        self.whole == 0 && self.shares == 0
    }

    /// Whether somebody has it alone.
    pub(super) fn is_whole(&self) -> bool {
        self.whole > 0
    }

    /// Whether somebody has a share of it.
    pub(super) fn is_shared(&self) -> bool {
        self.shares > 0
    }

    /// What those take who have a share.
    pub(super) fn consumed(&self) -> &Consumed {
        &self.consumed
    }

    fn add(&mut self, share: Option<&Consumed>) {
        match share {
            Some(consumed) => {
                self.shares += 1;
                self.consumed.add(consumed);
            }
            None => self.whole += 1,
        }
    }

    fn remove(&mut self, share: Option<&Consumed>) {
        match share {
            Some(consumed) => {
                self.shares = self.shares.saturating_sub(1);
                self.consumed.subtract(consumed);
            }
            None => self.whole = self.whole.saturating_sub(1),
        }
    }

    fn add_all(&mut self, other: &Self) {
        self.whole += other.whole;
        self.shares += other.shares;
        self.consumed.add(&other.consumed);
    }
}

/// What claims were seen to have.
#[derive(Debug, Default)]
struct Seen {
    /// By the uid of the claim; those that have none are not there.
    claims: HashMap<String, Vec<Given>>,
    /// The same devices, with what of each is taken. Attempts look at a copy.
    devices: imbl::HashMap<DeviceId, Holding>,
}

impl Seen {
    fn set(&mut self, uid: &str, devices: Vec<Given>) {
        for Given { device, share } in self.claims.remove(uid).into_iter().flatten() {
            let Some(holding) = self.devices.get_mut(&device) else { continue };
            holding.remove(share.as_ref());
            if holding.is_free() {
                self.devices.remove(&device);
            }
        }
        for Given { device, share } in &devices {
            self.devices.entry(device.clone()).or_default().add(share.as_ref());
        }
        if !devices.is_empty() {
            self.claims.insert(uid.to_owned(), devices);
        }
    }
}

/// The devices that are taken, as one attempt sees them.
#[derive(Debug, Default)]
pub(super) struct Taken {
    by_claims: imbl::HashMap<DeviceId, Holding>,
    on_their_way: HashMap<DeviceId, Holding>,
}

impl Taken {
    /// What is taken of a device.
    pub(super) fn of(&self, device: [&str; 3]) -> Holding {
        if self.by_claims.is_empty() && self.on_their_way.is_empty() {
            return Holding::default();
        }
        let device = device.map(str::to_owned);
        let mut holding = self.by_claims.get(&device).cloned().unwrap_or_default();
        if let Some(more) = self.on_their_way.get(&device) {
            holding.add_all(more);
        }
        holding
    }
}

impl FromIterator<Given> for Taken {
    fn from_iter<T: IntoIterator<Item = Given>>(devices: T) -> Self {
        let mut taken = Self::default();
        for Given { device, share } in devices {
            taken.on_their_way.entry(device).or_default().add(share.as_ref());
        }
        taken
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

    /// A claim that was only in memory is there: what was taken for it is on its way into that one.
    pub(super) fn becomes(&self, in_memory: &ResourceClaim, created: &ResourceClaim) {
        let all = &mut self.lock().on_their_way;
        if let Some(on_its_way) = all.remove(uid(in_memory)) {
            all.insert(uid(created).to_owned(), on_its_way);
        }
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
            let begun = on_their_way.values().flat_map(|it| devices(&it.allocation));
            return Taken { by_claims: seen.devices.clone(), ..begun.collect::<Taken>() };
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

/// Which of two states of a claim is the later one.
pub(super) fn version(claim: &ResourceClaim) -> u64 {
    let version = claim.metadata.resource_version.as_deref();
    version.and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// What an allocation takes from others: devices, or shares of them.
fn devices(allocation: &AllocationResult) -> impl Iterator<Item = Given> {
    let results = allocation.devices.iter().flat_map(|devices| devices.results.iter().flatten());
    let own = results.filter(|result| result.admin_access != Some(true));
    own.map(|result| {
        let consumed = || result.consumed_capacity.as_ref().map(Consumed::read);
        Given {
            device: [result.driver.clone(), result.pool.clone(), result.device.clone()],
            share: result.share_id.is_some().then(|| consumed().unwrap_or_default()),
        }
    })
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
            usize::from(taken.of(["d", "p", "a"]).is_whole())
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
        let is_taken = || {
            allocations.devices(|| unreachable!("they are listed")).of(["d", "p", "a"]).is_whole()
        };
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

    #[test]
    fn shares_of_a_device_add_up_until_their_claims_are_gone() {
        let given = |memory: &str| {
            let result = json!({"request": "r", "driver": "d", "pool": "p", "device": "a",
                                "shareID": memory, "consumedCapacity": {"memory": memory}});
            json!({"devices": {"results": [result]}})
        };
        let named = |uid: &str, memory: &str| {
            let mut claim = ResourceClaim::clone(&claim("1", &given(memory)));
            claim.metadata.uid = Some(uid.to_owned());
            claim
        };
        let allocations = Allocations::default();
        allocations.follow();
        let taken = || {
            let holding = allocations.devices(Vec::new).of(["d", "p", "a"]);
            assert!(!holding.is_whole());
            (holding.shares, holding.consumed().get("memory").to_string())
        };
        allocations.saw(&named("x", "1Gi"));
        allocations.saw(&named("y", "512Mi"));
        assert_eq!(taken(), (2, "1536Mi".to_owned()));
        allocations.begin(&named("z", "1Gi"), object(given("1Gi")));
        assert_eq!(taken(), (3, "2560Mi".to_owned()));
        allocations.lost("x");
        allocations.end(&named("z", "1Gi"));
        assert_eq!(taken(), (1, "512Mi".to_owned()));
        allocations.lost("y");
        assert_eq!(taken(), (0, "0".to_owned()));
    }
}
