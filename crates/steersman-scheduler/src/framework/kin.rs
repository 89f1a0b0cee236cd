//! The Pods on all nodes, those together that decisions about others cannot tell apart.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::pod_info::PodInfo;
use super::selector::Selector;
use super::topology::Topology;

/// Pods that are [kin](PodInfo::is_kin_of): what is true of one for a decision about another Pod is
/// true of all. So it is asked once, however many there are.
#[derive(Clone, Debug)]
pub struct Kin {
    /// One of them.
    pub like: Arc<PodInfo>,
    /// How many of them are on each node, by its place.
    counts: HashMap<usize, u32>,
}

impl Kin {
    /// The places of the nodes on which they are, and how many.
    pub fn places(&self) -> impl Iterator<Item = (usize, i64)> {
        self.counts.iter().map(|(place, count)| (*place, i64::from(*count)))
    }

    /// The domains in which they are, on nodes whose places are wanted, and how many.
    pub fn domains(
        &self,
        topology: &Topology,
        is_wanted: impl Fn(usize) -> bool,
    ) -> Vec<(usize, i64)> {
        let mut sums = vec![0; topology.len()];
        for (place, count) in &self.counts {
            if let Some(domain) = topology.domain(*place).filter(|_| is_wanted(*place)) {
                sums[domain] += i64::from(*count);
            }
        }
        sums.into_iter().enumerate().filter(|(_, sum)| *sum != 0).collect()
    }
}

impl PartialEq for Kin {
    fn eq(&self, other: &Self) -> bool {
        self.like.is_kin_of(&other.like) && self.counts == other.counts
    }
}

/// All Pods, those together that are kin.
#[derive(Clone, Debug, Default)]
pub(super) struct Kinships {
    /// By their kinship.
    kin: HashMap<u64, Vec<Kin>>,
    /// The kinships of those that have a label, by its key and value: a cluster has thousands of
    /// workloads, and who looks for the Pods of one is not to look at all others.
    labels: HashMap<String, HashMap<String, HashSet<u64>>>,
}

impl PartialEq for Kinships {
    fn eq(&self, other: &Self) -> bool {
        self.kin == other.kin
    }
}

impl Kinships {
    pub(super) fn all(&self) -> impl Iterator<Item = &Kin> {
        self.kin.values().flatten()
    }

    /// Those whose labels are selected.
    pub(super) fn selected(&self, selector: &Selector) -> Vec<&Kin> {
        let matches = |kin: &&Kin| selector.matches(&kin.like.labels);
        let having = selector.equalities().map(|(key, value)| self.labels.get(key)?.get(value));
        match having.min_by_key(|found| found.map_or(0, HashSet::len)) {
            None => self.all().filter(matches).collect(),
            Some(found) => {
                let found = found.into_iter().flatten().filter_map(|it| self.kin.get(it));
                found.flatten().filter(matches).collect()
            }
        }
    }

    /// There are more of these on a node.
    pub(super) fn add(&mut self, place: usize, pod: &Arc<PodInfo>, count: u32) {
        let alike = self.kin.entry(pod.kinship).or_default();
        if let Some(kin) = alike.iter_mut().find(|kin| kin.like.is_kin_of(pod)) {
            *kin.counts.entry(place).or_default() += count;
            return;
        }
        alike.push(Kin { like: Arc::clone(pod), counts: HashMap::from([(place, count)]) });
        for (key, value) in &pod.labels {
            let values = self.labels.entry(key.clone()).or_default();
            values.entry(value.clone()).or_default().insert(pod.kinship);
        }
    }

    /// There are fewer.
    pub(super) fn remove(&mut self, place: usize, pod: &PodInfo, count: u32) {
        let Some(alike) = self.kin.get_mut(&pod.kinship) else { return };
        for kin in alike.iter_mut().filter(|kin| kin.like.is_kin_of(pod)) {
            let left = kin.counts.get(&place).map_or(0, |known| known.saturating_sub(count));
            match left {
                0 => kin.counts.remove(&place),
                left => kin.counts.insert(place, left),
            };
        }
        alike.retain(|kin| !kin.counts.is_empty());
        if alike.is_empty() {
            self.kin.remove(&pod.kinship);
            self.unlabel(pod);
        }
    }

    /// There are none of these any more.
    fn unlabel(&mut self, pod: &PodInfo) {
        for (key, value) in &pod.labels {
            let Some(values) = self.labels.get_mut(key) else { continue };
            if let Some(kinships) = values.get_mut(value) {
                kinships.remove(&pod.kinship);
                if kinships.is_empty() {
                    values.remove(value);
                }
            }
            if values.is_empty() {
                self.labels.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{object, pod};

    #[test]
    fn those_of_a_workload_are_found_as_long_as_there_are_any() {
        let of = |app: &str| {
            let labels = json!({"metadata": {"labels": {"app": app, "tier": "web"}}});
            Arc::new(PodInfo::of(&pod(app, &labels)))
        };
        let mut kinships = Kinships::default();
        for app in ["a", "b", "c"] {
            kinships.add(0, &of(app), 1);
            kinships.add(1, &of(app), 1);
        }
        let found = |kinships: &Kinships, selector: serde_json::Value| {
            let selector = Selector::of(Some(&object(selector)));
            let mut found: Vec<String> = kinships
                .selected(&selector)
                .iter()
                .map(|it| it.like.key.name.to_string())
                .collect();
            found.sort();
            found.join(" ")
        };
        let not_a =
            json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]});
        assert_eq!(found(&kinships, json!({"matchLabels": {"app": "a", "tier": "web"}})), "a");
        assert_eq!(found(&kinships, json!({"matchLabels": {"app": "a", "tier": "db"}})), "");
        assert_eq!(found(&kinships, json!({"matchLabels": {"tier": "web"}})), "a b c");
        assert_eq!(found(&kinships, not_a), "b c");
        kinships.remove(0, &of("a"), 1);
        assert_eq!(found(&kinships, json!({"matchLabels": {"app": "a"}})), "a");
        kinships.remove(1, &of("a"), 1);
        assert_eq!(found(&kinships, json!({"matchLabels": {"app": "a"}})), "");
        for app in ["b", "c"] {
            kinships.remove(0, &of(app), 1);
            kinships.remove(1, &of(app), 1);
        }
        assert!(kinships.labels.is_empty(), "{kinships:?}");
    }
}
