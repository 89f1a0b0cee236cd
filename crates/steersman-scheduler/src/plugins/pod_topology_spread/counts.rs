//! How many Pods each domain has, and whether one more would be too many.

use std::collections::HashMap;

use k8s_openapi::api::core::v1::Pod;

use super::constraints::Constraint;
use super::has_keys;
use crate::framework::{Cycle, Labels, NodeInfo, PodInfo, Refusal};

/// The Pods of each domain, by constraint.
#[derive(Clone, Debug)]
pub(super) struct Counts(Vec<Domains>);

#[derive(Clone, Debug)]
struct Domains {
    constraint: Constraint,
    /// By the value of the label that tells domains apart.
    pods: HashMap<String, i64>,
    /// The fewest that a domain has; worked out again when something is counted.
    fewest: i64,
}

impl Counts {
    /// Counts the Pods of all nodes.
    pub(super) fn of(constraints: Vec<Constraint>, cycle: &Cycle<'_>) -> Self {
        let all = constraints.clone();
        Self(constraints.into_iter().map(|it| Domains::of(it, &all, cycle)).collect())
    }

    /// Counts another Pod of the same namespace.
    pub(super) fn count(&mut self, of: &Pod, pod: &PodInfo, node: &NodeInfo, by: i64) {
        let labels = node.labels();
        if !self.0.iter().all(|it| labels.contains_key(&it.constraint.topology_key)) {
            return;
        }
        for domains in &mut self.0 {
            let constraint = &domains.constraint;
            if !constraint.selector.matches(&pod.labels) || !constraint.counts(of, node) {
                continue;
            }
            if let Some(value) = labels.get(&constraint.topology_key) {
                *domains.pods.entry(value.clone()).or_default() += by;
                domains.fewest = fewest(&domains.pods);
            }
        }
    }

    /// Whether one more Pod on a node keeps to every constraint.
    pub(super) fn filter(&self, labels: &Labels, node: &NodeInfo) -> Result<(), Refusal> {
        for Domains { constraint, pods, fewest } in &self.0 {
            let Some(value) = node.labels().get(&constraint.topology_key) else {
                return Err(Refusal::unresolvable(
                    "node(s) didn't match pod topology spread constraints (missing required label)",
                ));
            };
            let wanted = usize::try_from(constraint.min_domains).unwrap_or_default();
            let fewest = if pods.len() < wanted { 0 } else { *fewest };
            let itself = i64::from(constraint.selector.matches(labels));
            let there = pods.get(value).copied().unwrap_or_default();
            if there + itself - fewest > i64::from(constraint.max_skew) {
                return Err(Refusal::unschedulable(
                    "node(s) didn't match pod topology spread constraints",
                ));
            }
        }
        Ok(())
    }
}

impl Domains {
    fn of(constraint: Constraint, all: &[Constraint], cycle: &Cycle<'_>) -> Self {
        let is_counted =
            |node: &NodeInfo| has_keys(all, node.labels()) && constraint.counts(cycle.pod, node);
        let mut pods: HashMap<String, i64> = HashMap::new();
        for node in cycle.snapshot.nodes().iter().filter(|node| is_counted(node)) {
            let Some(value) = node.labels().get(&constraint.topology_key) else { continue };
            if !pods.contains_key(value) {
                pods.insert(value.clone(), 0);
            }
        }
        for (node, count) in constraint.pods(cycle.info.namespace(), cycle.snapshot) {
            let value = node.labels().get(&constraint.topology_key);
            if let Some(sum) = value.and_then(|value| pods.get_mut(value))
                && is_counted(node)
            {
                *sum += count;
            }
        }
        let fewest = fewest(&pods);
        Self { constraint, pods, fewest }
    }
}

/// The fewest Pods that a domain has; very many if there is no domain, as in Kubernetes.
fn fewest(pods: &HashMap<String, i64>) -> i64 {
    pods.values().copied().min().unwrap_or(i64::from(i32::MAX))
}
