//! Where Pods are that matter for whether a node can run a Pod.

use std::collections::HashMap;

use super::{labels_of_namespace, resolved};
use crate::framework::{AffinityTerm, Cycle, Labels, NodeInfo, PodInfo, Refusal};

/// How many terms match in each domain, which is a label of nodes with a value.
#[derive(Clone, Debug, Default)]
struct Domains(HashMap<String, HashMap<String, i64>>);

impl Domains {
    fn add(&mut self, node: &NodeInfo, key: &str, by: i64) {
        let Some(value) = node.labels().get(key) else { return };
        if !self.0.contains_key(key) {
            self.0.insert(key.to_owned(), HashMap::new());
        }
        let Some(values) = self.0.get_mut(key) else { return };
        if !values.contains_key(value) {
            values.insert(value.clone(), 0);
        }
        let Some(count) = values.get_mut(value) else { return };
        *count += by;
        if *count == 0 {
            values.remove(value);
            if values.is_empty() {
                self.0.remove(key);
            }
        }
    }

    fn get(&self, key: &str, value: &str) -> i64 {
        self.0.get(key).and_then(|values| values.get(value)).copied().unwrap_or_default()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Where Pods are that matter.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// The terms of the Pod, with their namespaces.
    near: Vec<AffinityTerm>,
    far: Vec<AffinityTerm>,
    /// The labels of its namespace.
    namespace: Labels,
    /// Where others do not want it.
    unwanted: Domains,
    /// Where those are that it must be near to.
    wanted: Domains,
    /// Where those are that it must not be near to.
    avoided: Domains,
}

impl Counts {
    /// Looks at all Pods that may matter.
    pub(super) fn of(cycle: &Cycle<'_>) -> Self {
        let own = cycle.info.affinity.as_deref();
        let lister = &**cycle.lister;
        let terms = |terms: Option<&[AffinityTerm]>| -> Vec<AffinityTerm> {
            terms.unwrap_or_default().iter().map(|term| resolved(term, lister)).collect()
        };
        let mut counts = Self {
            near: terms(own.map(|own| &*own.required)),
            far: terms(own.map(|own| &*own.required_anti)),
            namespace: labels_of_namespace(lister, cycle.info.namespace()),
            unwanted: Domains::default(),
            wanted: Domains::default(),
            avoided: Domains::default(),
        };
        let snapshot = cycle.snapshot;
        for kin in snapshot.kin() {
            if counts.is_unwanted(cycle.info, &kin.like) {
                for (node, count) in snapshot.nodes_of(kin) {
                    counts.count_unwanted(cycle.info, &kin.like, node, count);
                }
            }
            if counts.is_own(&kin.like) {
                for (node, count) in snapshot.nodes_of(kin) {
                    counts.count_own(&kin.like, node, count);
                }
            }
        }
        counts
    }

    /// Whether nothing keeps the Pod from any node.
    pub(super) fn are_irrelevant(&self) -> bool {
        self.unwanted.is_empty() && self.near.is_empty() && self.far.is_empty()
    }

    /// Counts another Pod on a node.
    pub(super) fn count(&mut self, own: &PodInfo, pod: &PodInfo, node: &NodeInfo, by: i64) {
        self.count_unwanted(own, pod, node, by);
        self.count_own(pod, node, by);
    }

    /// Whether another Pod does not want this one, somewhere.
    fn is_unwanted(&self, own: &PodInfo, pod: &PodInfo) -> bool {
        pod.required_anti_affinity().iter().any(|term| term.matches(own, &self.namespace))
    }

    /// Whether another Pod is one that this one must be near to, or must not.
    fn is_own(&self, pod: &PodInfo) -> bool {
        let far = || self.far.iter().any(|term| term.matches(pod, &Labels::new()));
        matches_all(&self.near, pod) || far()
    }

    fn count_unwanted(&mut self, own: &PodInfo, pod: &PodInfo, node: &NodeInfo, by: i64) {
        for term in pod.required_anti_affinity() {
            if term.matches(own, &self.namespace) {
                self.unwanted.add(node, &term.topology_key, by);
            }
        }
    }

    fn count_own(&mut self, pod: &PodInfo, node: &NodeInfo, by: i64) {
        if matches_all(&self.near, pod) {
            for term in &self.near {
                self.wanted.add(node, &term.topology_key, by);
            }
        }
        for term in self.far.iter().filter(|term| term.matches(pod, &Labels::new())) {
            self.avoided.add(node, &term.topology_key, by);
        }
    }

    /// Whether a node can run the Pod.
    pub(super) fn filter(&self, own: &PodInfo, node: &NodeInfo) -> Result<(), Refusal> {
        if !self.is_near(own, node) {
            return Err(Refusal::unresolvable("node(s) didn't match pod affinity rules"));
        }
        let labels = node.labels();
        let is_avoided = |term: &AffinityTerm| {
            let key = &term.topology_key;
            labels.get(key).is_some_and(|value| self.avoided.get(key, value) > 0)
        };
        if self.far.iter().any(is_avoided) {
            return Err(Refusal::unschedulable("node(s) didn't match pod anti-affinity rules"));
        }
        if labels.iter().any(|(key, value)| self.unwanted.get(key, value) > 0) {
            return Err(Refusal::unschedulable(
                "node(s) didn't satisfy existing pods anti-affinity rules",
            ));
        }
        Ok(())
    }

    fn is_near(&self, own: &PodInfo, node: &NodeInfo) -> bool {
        let mut all_there = true;
        for term in &self.near {
            let Some(value) = node.labels().get(&term.topology_key) else { return false };
            all_there &= self.wanted.get(&term.topology_key, value) > 0;
        }
        // The first of Pods that must be near to each other may go anywhere.
        all_there || (self.wanted.is_empty() && matches_all(&self.near, own))
    }
}

fn matches_all(terms: &[AffinityTerm], pod: &PodInfo) -> bool {
    !terms.is_empty() && terms.iter().all(|term| term.matches(pod, &Labels::new()))
}
