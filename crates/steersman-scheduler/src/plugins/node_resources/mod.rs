//! A node must have what a Pod asks for, and is better the less, the more, or the more evenly its
//! resources are taken.

mod balanced;
mod fit;
mod strategy;

pub(crate) use balanced::BalancedAllocation;
pub(crate) use fit::Fit;
pub(crate) use strategy::{ShapePoint, Strategy, Weighted};

use crate::framework::{ClassResources, Cycle, NodeInfo, Resources};
use crate::plugins::dynamic_resources::DeviceTotals;
use crate::plugins::handle::Handle;

/// One resource of a node, and what is taken of it.
struct Taken {
    allocatable: i64,
    /// Without the Pod.
    before: i64,
    /// With the Pod.
    after: i64,
}

/// Whether the Pod may get one of these resources as devices.
fn counts_devices(resources: &[Weighted], cycle: &Cycle<'_>) -> bool {
    let classes = cycle.state.get::<ClassResources>();
    classes.is_some_and(|classes| resources.iter().any(|it| classes.class(&it.name).is_some()))
}

/// Looks at the devices by which nodes are compared, unless that has been done in this attempt.
fn look_at_devices(cycle: &mut Cycle<'_>, handle: &Handle) {
    if cycle.state.get::<DeviceTotals>().is_none() {
        let totals = DeviceTotals::of(cycle, handle);
        cycle.state.insert(totals);
    }
}

/// How much of a resource is taken on a node, without and with a Pod that asks for so much; none if
/// the node has none of it and no devices, or the Pod asks for none of what only some nodes have.
fn taken(
    name: &str,
    of_node: &Resources,
    asked: i64,
    node: &NodeInfo,
    devices: Option<&DeviceTotals>,
) -> Option<Taken> {
    let is_common = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    if asked == 0 && !is_common {
        return None;
    }
    let allocatable = node.allocatable.get(name);
    if allocatable == 0 {
        let total = devices?.on(&node.node, name)?;
        let after = total.taken.saturating_add(asked);
        return Some(Taken { allocatable: total.all, before: total.taken, after });
    }
    let before = match name {
        "cpu" | "memory" => of_node.get(name),
        _ => node.requested.get(name),
    };
    Some(Taken { allocatable, before, after: before.saturating_add(asked) })
}
