//! Better are nodes near to Pods that it is good to be near to.

use std::collections::HashMap;

use super::{labels_of_namespace, resolved};
use crate::framework::{
    AffinityTerm, AffinityTerms, Cycle, Kin, Labels, NodeInfo, PodInfo, SCORE_MAX, Snapshot,
    WeightedTerm,
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

/// Pods that are kin, and where they are.
struct Others<'a> {
    kin: &'a Kin,
    snapshot: &'a Snapshot,
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
        for kin in cycle.snapshot.kin() {
            let others = Others { kin, snapshot: cycle.snapshot };
            if prefers {
                let met = Met { pod: &kin.like, namespace: &Labels::new() };
                scores.add_all(&near, &met, &others, 1);
                scores.add_all(&far, &met, &others, -1);
            }
            if let Some(terms) = kin.like.affinity.as_deref() {
                let met = Met { pod: cycle.info, namespace: &namespace };
                scores.add_of_other(terms, &met, &others, hard_weight);
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

    fn add_of_other(
        &mut self,
        terms: &AffinityTerms,
        met: &Met<'_>,
        others: &Others<'_>,
        hard_weight: i32,
    ) {
        if hard_weight > 0 {
            for term in &terms.required {
                self.add(term, i64::from(hard_weight), met, others);
            }
        }
        self.add_all(&terms.preferred, met, others, 1);
        self.add_all(&terms.preferred_anti, met, others, -1);
    }

    fn add_all(&mut self, terms: &[WeightedTerm], met: &Met<'_>, others: &Others<'_>, sign: i64) {
        for WeightedTerm { term, weight } in terms {
            self.add(term, sign * i64::from(*weight), met, others);
        }
    }

    /// Adds what a term is worth wherever the others are, for each of them.
    fn add(&mut self, term: &AffinityTerm, weight: i64, met: &Met<'_>, others: &Others<'_>) {
        if !term.matches(met.pod, met.namespace) {
            return;
        }
        let topology = others.snapshot.topology(&term.topology_key);
        let mut values = self.0.remove(&term.topology_key).unwrap_or_default();
        for (domain, count) in others.kin.domains(&topology, |_| true) {
            let value = topology.value(domain);
            match values.get_mut(value) {
                Some(sum) => *sum += weight * count,
                None => drop(values.insert(value.to_owned(), weight * count)),
            }
        }
        if !values.is_empty() {
            self.0.insert(term.topology_key.clone(), values);
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
