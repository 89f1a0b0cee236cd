//! The quality of service of a pod: what its containers ask for decides who is evicted first.

use serde_json::Value;

use crate::quantity::Quantity;
use crate::rules::document::{is_empty, items};

/// `Guaranteed` if every container has equal requests and limits of CPU and memory,
/// `BestEffort` if none has any, `Burstable` otherwise. Resources of the pod as a whole, where
/// there are any, count instead of those of its containers.
pub fn class(spec: &Value) -> &'static str {
    let whole = &spec["resources"];
    let lists = [&spec["containers"], &spec["initContainers"]];
    let resources: Vec<_> = if is_empty(&whole["requests"]) && is_empty(&whole["limits"]) {
        lists.iter().flat_map(|list| items(list)).map(|container| &container["resources"]).collect()
    } else {
        vec![whole]
    };
    let asks = |resources: &&Value| {
        ["cpu", "memory"].iter().any(|name| {
            amount(&resources["requests"][*name]).is_some()
                || amount(&resources["limits"][*name]).is_some()
        })
    };
    let fixed = |resources: &&Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(&resources["limits"][*name]);
            let request = amount(&resources["requests"][*name]).or(limit);
            limit.is_some() && request == limit
        })
    };
    if !resources.iter().any(asks) {
        "BestEffort"
    } else if resources.iter().all(fixed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// A quantity that asks for something.
fn amount(value: &Value) -> Option<Quantity> {
    Quantity::of(value).filter(|amount| amount.is_positive())
}
