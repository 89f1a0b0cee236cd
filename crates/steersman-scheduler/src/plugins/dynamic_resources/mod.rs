//! A Pod gets the devices that its claims ask for.
//!
//! A Pod waits until its [claims] are there. On each node devices are looked for ([`allocator`]), for
//! all of its claims that have none yet; those that have been given devices say themselves which nodes
//! reach them. What is found for the node that is chosen is taken at once, so that no other Pod gets
//! it ([allocations](super::allocations)), and [written](bind) before the Pod is bound. Then it is
//! [waited](conditions) for devices that have to be attached first.

mod allocator;
mod bind;
mod capacity;
mod claims;
mod conditions;
mod constraint;
mod counters;
mod pools;
mod request;
mod result;
mod selectors;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::{AllocationResult, ResourceClaim};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use steersman::events::NewEvent;
use steersman::placement::matches;
use steersman::{Client, ObjectKey, clock};
use tokio::time::timeout;

use self::allocator::{Allocator, Problem};
use self::claims::{claims_of, is_free_but_for, is_full_for, is_reserved_for};
use self::pools::Slices;
use self::selectors::Selectors;
use super::allocations::{allocation, uid, version};
use super::handle::Handle;
use super::normalize::by_largest;
use super::pod::is_of;
use crate::framework::{
    Action, Before, Binding, ClusterEvent, Cycle, CycleState, Hint, Interest, Lister, NodeInfo,
    NodeRefusals, Object, Plugin, PodInfo, Points, PostFilter, PreFilter, Refusal, Resource,
};

/// So many alternatives a request can have, and the first of them is worth as much.
const ALTERNATIVES_MAX: i64 = 8;
/// After which time it is looked again whether devices are ready, if nobody says so.
const LOOK: Duration = Duration::from_secs(5);

/// Looks after claims for devices.
pub(crate) struct DynamicResources {
    /// How long it may take until devices are ready.
    timeout: Duration,
    handle: Arc<Handle>,
    selectors: Arc<Selectors>,
}

/// What is known of a Pod's claims; nothing if it has none.
#[derive(Clone, Default)]
struct Claims(Option<Arc<Known>>);

/// What is known of a Pod's claims in one attempt. What is tried out shares it.
struct Known {
    claims: Vec<Arc<ResourceClaim>>,
    /// Finds devices, if a claim has none yet.
    allocator: Option<Allocator>,
    findings: Mutex<Findings>,
}

#[derive(Default)]
struct Findings {
    /// For those claims that have no devices, by node.
    by_node: HashMap<String, Vec<AllocationResult>>,
    /// Claims whose devices some node does not reach, or that are not ready in time.
    unavailable: BTreeSet<usize>,
    /// What has been taken for the node that was chosen, by claim.
    taken: HashMap<usize, AllocationResult>,
    /// Claims as they were when they had been written.
    written: HashMap<usize, Arc<ResourceClaim>>,
}

impl Known {
    fn findings(&self) -> MutexGuard<'_, Findings> {
        self.findings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The claims as they were read, or written since.
    fn current(&self) -> Vec<Arc<ResourceClaim>> {
        let written = &self.findings().written;
        let numbered = self.claims.iter().enumerate();
        numbered.map(|(place, claim)| Arc::clone(written.get(&place).unwrap_or(claim))).collect()
    }

    fn unallocated(&self) -> impl Iterator<Item = (usize, &Arc<ResourceClaim>)> {
        self.claims.iter().enumerate().filter(|(_, claim)| allocation(claim).is_none())
    }
}

impl DynamicResources {
    /// It may take this long until devices are ready.
    pub(crate) fn new(timeout: Duration, handle: Arc<Handle>) -> Self {
        Self { timeout, handle, selectors: Arc::default() }
    }

    /// The claims of a Pod, or why it has to wait for them.
    fn wait_for(&self, pod: &Pod) -> Result<Vec<Arc<ResourceClaim>>, String> {
        let has_none = pod.spec.as_ref().is_none_or(|spec| spec.resource_claims.is_none());
        match self.handle.lister() {
            Some(lister) if !has_none => claims_of(pod, &**lister),
            _ => Ok(Vec::new()),
        }
    }

    /// Whether a change of a claim may help a Pod.
    fn helps(&self, pod: &Pod, change: &Before<ResourceClaim>) -> bool {
        let Some(new) = &change.new else { return false };
        let Ok(claims) = self.wait_for(pod) else { return false };
        let old = change.old.as_deref();
        if old.is_some_and(|old| allocation(old).is_some()) && allocation(new).is_none() {
            return true; // its devices are free
        }
        let is_used = claims.iter().any(|claim| uid(claim) == uid(new));
        is_used && old.is_none_or(|old| old.status != new.status)
    }

    /// What is known of claims before nodes are looked at.
    fn known(&self, cycle: &Cycle<'_>, claims: Vec<Arc<ResourceClaim>>) -> Result<Known, Refusal> {
        let mut needs_devices = false;
        for claim in &claims {
            if allocation(claim).is_some() {
                if is_full_for(claim, &cycle.info.uid) {
                    return Err(Refusal::unresolvable("resourceclaim in use"));
                }
                continue;
            }
            needs_devices = true;
            if self.handle.allocations.contain(claim) {
                let key = ObjectKey::of(&**claim);
                let why = format!("resource claim {key} is in the process of being allocated");
                return Err(Refusal::unresolvable(why));
            }
            check_classes(claim, &**cycle.lister)?;
        }
        let allocator = needs_devices.then(|| Allocator {
            slices: Slices::new(cycle.lister.resource_slices()),
            taken: self.handle.allocations.devices(|| cycle.lister.resource_claims()),
            lister: Arc::clone(cycle.lister),
            selectors: Arc::clone(&self.selectors),
        });
        Ok(Known { claims, allocator, findings: Mutex::default() })
    }

    /// Writes what was taken into the claims of a Pod.
    async fn write(&self, binding: &Binding, known: &Known) -> Result<(), String> {
        for (place, claim) in known.claims.iter().enumerate() {
            if is_reserved_for(claim, &binding.info.uid) {
                continue;
            }
            let taken = known.findings().taken.get(&place).cloned();
            let written = bind::bind(&binding.client, claim, taken.as_ref(), &binding.info);
            let written = written.await?;
            self.handle.allocations.written(&written);
            known.findings().written.insert(place, Arc::new(written));
        }
        Ok(())
    }

    /// Waits until the devices of a Pod are ready for its node.
    async fn wait(&self, binding: &Binding, known: &Known) -> Result<(), String> {
        let claims = known.current();
        if !claims.iter().any(|claim| conditions::has_any(claim)) {
            return Ok(());
        }
        let note = format!("waiting for binding conditions for device on node {}", binding.node);
        let event = NewEvent::normal("BindingConditionsPending").action("Scheduling").note(note);
        binding.recorder.event(&*binding.pod, event);
        let mut changes = binding.device_changes.clone();
        let ready = async {
            loop {
                changes.borrow_and_update();
                if self.are_ready(binding, &claims)? {
                    return Ok(());
                }
                if let Ok(Err(_)) = timeout(LOOK, changes.changed()).await {
                    return Err("the scheduler stops".to_owned());
                }
            }
        };
        timeout(self.timeout, ready)
            .await
            .unwrap_or_else(|_| Err("device binding timeout: context deadline exceeded".to_owned()))
    }

    /// Whether the devices of all claims are ready; otherwise why it is not waited for them any longer.
    fn are_ready(&self, binding: &Binding, claims: &[Arc<ResourceClaim>]) -> Result<bool, String> {
        let pod = binding.lister.pod(&binding.info.key);
        if pod.and_then(|pod| pod.metadata.uid.clone()).as_deref() != Some(&*binding.info.uid) {
            return Err(format!("pod {:?} not found", binding.info.key.name.to_string()));
        }
        for claim in claims {
            let key = ObjectKey::of(&**claim);
            let seen = binding
                .lister
                .resource_claim(&key)
                .ok_or_else(|| format!("could not find ResourceClaim {:?}", key.to_string()))?;
            let is_behind = version(&seen) < version(claim);
            let latest = if is_behind { claim } else { &seen };
            if !conditions::are_met(latest)? {
                return match conditions::is_late(latest, self.timeout, &clock::now_time()) {
                    true => Err(format!("device binding timeout: claim={}", key.name)),
                    false => Ok(false),
                };
            }
        }
        Ok(true)
    }

    /// Whether a claim is no good on a node: it has devices that the node does not reach, or that are
    /// not ready and will not be.
    fn is_unavailable(&self, claim: &ResourceClaim, node: &Node, now: &Time) -> bool {
        if allocation(claim).is_none() {
            return false;
        }
        !is_reached(claim, node)
            || match conditions::are_met(claim) {
                Ok(is_ready) => !is_ready && conditions::is_late(claim, self.timeout, now),
                Err(_) => true,
            }
    }
}

/// Whether the classes of all that a claim asks for are there.
fn check_classes(claim: &ResourceClaim, lister: &dyn Lister) -> Result<(), Refusal> {
    for asked in request::requests(claim).iter().flatten() {
        let (class, name) = (asked.class_name, asked.full_name());
        if class.is_empty() {
            return Err(Refusal::error(format!("request {name}: unsupported request type")));
        }
        if lister.device_class(class).is_none() {
            let why = format!("request {name}: device class {class} does not exist");
            return Err(Refusal::unresolvable(why));
        }
    }
    Ok(())
}

/// Whether the devices of a claim are reached from a node.
fn is_reached(claim: &ResourceClaim, node: &Node) -> bool {
    let selector = allocation(claim).and_then(|allocation| allocation.node_selector.as_ref());
    selector.is_none_or(|selector| matches(selector, node))
}

impl Plugin for DynamicResources {
    fn name(&self) -> &'static str {
        "DynamicResources"
    }

    fn points(&self) -> Points {
        Points::PRE_ENQUEUE
            | Points::PRE_FILTER
            | Points::FILTER
            | Points::POST_FILTER
            | Points::SCORE
            | Points::RESERVE
            | Points::PRE_BIND
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::NODE_LABEL),
                Interest::new(Resource::Node, Action::NODE_ALLOCATABLE),
                Interest::new(Resource::ResourceClaim, Action::ADD),
                Interest::new(Resource::ResourceClaim, Action::UPDATE),
                Interest::new(Resource::UnscheduledPod, Action::POD_GENERATED_CLAIM),
                Interest::new(Resource::DeviceClass, Action::ADD),
                Interest::new(Resource::DeviceClass, Action::UPDATE),
                Interest::new(Resource::ResourceSlice, Action::ADD),
                Interest::new(Resource::ResourceSlice, Action::UPDATE),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        match &event.object {
            Object::ResourceClaim(change) => self.helps(pod, change).into(),
            Object::Pod(_) => (is_of(pod, event) && self.wait_for(pod).is_ok()).into(),
            _ => Hint::Queue,
        }
    }

    fn pre_enqueue(&self, pod: &Pod) -> Result<(), Refusal> {
        self.wait_for(pod).map(drop).map_err(Refusal::unresolvable)
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        cycle.state.insert(Claims::default());
        if cycle.spec().resource_claims.is_none() {
            return Ok(PreFilter::Skip);
        }
        let claims = claims_of(cycle.pod, &**cycle.lister).map_err(Refusal::unresolvable)?;
        if claims.is_empty() {
            return Ok(PreFilter::Skip);
        }
        let known = self.known(cycle, claims)?;
        cycle.state.insert(Claims(Some(Arc::new(known))));
        Ok(PreFilter::All)
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let Some(Claims(Some(known))) = cycle.state.get() else { return Ok(()) };
        let (numbered, now) = (known.claims.iter().enumerate(), clock::now_time());
        let unavailable =
            numbered.filter(|(_, claim)| self.is_unavailable(claim, &node.node, &now));
        let unavailable: Vec<usize> = unavailable.map(|(place, _)| place).collect();
        let mut found = None;
        if let Some(allocator) = &known.allocator {
            let claims: Vec<&ResourceClaim> = known.unallocated().map(|(_, it)| &**it).collect();
            found = match allocator.allocate(&node.node, &claims) {
                Ok(Some(found)) => Some(found),
                Ok(None) => return Err(Refusal::unresolvable("cannot allocate all claims")),
                Err(Problem::OnNode(why)) => return Err(Refusal::unresolvable(why)),
                Err(Problem::Everywhere(why)) => return Err(Refusal::error(why)),
            };
        }
        let mut findings = known.findings();
        if !unavailable.is_empty() {
            findings.unavailable.extend(unavailable);
            return Err(Refusal::unresolvable("resourceclaim not available on the node"));
        }
        if let Some(found) = found {
            findings.by_node.insert(node.name().to_owned(), found);
        }
        Ok(())
    }

    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        _: &NodeRefusals,
    ) -> Option<Result<PostFilter, Refusal>> {
        let known = match cycle.state.get::<Claims>() {
            // Another plug-in refused the Pod before this one was asked; Kubernetes' words for it.
            None => return Some(Err(Refusal::error("not found"))),
            Some(Claims(None)) => {
                return Some(Err(Refusal::unschedulable("no new claims to deallocate")));
            }
            Some(Claims(Some(known))) => known,
        };
        let findings = known.findings();
        let mut unavailable = findings.unavailable.iter().map(|place| &known.claims[*place]);
        let free = unavailable.find(|claim| is_free_but_for(claim, &cycle.info.uid));
        Some(Err(match (free, self.handle.client()) {
            (Some(claim), Some(client)) => {
                let client: Client = client.clone();
                drop(tokio::spawn(bind::deallocate(client, ResourceClaim::clone(claim))));
                Refusal::unschedulable("deallocation of ResourceClaim completed")
            }
            _ => Refusal::unschedulable("still not schedulable"),
        }))
    }

    /// The earlier an alternative stands that was found, the better.
    fn score(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let Some(Claims(Some(known))) = cycle.state.get() else { return 0 };
        let findings = known.findings();
        let Some(found) = findings.by_node.get(node.name()) else { return 0 };
        let mut new = found.iter();
        let mut score = 0;
        for claim in &known.claims {
            let Some(given) = allocation(claim).or_else(|| new.next()) else { continue };
            let results = given.devices.iter().flat_map(|it| it.results.iter().flatten());
            let names: BTreeSet<&str> = results.map(|result| result.request.as_str()).collect();
            for alternatives in request::requests(claim) {
                let numbered = (0..ALTERNATIVES_MAX).zip(&alternatives);
                let sub = numbered.filter(|(_, it)| it.is_alternative());
                let taken = sub.filter(|(_, it)| names.contains(it.full_name().as_str()));
                score += taken.map(|(number, _)| ALTERNATIVES_MAX - number).sum::<i64>();
            }
        }
        score
    }

    fn normalize(&self, _: &Cycle<'_>, _: &[Arc<NodeInfo>], scores: &mut [i64]) {
        by_largest(scores, false);
    }

    fn reserve(&self, cycle: &mut Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let Some(Claims(Some(known))) = cycle.state.get() else { return Ok(()) };
        if known.allocator.is_none() {
            return Ok(());
        }
        let mut findings = known.findings();
        let found = findings.by_node.get(node.name()).cloned();
        let found = found.ok_or_else(|| Refusal::error("claim allocation not found for node"))?;
        for ((place, claim), allocation) in known.unallocated().zip(found) {
            self.handle.allocations.begin(claim, allocation.clone());
            findings.taken.insert(place, allocation);
        }
        Ok(())
    }

    fn unreserve(&self, state: &CycleState, pod: &PodInfo, _: &str) {
        let Some(Claims(Some(known))) = state.get() else { return };
        let mut findings = known.findings();
        for place in findings.taken.keys() {
            self.handle.allocations.end(&known.claims[*place]);
        }
        let already = known.claims.iter().filter(|claim| is_reserved_for(claim, &pod.uid));
        let written = std::mem::take(&mut findings.written).into_values();
        let reserved: Vec<_> = already.cloned().chain(written).collect();
        if let Some(client) = self.handle.client() {
            for claim in reserved {
                drop(tokio::spawn(bind::unreserve(client.clone(), claim, Arc::clone(&pod.uid))));
            }
        }
    }

    fn pre_bind<'a>(&'a self, binding: &'a Binding) -> Option<BoxFuture<'a, Result<(), Refusal>>> {
        let Claims(known) = binding.state.get()?;
        let known = known.as_ref()?;
        Some(Box::pin(async move {
            self.write(binding, known).await.map_err(Refusal::error)?;
            self.wait(binding, known).await.map_err(Refusal::error)
        }))
    }
}
