//! Hints by the number of processors: each zone gets as many endpoints as it has a share of all
//! processors, most of them its own.
//!
//! Where that cannot be done well enough, since a zone would be served by so few that they would be
//! overloaded, there are no hints at all, and people are told why.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointHints, EndpointSlice, ForZone};
use steersman::informer::Event;
use steersman_rules::quantity::Quantity;

use super::endpoint::zone;
use super::hints::{Traffic, is_ready, revise_kept};
use super::packing::{Changes, endpoints};

/// How much more than its share the endpoints of a zone may have to bear.
const OVERLOAD: f64 = 0.2;
/// Nodes that run the cluster itself do not count.
const EXCLUDED: [&str; 2] =
    ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

const NO_ZONE: &str = "One or more endpoints do not have a zone specified";
const NO_HINTS: &str = "No hints allocated for zones";
const NO_NODES: &str =
    "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes";
const TOO_FEW: &str = "Insufficient number of endpoints";
const OVERLOADED: &str = "Unable to allocate minimum required endpoints to each zone without \
                          exceeding overload threshold";

/// The share that each zone has of all processors, if every node that counts says what it has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Zones(Option<BTreeMap<String, f64>>);

/// What a zone should get.
#[derive(Clone, Copy, Debug, Default)]
struct Allocation {
    minimum: usize,
    maximum: usize,
    desired: f64,
}

type Allocations = BTreeMap<String, Allocation>;
type Counts = BTreeMap<String, usize>;

impl Zones {
    /// The shares of the zones of these nodes.
    pub(super) fn of(nodes: &[Arc<Node>]) -> Self {
        let mut by_zone: BTreeMap<String, f64> = BTreeMap::new();
        for node in nodes.iter().filter(|node| counts(node)) {
            let (Some(zone), Some(cpu)) = (zone(node), cpu(node)) else { return Self(None) };
            *by_zone.entry(zone.to_owned()).or_default() += cpu;
        }
        let total: f64 = by_zone.values().sum();
        by_zone.values_mut().for_each(|cpu| *cpu /= total);
        Self((by_zone.len() > 1).then_some(by_zone))
    }

    /// What each zone should get of so many endpoints, or why that cannot be.
    fn allocations(&self, endpoints: usize) -> Result<Allocations, String> {
        let shares = self.0.as_ref().ok_or_else(|| NO_NODES.to_owned())?;
        let numbers = format!("({endpoints} endpoints, {} zones)", shares.len());
        if shares.len() > endpoints {
            return Err(format!("{TOO_FEW} {numbers}"));
        }
        let mut allocations = Allocations::new();
        for (zone, share) in shares {
            let desired = share * number(endpoints);
            let least = desired / (1.0 + OVERLOAD);
            let minimum = (0..endpoints).find(|count| number(*count) >= least).unwrap_or(endpoints);
            let desired = desired.max(number(minimum));
            allocations.insert(zone.clone(), Allocation { minimum, maximum: 0, desired });
        }
        let least: usize = allocations.values().map(|allocation| allocation.minimum).sum();
        let spare = endpoints.checked_sub(least);
        let spare = spare.ok_or_else(|| format!("{OVERLOADED} {numbers}"))?;
        allocations.values_mut().for_each(|one| one.maximum = one.minimum + spare);
        Ok(allocations)
    }

    /// Gives endpoints hints for zones. Where that cannot be, takes all away and says why.
    pub(super) fn hint(&self, changes: &mut Changes) -> Result<(), String> {
        let hinted = self.try_hint(changes);
        if hinted.is_err() {
            Traffic::Anywhere.hint(changes);
        }
        hinted
    }

    fn try_hint(&self, changes: &mut Changes) -> Result<(), String> {
        let kept = changes.keep.iter().map(|slice| &**slice);
        let all = changes.create.iter().chain(&changes.update).chain(kept);
        let ready = all.flat_map(endpoints).filter(|endpoint| is_ready(endpoint)).count();
        let allocations = self.allocations(ready)?;
        let mut allocated = Counts::new();
        revise_kept(changes, |slice| match kept_hints(slice, &allocated, &allocations) {
            None => true,
            Some(hints) => {
                add(&mut allocated, hints);
                false
            }
        });
        for endpoint in written(changes).filter(|endpoint| is_ready(endpoint)) {
            let zone = endpoint.zone.clone().ok_or_else(|| NO_ZONE.to_owned())?;
            *allocated.entry(zone.clone()).or_default() += 1;
            endpoint.hints = for_zone(zone);
        }
        let (giving, receiving) = exchange(&allocations, &allocated);
        redistribute(changes, giving, receiving);
        if allocated.is_empty() { Err(NO_HINTS.to_owned()) } else { Ok(()) }
    }
}

/// The endpoints of slices that are written.
fn written(changes: &mut Changes) -> impl Iterator<Item = &mut Endpoint> {
    let slices = changes.create.iter_mut().chain(&mut changes.update);
    slices.flat_map(|slice| slice.endpoints.iter_mut().flatten())
}

fn for_zone(name: String) -> Option<EndpointHints> {
    Some(EndpointHints { for_zones: Some(vec![ForZone { name }]), for_nodes: None })
}

/// For which zones the hints of a slice are, unless it must be written: since an endpoint lacks
/// them, or they are for a zone that needs none, or for one that has enough.
fn kept_hints(
    slice: &EndpointSlice,
    allocated: &Counts,
    allocations: &Allocations,
) -> Option<Counts> {
    let mut hints = Counts::new();
    for endpoint in endpoints(slice).iter().filter(|endpoint| is_ready(endpoint)) {
        let zones =
            endpoint.hints.as_ref()?.for_zones.as_ref().filter(|zones| !zones.is_empty())?;
        for zone in zones {
            *hints.entry(zone.name.clone()).or_default() += 1;
        }
    }
    let fits = |(zone, count): (&String, &usize)| {
        let others = allocated.get(zone).copied().unwrap_or(0);
        allocations.get(zone).is_some_and(|allocation| count + others <= allocation.maximum)
    };
    hints.iter().all(fits).then_some(hints)
}

fn add(counts: &mut Counts, more: Counts) {
    for (zone, count) in more {
        *counts.entry(zone).or_default() += count;
    }
}

/// How many endpoints zones with too many should serve others with, and how many others lack.
fn exchange(allocations: &Allocations, allocated: &Counts) -> (Counts, Counts) {
    let mut giving: BTreeMap<&String, f64> = BTreeMap::new();
    let mut receiving: BTreeMap<&String, f64> = BTreeMap::new();
    for (zone, allocation) in allocations {
        let surplus = number(allocated.get(zone).copied().unwrap_or(0)) - allocation.desired;
        if surplus > 0.0 {
            giving.insert(zone, surplus);
        } else if surplus < 0.0 {
            receiving.insert(zone, -surplus);
        }
    }
    let (mut gives, mut receives) = (Counts::new(), Counts::new());
    while let (Some((giver, give)), Some((receiver, receive))) = (most(&giving), most(&receiving)) {
        // Less than a half of an endpoint is not worth it.
        if give < 1.0 && receive < 1.0 || give < 0.5 || receive < 0.5 {
            break;
        }
        *giving.entry(giver).or_default() -= 1.0;
        *receiving.entry(receiver).or_default() -= 1.0;
        *gives.entry(giver.clone()).or_default() += 1;
        *receives.entry(receiver.clone()).or_default() += 1;
    }
    (gives, receives)
}

fn most<'a>(zones: &BTreeMap<&'a String, f64>) -> Option<(&'a String, f64)> {
    let positive = zones.iter().filter(|(_, count)| **count > 0.0);
    positive
        .max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)))
        .map(|(zone, count)| (*zone, *count))
}

/// Lets endpoints of zones that have too many serve those that lack some.
fn redistribute(changes: &mut Changes, mut giving: Counts, mut receiving: Counts) {
    for endpoint in written(changes).filter(|endpoint| is_ready(endpoint)) {
        let Some(left) = endpoint.zone.as_ref().and_then(|zone| giving.get_mut(zone)) else {
            continue;
        };
        let Some(mut receiver) = receiving.first_entry() else { return };
        if *left == 0 {
            continue;
        }
        *left -= 1;
        *receiver.get_mut() -= 1;
        let zone = receiver.key().clone();
        if *receiver.get() == 0 {
            receiver.remove();
        }
        endpoint.hints = for_zone(zone);
    }
}

/// Whether zones may differ because of what happened to a node.
pub(super) fn concerns_zones(event: &Event<Node>) -> bool {
    let Event::Updated { old, new } = event else { return true };
    let (Some(old), Some(new)) = (old.object(), new.object()) else { return true };
    is_node_ready(&old) != is_node_ready(&new) || zone(&old) != zone(&new)
}

/// Whether the processors of a node are there for endpoints.
fn counts(node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let excluded = EXCLUDED.iter().any(|label| labels.is_some_and(|all| all.contains_key(*label)));
    !excluded && is_node_ready(node)
}

fn is_node_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ready = conditions.into_iter().flatten().find(|condition| condition.type_ == "Ready");
    ready.is_some_and(|ready| ready.status == "True")
}

/// The processors of a node, in thousandths.
fn cpu(node: &Node) -> Option<f64> {
    let allocatable = node.status.as_ref()?.allocatable.as_ref()?;
    let milli = Quantity::parse(allocatable.get("cpu")?.0.trim()).ok()?.milli_value();
    let milli = u32::try_from(milli).unwrap_or(u32::MAX);
    (milli > 0).then(|| f64::from(milli))
}

fn number(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}
