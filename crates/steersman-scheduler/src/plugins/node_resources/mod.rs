//! A node must have what a Pod asks for, and is better the less, the more, or the more evenly its
//! resources are taken.

mod balanced;
mod fit;
mod strategy;

pub(crate) use balanced::BalancedAllocation;
pub(crate) use fit::Fit;
pub(crate) use strategy::{ShapePoint, Strategy, Weighted};

use crate::framework::{NodeInfo, Resources};

/// One resource of a node, and what is taken of it.
struct Taken {
    allocatable: i64,
    /// Without the Pod.
    before: i64,
    /// With the Pod.
    after: i64,
}

/// How much of a resource is taken on a node, without and with a Pod that asks for so much; none if
/// the node has none of it, or the Pod asks for none of what only some nodes have.
fn taken(name: &str, of_node: &Resources, asked: i64, node: &NodeInfo) -> Option<Taken> {
    let is_common = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    let allocatable = node.allocatable.get(name);
    if allocatable == 0 || (asked == 0 && !is_common) {
        return None;
    }
    let before = match name {
        "cpu" | "memory" => of_node.get(name),
        _ => node.requested.get(name),
    };
    Some(Taken { allocatable, before, after: before.saturating_add(asked) })
}
