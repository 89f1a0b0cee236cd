//! A Pod gets the devices that its claims ask for.
//!
//! A Pod waits until its [claims] are there; that for [extended] resources is the scheduler's own. On each node devices are looked for ([`allocator`]), for
//! all of its claims that have none yet; those that have been given devices say themselves which nodes
//! reach them. What is found for the node that is chosen is taken at once, so that no other Pod gets
//! it ([allocations](super::allocations)), and [written](bind) before the Pod is bound. Then it is
//! [waited](waiting) for devices that have to be attached first.

mod allocator;
mod bind;
mod candidate;
mod capacity;
mod claims;
mod conditions;
mod constraint;
mod counters;
mod deadline;
mod extended;
mod known;
mod pools;
mod request;
mod result;
mod taints;
#[cfg(test)]
mod tests;
mod totals;
mod uuid;
mod waiting;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::resource::v1::ResourceClaim;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use steersman::placement::matches;
use steersman::{ObjectKey, clock};

use self::allocator::{Allocator, Problem};
use self::claims::{claims_of, is_free_but_for, is_full_for, is_reserved_for};
use self::extended::OnNode;
use self::known::{Claims, Found, Known};
use self::pools::Slices;
pub(super) use self::totals::DeviceTotals;
use super::allocations::{allocation, uid};
use super::handle::Handle;
use super::normalize::by_largest;
use super::pod::is_of;
use crate::framework::{
    Action, Before, Binding, ClassResources, ClusterEvent, Cycle, CycleState, Hint, Interest,
    Lister, NodeInfo, NodeRefusals, Object, Plugin, PodInfo, Points, PostFilter, PreFilter,
    Refusal, Resource,
};

/// So many alternatives a request can have, and the first of them is worth as much.
const ALTERNATIVES_MAX: i64 = 8;

/// How long things may take.
pub(crate) struct Timeouts {
    /// To look for devices on a node, if not as long as it takes.
    pub(crate) filter: Option<Duration>,
    /// Until devices are ready.
    pub(crate) binding: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { filter: Some(Duration::from_secs(10)), binding: Duration::from_secs(600) }
    }
}

/// Looks after claims for devices.
pub(crate) struct DynamicResources {
    timeouts: Timeouts,
    handle: Arc<Handle>,
}

impl DynamicResources {
    /// Things may take this long.
    pub(crate) fn new(timeouts: Timeouts, handle: Arc<Handle>) -> Self {
        Self { timeouts, handle }
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
        let Some(new) = &change.new else {
            let pod = pod.metadata.uid.as_deref().unwrap_or_default();
            let is_over = |old: &Arc<ResourceClaim>| extended::is_special_of(old, pod);
            return change
                .old
                .as_ref()
                .is_some_and(|old| allocation(old).is_some() || is_over(old));
        };
        let Ok(claims) = self.wait_for(pod) else { return false };
        let old = change.old.as_deref();
        if old.is_some_and(|old| allocation(old).is_some()) && allocation(new).is_none() {
            return true; // its devices are free
        }
        let is_used = claims.iter().any(|claim| uid(claim) == uid(new));
        is_used && old.is_none_or(|old| old.status != new.status)
    }

    /// What is known of claims before nodes are looked at.
    fn known(
        &self,
        cycle: &Cycle<'_>,
        mut claims: Vec<Arc<ResourceClaim>>,
        classes: ClassResources,
    ) -> Result<Known, Refusal> {
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
        let special = (!classes.is_empty()).then(|| {
            claims.push(Arc::new(extended::claim_of(cycle.pod, &**cycle.lister)));
            claims.len() - 1
        });
        needs_devices |= special.is_some();
        let allocator = needs_devices.then(|| Allocator {
            slices: Slices::new(cycle.lister.resource_slices()),
            taken: self.handle.allocations.devices(|| cycle.lister.resource_claims()),
            lister: Arc::clone(cycle.lister),
            selectors: Arc::clone(&self.handle.selectors),
            timeout: self.timeouts.filter,
        });
        Ok(Known { claims, special, classes, allocator, findings: Mutex::default() })
    }

    /// Writes what was taken into the claims of a Pod.
    async fn write(&self, binding: &Binding, known: &Known) -> Result<(), String> {
        for (place, claim) in known.claims.iter().enumerate() {
            if is_reserved_for(claim, &binding.info.uid) {
                continue;
            }
            let taken = known.findings().taken.get(&place).cloned();
            let special = match known.special == Some(place) {
                true if taken.is_none() => continue, // its node has all of it
                true => Some(self.create(binding, known, place).await?),
                false => None,
            };
            let claim = special.as_ref().map_or(claim, |(created, _)| created);
            let written = bind::bind(&binding.client, claim, taken.as_ref(), &binding.info);
            let written = written.await?;
            self.handle.allocations.written(&written);
            known.findings().written.insert(place, Arc::new(written));
            if let Some((created, on_node)) = &special {
                bind::tell(&binding.client, &binding.info, created, &on_node.mappings).await?;
            }
        }
        Ok(())
    }

    /// Creates the claim for extended resources as it has to be for the node of a Pod.
    async fn create(
        &self,
        binding: &Binding,
        known: &Known,
        place: usize,
    ) -> Result<(Arc<ResourceClaim>, OnNode), String> {
        let chosen = known.findings().special.clone();
        let chosen = chosen.ok_or_else(|| {
            format!("extended resource claim not found for node {}", binding.node)
        })?;
        let created = binding.client.create(&extended::to_create(&chosen.claim)).await;
        if let Some(metrics) = self.handle.metrics() {
            metrics.devices.created(created.is_ok());
        }
        let created = created.map_err(|error| {
            let namespace = binding.info.namespace();
            format!("create claim for extended resources {namespace}/: {error}")
        })?;
        self.handle.allocations.becomes(&chosen.claim, &created);
        let created = Arc::new(created);
        known.findings().written.insert(place, Arc::clone(&created));
        Ok((created, chosen))
    }

    /// Finds devices on a node for the claims of a Pod that have none; nothing if all have.
    fn find(known: &Known, node: &Node, special: Option<OnNode>) -> Result<Option<Found>, Refusal> {
        let Some(allocator) = &known.allocator else { return Ok(None) };
        let mine = known.unallocated().map(|(place, claim)| (place, &**claim));
        let own = known.special.zip(special.as_ref().map(|special| &special.claim));
        let (places, claims): (Vec<usize>, Vec<&ResourceClaim>) = mine.chain(own).unzip();
        let results = match allocator.allocate(node, &claims) {
            Ok(Some(results)) => results,
            Ok(None) => return Err(Refusal::unresolvable("cannot allocate all claims")),
            Err(Problem::OnNode(why)) => return Err(Refusal::unresolvable(why)),
            Err(Problem::Everywhere(why)) => return Err(Refusal::error(why)),
            Err(Problem::TooLate) => {
                let name = node.metadata.name.as_deref().unwrap_or_default();
                let why = format!("node {name}: timed out trying to allocate devices");
                return Err(Refusal::error(why));
            }
        };
        Ok(Some(Found { results: places.into_iter().zip(results).collect(), special }))
    }

    /// Whether a claim is no good on a node: it has devices that the node does not reach, or that are
    /// not ready and will not be.
    fn is_unavailable(&self, claim: &ResourceClaim, node: &Node, now: &Time) -> bool {
        if allocation(claim).is_none() {
            return false;
        }
        !is_reached(claim, node)
            || match conditions::are_met(claim) {
                Ok(is_ready) => !is_ready && conditions::is_late(claim, self.timeouts.binding, now),
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
                Interest::new(Resource::ResourceClaim, Action::DELETE),
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
        let claims = claims_of(cycle.pod, &**cycle.lister).map_err(Refusal::unresolvable)?;
        let classes = cycle.state.get::<ClassResources>().cloned().unwrap_or_default();
        if claims.is_empty() && classes.is_empty() {
            return Ok(PreFilter::Skip);
        }
        let known = self.known(cycle, claims, classes)?;
        cycle.state.insert(Claims(Some(Arc::new(known))));
        Ok(PreFilter::All)
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let Some(Claims(Some(known))) = cycle.state.get() else { return Ok(()) };
        let special = match known.special.map(|place| &known.claims[place]) {
            Some(claim) => extended::on_node(cycle.pod, cycle.info, claim, &known.classes, node)?,
            None => None,
        };
        if special.is_none() && known.special == Some(0) {
            return Ok(()); // it has claimed nothing, and the node has all that it asks for
        }
        let (numbered, now) = (known.claims.iter().enumerate(), clock::now_time());
        let unavailable =
            numbered.filter(|(_, claim)| self.is_unavailable(claim, &node.node, &now));
        let unavailable: Vec<usize> = unavailable.map(|(place, _)| place).collect();
        let found = Self::find(known, &node.node, special)?;
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
        let special = known.special.map(|place| &known.claims[place]);
        let over = special.filter(|claim| !extended::is_in_memory(claim));
        let Some(client) = self.handle.client() else {
            return Some(Err(Refusal::unschedulable("still not schedulable")));
        };
        Some(Err(Refusal::unschedulable(match (free, over) {
            (Some(claim), _) => {
                let claim = ResourceClaim::clone(claim);
                drop(tokio::spawn(bind::deallocate(client.clone(), claim)));
                "deallocation of ResourceClaim completed"
            }
            (None, Some(claim)) => {
                drop(tokio::spawn(bind::delete(client.clone(), Arc::clone(claim))));
                "deletion of ResourceClaim completed"
            }
            (None, None) => "still not schedulable",
        })))
    }

    /// The earlier an alternative stands that was found, the better.
    fn score(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let Some(Claims(Some(known))) = cycle.state.get() else { return 0 };
        let findings = known.findings();
        let Some(found) = findings.by_node.get(node.name()) else { return 0 };
        let new = |place| found.results.iter().find(|(at, _)| *at == place).map(|(_, it)| it);
        let mut score = 0;
        for (place, claim) in known.claims.iter().enumerate() {
            let Some(given) = allocation(claim).or_else(|| new(place)) else { continue };
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
        let Some(found) = findings.by_node.get(node.name()).cloned() else {
            return match known.unallocated().next() {
                Some(_) => Err(Refusal::error("claim allocation not found for node")),
                None => Ok(()), // the node has all that the Pod asks for
            };
        };
        for (place, allocation) in found.results {
            self.handle.allocations.begin(&known.claims[place], allocation.clone());
            findings.taken.insert(place, allocation);
        }
        findings.special = found.special;
        Ok(())
    }

    fn unreserve(&self, state: &CycleState, pod: &PodInfo, _: &str) {
        let Some(Claims(Some(known))) = state.get() else { return };
        let mut findings = known.findings();
        for place in findings.taken.keys() {
            self.handle.allocations.end(&known.claims[*place]);
        }
        let already = known.claims.iter().filter(|claim| is_reserved_for(claim, &pod.uid));
        let mut written = std::mem::take(&mut findings.written);
        let own = known.special.and_then(|place| written.remove(&place));
        if let Some(created) = &own {
            self.handle.allocations.end(created);
        }
        let Some(client) = self.handle.client() else { return };
        for claim in already.cloned().chain(written.into_values()) {
            drop(tokio::spawn(bind::unreserve(client.clone(), claim, Arc::clone(&pod.uid))));
        }
        if let Some(created) = own {
            drop(tokio::spawn(bind::delete(client.clone(), created)));
        }
    }

    fn pre_bind<'a>(&'a self, binding: &'a Binding) -> Option<BoxFuture<'a, Result<(), Refusal>>> {
        let Claims(known) = binding.state.get()?;
        let known = known.as_ref()?;
        Some(Box::pin(async move {
            self.write(binding, known).await.map_err(Refusal::error)?;
            let (ready, waited) = waiting::wait(self.timeouts.binding, binding, known).await;
            if let (Some(metrics), Some(waited)) = (self.handle.metrics(), waited) {
                metrics.devices.waited(&binding.info.scheduler_name, &waited);
            }
            ready.map_err(Refusal::error)
        }))
    }
}
