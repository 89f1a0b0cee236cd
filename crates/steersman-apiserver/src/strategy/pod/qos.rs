//! The quality of service of a pod: what its containers ask for decides who is evicted first.

use serde_json::Value;

use crate::strategy::document::items;
use crate::strategy::quantity;

/// `Guaranteed` if every container has equal requests and limits of CPU and memory,
/// `BestEffort` if none has any, `Burstable` otherwise.
pub(super) fn class(spec: &Value) -> &'static str {
    let lists = [&spec["containers"], &spec["initContainers"]];
    let containers: Vec<_> = lists.iter().flat_map(|list| items(list)).collect();
    let asks = |container: &&Value| {
        let resources = &container["resources"];
        ["cpu", "memory"].iter().any(|name| {
            amount(&resources["requests"][*name]).is_some()
                || amount(&resources["limits"][*name]).is_some()
        })
    };
    let fixed = |container: &&Value| {
        let resources = &container["resources"];
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(&resources["limits"][*name]);
            let request = amount(&resources["requests"][*name]).or(limit);
            limit.is_some() && request == limit
        })
    };
    if !containers.iter().any(asks) {
        "BestEffort"
    } else if containers.iter().all(fixed) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// A quantity that asks for something.
fn amount(value: &Value) -> Option<i128> {
    quantity::parse(value).filter(|amount| *amount > 0)
}
