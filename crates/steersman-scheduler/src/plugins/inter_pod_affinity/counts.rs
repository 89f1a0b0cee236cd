//! Where Pods are that matter for whether a node can run a Pod.

use std::collections::HashMap;

use super::{labels_of_namespace, resolved};
use crate::framework::{AffinityTerm, Cycle, Kin, Labels, NodeInfo, PodInfo, Refusal, Snapshot};

/// How many terms match in each domain, which is a label of nodes with a value.
#[derive(Clone, Debug, Default)]
struct Domains(HashMap<String, HashMap<String, i64>>);

impl Domains {
    fn add(&mut self, node: &NodeInfo, key: &str, by: i64) {
        let Some(value) = node.labels().get(key) else { return };
        let Some(values) = self.0.get_mut(key) else {
            self.0.insert(key.to_owned(), HashMap::from([(value.clone(), by)]));
            return;
        };
        let count = values.entry(value.clone()).or_default();
        *count += by;
        if *count == 0 {
            values.remove(value);
            if values.is_empty() {
                self.0.remove(key);
            }
        }
    }

    /// Counts Pods that are kin on all their nodes.
    fn add_kin(&mut self, kin: &Kin, snapshot: &Snapshot, key: &str) {
        let topology = snapshot.topology(key);
        let mut values = self.0.remove(key).unwrap_or_default();
        for (domain, count) in kin.domains(&topology, |_| true) {
            let value = topology.value(domain);
            match values.get_mut(value) {
                Some(sum) => *sum += count,
                None => drop(values.insert(value.to_owned(), count)),
            }
        }
        if !values.is_empty() {
            self.0.insert(key.to_owned(), values);
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
        cycle.snapshot.kin().for_each(|kin| counts.count_kin(cycle, kin));
        counts
    }

    /// Counts Pods that are kin, on all their nodes.
    fn count_kin(&mut self, cycle: &Cycle<'_>, kin: &Kin) {
        let snapshot = cycle.snapshot;
        for term in kin.like.required_anti_affinity() {
            if term.matches(cycle.info, &self.namespace) {
                self.unwanted.add_kin(kin, snapshot, &term.topology_key);
            }
        }
        if matches_all(&self.near, &kin.like) {
            for term in &self.near {
                self.wanted.add_kin(kin, snapshot, &term.topology_key);
            }
        }
        for term in self.far.iter().filter(|term| term.matches(&kin.like, &Labels::new())) {
            self.avoided.add_kin(kin, snapshot, &term.topology_key);
        }
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
