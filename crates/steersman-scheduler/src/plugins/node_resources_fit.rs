//! A node must have what a Pod asks for; of those that have it, the emptiest suits best.

use super::{FilterPlugin, ScorePlugin};
use crate::snapshot::{NodeView, PodView};

pub(super) struct NodeResourcesFit;

impl FilterPlugin for NodeResourcesFit {
    fn filter(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> Result<(), Vec<String>> {
        let mut reasons = Vec::new();
        if node.used.pods >= node.allocatable.get("pods") {
            reasons.push("Too many pods".to_owned());
        }
        for (name, asked) in pod.requests.asked.iter() {
            let free = node.allocatable.get(name).saturating_sub(node.used.asked.get(name));
            if asked > free && asked > 0 {
                reasons.push(format!("Insufficient {name}"));
            }
        }
        if reasons.is_empty() { Ok(()) } else { Err(reasons) }
    }
}

/// Prefers the node of which the smallest part would be taken.
pub(super) struct LeastAllocated;

impl ScorePlugin for LeastAllocated {
    fn score(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> i64 {
        let free = ["cpu", "memory"].map(|name| {
            let used = node.used.assumed.get(name);
            let taken = used.saturating_add(pod.requests.assumed.get(name));
            free_percent(node.allocatable.get(name), taken)
        });
        free.iter().sum::<i64>() / 2
    }
}

fn free_percent(allocatable: i64, taken: i64) -> i64 {
    if allocatable <= 0 || taken >= allocatable {
        return 0;
    }
    let percent = i128::from(allocatable - taken) * 100 / i128::from(allocatable);
    i64::try_from(percent).unwrap_or(0)
}
