//! Better are nodes near to Pods that it is good to be near to.

use std::collections::HashMap;

use super::{labels_of_namespace, resolved};
use crate::framework::{
    AffinityTerm, AffinityTerms, Cycle, Labels, NodeInfo, PodInfo, SCORE_MAX, WeightedTerm,
};

/// What each domain, a label of nodes with a value, is worth.
#[derive(Clone, Debug, Default)]
pub(super) struct Scores(HashMap<String, HashMap<String, i64>>);

/// A Pod on a node that terms are compared with.
struct Met<'a> {
    pod: &'a PodInfo,
    /// The labels of the namespace, if terms still select it by them.
    namespace: &'a Labels,
    /// Where the other Pod of the two is.
    node: &'a NodeInfo,
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
        if prefers {
            for node in cycle.snapshot.nodes() {
                for pod in &node.pods {
                    let met = Met { pod, namespace: &Labels::new(), node };
                    scores.add_all(&near, &met, 1);
                    scores.add_all(&far, &met, -1);
                }
            }
        }
        for node in cycle.snapshot.with_affinity() {
            let met = Met { pod: cycle.info, namespace: &namespace, node };
            for terms in node.with_affinity.iter().filter_map(|pod| pod.affinity.as_deref()) {
                scores.add_of_other(terms, &met, hard_weight);
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

    fn add_of_other(&mut self, terms: &AffinityTerms, met: &Met<'_>, hard_weight: i32) {
        if hard_weight > 0 {
            for term in &terms.required {
                self.add(term, i64::from(hard_weight), met);
            }
        }
        self.add_all(&terms.preferred, met, 1);
        self.add_all(&terms.preferred_anti, met, -1);
    }

    fn add_all(&mut self, terms: &[WeightedTerm], met: &Met<'_>, sign: i64) {
        for WeightedTerm { term, weight } in terms {
            self.add(term, sign * i64::from(*weight), met);
        }
    }

    fn add(&mut self, term: &AffinityTerm, weight: i64, met: &Met<'_>) {
        if !term.matches(met.pod, met.namespace) {
            return;
        }
        if let Some(value) = met.node.labels().get(&term.topology_key) {
            let values = self.0.entry(term.topology_key.clone()).or_default();
            *values.entry(value.clone()).or_default() += weight;
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
