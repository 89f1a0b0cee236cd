//! How many Pods each domain has, and whether one more would be too many.

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::constraints::{Constraint, topologies};
use crate::framework::{Cycle, Labels, NodeInfo, PodInfo, Refusal, Topology};

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
        let labels = topologies(&constraints, cycle.snapshot);
        let domains = constraints.into_iter().zip(&labels);
        Self(domains.map(|(it, topology)| Domains::of(it, topology, &labels, cycle)).collect())
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
    /// The Pods on nodes that have all labels, by one of them.
    fn of(
        constraint: Constraint,
        topology: &Topology,
        labels: &[Arc<Topology>],
        cycle: &Cycle<'_>,
    ) -> Self {
        let is_counted = constraint.counted(labels, cycle);
        let mut sums: Vec<Option<i64>> = vec![None; topology.len()];
        for place in (0..cycle.snapshot.len()).filter(|place| is_counted(*place)) {
            if let Some(domain) = topology.domain(place) {
                sums[domain] = Some(0);
            }
        }
        for kin in constraint.pods(cycle.info.namespace(), cycle.snapshot) {
            for (domain, count) in kin.domains(topology, &is_counted) {
                sums[domain] = sums[domain].map(|sum| sum + count);
            }
        }
        drop(is_counted);
        let pods = sums
            .into_iter()
            .enumerate()
            .filter_map(|(domain, sum)| Some((topology.value(domain).to_owned(), sum?)));
        let pods = pods.collect();
        let fewest = fewest(&pods);
        Self { constraint, pods, fewest }
    }
}

/// The fewest Pods that a domain has; very many if there is no domain, as in Kubernetes.
fn fewest(pods: &HashMap<String, i64>) -> i64 {
    pods.values().copied().min().unwrap_or(i64::from(i32::MAX))
}
