//! The scores that a scheduler tells of while it decides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The weighted scores of nodes by plug-in, of one Pod.
pub(super) type Scores = BTreeMap<String, BTreeMap<String, i64>>;

/// What has been told so far, by Pod as `namespace/name`. What was read is forgotten.
#[derive(Clone, Debug, Default)]
pub(super) struct Told(Arc<Mutex<BTreeMap<String, Scores>>>);

impl Told {
    /// Notes a score; a later one of the same Pod, plug-in and node replaces it.
    pub(super) fn note(&self, pod: &str, plugin: &str, node: &str, score: i64) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let scores = told.entry(pod.to_owned()).or_default();
        scores.entry(plugin.to_owned()).or_default().insert(node.to_owned(), score);
    }

    /// What was told of a Pod.
    pub(super) fn take(&self, pod: &str) -> Scores {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.remove(pod).unwrap_or_default()
    }
}

/// The nodes that were compared: those that can run the Pod, if there were several.
pub(super) fn nodes(scores: &Scores) -> BTreeSet<&str> {
    scores.values().flat_map(|nodes| nodes.keys().map(String::as_str)).collect()
}

/// The nodes with the highest sum of scores.
pub(super) fn best(scores: &Scores) -> BTreeSet<&str> {
    let mut totals: BTreeMap<&str, i64> = BTreeMap::new();
    for (node, score) in scores.values().flatten() {
        *totals.entry(node).or_default() += score;
    }
    let top = totals.values().copied().max();
    totals.into_iter().filter(|(_, total)| Some(*total) == top).map(|(node, _)| node).collect()
}
