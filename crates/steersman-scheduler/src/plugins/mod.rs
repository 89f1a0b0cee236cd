//! Plugins: each knows one reason for or against a node, in a file of its own.
//!
//! To add one, write its file and name it in [`FILTERS`] or [`SCORES`].

mod node_affinity;
mod node_name;
mod node_ports;
mod node_resources_fit;
mod node_unschedulable;
mod taint_toleration;
#[cfg(test)]
mod tests;
mod volume_binding;

use crate::snapshot::{NodeView, PodView};

/// Says whether a node can run a Pod.
pub(crate) trait FilterPlugin: Sync {
    /// Fails with the reasons why this node cannot run this Pod.
    fn filter(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> Result<(), Vec<String>>;
}

/// Says how well a node suits a Pod.
pub(crate) trait ScorePlugin: Sync {
    /// From 0 to 100; more is better.
    fn score(&self, pod: &PodView<'_>, node: &NodeView<'_>) -> i64;
}

/// Every filter, in the order in which they are asked.
pub(crate) const FILTERS: &[&dyn FilterPlugin] = &[
    &node_unschedulable::NodeUnschedulable,
    &node_name::NodeName,
    &taint_toleration::TaintToleration,
    &node_affinity::NodeAffinity,
    &node_ports::NodePorts,
    &node_resources_fit::NodeResourcesFit,
    &volume_binding::VolumeBinding,
];

/// Every score, with its weight.
pub(crate) const SCORES: &[(&dyn ScorePlugin, i64)] = &[(&node_resources_fit::LeastAllocated, 1)];

/// A refusal for one reason.
fn refuse(reason: impl Into<String>) -> Result<(), Vec<String>> {
    Err(vec![reason.into()])
}
