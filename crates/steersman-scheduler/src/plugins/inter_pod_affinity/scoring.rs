//! Better are nodes near to Pods that it is good to be near to.

use std::collections::HashMap;
use std::sync::Arc;

use super::{labels_of_namespace, resolved};
use crate::framework::{
    AffinityTerm, AffinityTerms, Cycle, Labels, NodeInfo, PodInfo, SCORE_MAX, WeightedTerm,
};

/// What each domain, a label of nodes with a value, is worth.
#[derive(Clone, Debug, Default)]
pub(super) struct Scores(HashMap<String, HashMap<String, i64>>);

/// A Pod that terms are compared with.
struct Met<'a> {
    pod: &'a PodInfo,
    /// The labels of the namespace, if terms still select it by them.
    namespace: &'a Labels,
}

impl Scores {
    /// Looks at all Pods that may matter: at those with terms of their own, or at all if the Pod has
    /// some.
    pub(super) fn of(cycle: &Cycle<'_>, prefers: bool, hard_weight: i32) -> Self {
        let lister = &**cycle.lister;
        let resolve = |it: &WeightedTerm| WeightedTerm {
            term: resolved(&it.term, lister),
            weight: it.weight,
        };
        let terms = cycle.info.affinity.as_deref();
        let all = |terms: Option<&Vec<WeightedTerm>>| -> Vec<WeightedTerm> {
            terms.into_iter().flatten().map(resolve).collect()
        };
        let near = all(terms.map(|terms| &terms.preferred));
        let far = all(terms.map(|terms| &terms.preferred_anti));
        let namespace = labels_of_namespace(lister, cycle.info.namespace());
        let mut scores = Self::default();
        let snapshot = cycle.snapshot;
        for kin in snapshot.kin() {
            if prefers {
                let nodes = || snapshot.nodes_of(kin);
                let met = Met { pod: &kin.like, namespace: &Labels::new() };
                scores.add_all(&near, &met, nodes, 1);
                scores.add_all(&far, &met, nodes, -1);
            }
            if let Some(terms) = kin.like.affinity.as_deref() {
                let met = Met { pod: cycle.info, namespace: &namespace };
                scores.add_of_other(terms, &met, || snapshot.nodes_of(kin), hard_weight);
            }
        }
        scores
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a node is worth.
    pub(super) fn score(&self, node: &NodeInfo) -> i64 {
        let of_key = |(key, values): (&String, &HashMap<String, i64>)| {
            node.labels().get(key).and_then(|value| values.get(value)).copied()
        };
        self.0.iter().filter_map(of_key).sum()
    }

    fn add_of_other<'a, N: Iterator<Item = (&'a Arc<NodeInfo>, i64)>>(
        &mut self,
        terms: &AffinityTerms,
        met: &Met<'_>,
        nodes: impl Fn() -> N + Copy,
        hard_weight: i32,
    ) {
        if hard_weight > 0 {
            for term in &terms.required {
                self.add(term, i64::from(hard_weight), met, nodes());
            }
        }
        self.add_all(&terms.preferred, met, nodes, 1);
        self.add_all(&terms.preferred_anti, met, nodes, -1);
    }

    fn add_all<'a, N: Iterator<Item = (&'a Arc<NodeInfo>, i64)>>(
        &mut self,
        terms: &[WeightedTerm],
        met: &Met<'_>,
        nodes: impl Fn() -> N,
        sign: i64,
    ) {
        for WeightedTerm { term, weight } in terms {
            self.add(term, sign * i64::from(*weight), met, nodes());
        }
    }

    /// Adds what a term is worth where the other Pods of it are, for each of them.
    fn add<'a>(
        &mut self,
        term: &AffinityTerm,
        weight: i64,
        met: &Met<'_>,
        nodes: impl Iterator<Item = (&'a Arc<NodeInfo>, i64)>,
    ) {
        if !term.matches(met.pod, met.namespace) {
            return;
        }
        let values = self.0.entry(term.topology_key.clone()).or_default();
        for (node, count) in nodes {
            let Some(value) = node.labels().get(&term.topology_key) else { continue };
            match values.get_mut(value) {
                Some(sum) => *sum += weight * count,
                None => drop(values.insert(value.clone(), weight * count)),
            }
        }
        if values.is_empty() {
            self.0.remove(&term.topology_key);
        }
    }
}

/// From the worst, which becomes 0, to the best.
pub(super) fn normalize(scores: &mut [i64]) {
    let min = scores.iter().copied().min().unwrap_or_default();
    let max = scores.iter().copied().max().unwrap_or_default();
    for score in scores {
        *score = match max - min {
            0 => 0,
            range => (SCORE_MAX as f64 * ((*score - min) as f64 / range as f64)) as i64,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::normalize;

    #[test]
    fn the_worst_becomes_0_and_the_best_100() {
        for (scores, expected) in
            [([5, 5, 5], [0, 0, 0]), ([-5, 0, 5], [0, 50, 100]), ([0, 1, 3], [0, 33, 100])]
        {
            let mut found = scores;
            normalize(&mut found);
            assert_eq!(found, expected, "{scores:?}");
        }
    }
}
