//! How Pods of an old template are replaced: either some go first, and nodes do without for a
//! moment (`maxUnavailable`), or new ones come first (`maxSurge`).

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;

use super::nodes::placement;
use super::plan::{Daemon, Plan, is_alive, node_name};
use crate::intstr::{Round, scaled};

/// The one or two Pods that a node has while they are replaced.
struct Pair<'a> {
    node: &'a str,
    new: Option<&'a Arc<Pod>>,
    old: Option<&'a Arc<Pod>>,
    /// Whether there are more, so that nothing is decided here.
    crowded: bool,
}

/// How many nodes should have a Pod, how many of them may have none, and how many two.
struct Bounds {
    desired: usize,
    max_unavailable: usize,
    max_surge: usize,
}

impl Daemon<'_> {
    /// The next step of a rolling update; nothing if the strategy is another.
    pub(super) fn roll(&self) -> Plan {
        let Some(bounds) = self.bounds() else { return Plan::default() };
        match bounds.max_surge {
            0 => Plan { delete: self.replace(&bounds), ..Plan::default() },
            _ => self.surge(&bounds),
        }
    }

    fn bounds(&self) -> Option<Bounds> {
        let rolling = self.rolling()?;
        let desired = self.nodes.iter().filter(|node| placement(self.set, node).runs).count();
        let total = i32::try_from(desired).unwrap_or(i32::MAX);
        let of = |value: Option<&_>, default: i32| {
            let count = value.map_or(default, |value| scaled(value, total, Round::Up));
            usize::try_from(count).unwrap_or(0)
        };
        let max_surge = of(rolling.max_surge.as_ref(), 0);
        let max_unavailable = match of(rolling.max_unavailable.as_ref(), 1) {
            0 if max_surge == 0 && desired > 0 => 1, // both zero would forbid every step
            count => count,
        };
        Some(Bounds { desired, max_unavailable, max_surge })
    }

    /// The nodes that have Pods or should have one, with their Pods.
    fn pairs(&self) -> Vec<Pair<'_>> {
        let with_pods = self.pods.iter().map(|(node, pods)| self.pair(node, pods));
        let without = self.nodes.iter().filter(|node| {
            !self.pods.contains_key(node_name(node)) && placement(self.set, node).runs
        });
        with_pods.chain(without.map(|node| self.pair(node_name(node), &[]))).collect()
    }

    fn pair<'p>(&self, node: &'p str, pods: &'p [Arc<Pod>]) -> Pair<'p> {
        let alive = pods.iter().filter(|pod| is_alive(pod));
        let (new, old): (Vec<_>, Vec<_>) = alive.partition(|pod| self.is_updated(pod));
        let crowded = new.len() > 1 || old.len() > 1;
        Pair { node, new: new.first().copied(), old: old.first().copied(), crowded }
    }

    /// The old Pods that go before their successors come: those that are of no use, and as many
    /// others as may be missing.
    fn replace(&self, bounds: &Bounds) -> Vec<Arc<Pod>> {
        let mut missing = 0;
        let mut useless = Vec::new();
        let mut candidates = Vec::new();
        for pair in self.pairs() {
            match (pair.new, pair.old) {
                _ if pair.crowded => missing += 1,
                (None, None) | (Some(_), Some(_)) => missing += 1,
                (Some(new), None) => missing += usize::from(!self.is_available(new)),
                (None, Some(old)) if !self.is_available(old) => {
                    useless.push(Arc::clone(old));
                    missing += 1;
                }
                (None, Some(old)) => candidates.push(Arc::clone(old)),
            }
        }
        candidates.truncate(bounds.max_unavailable.saturating_sub(missing));
        useless.extend(candidates);
        useless
    }

    /// The nodes that get a second Pod, and the old Pods whose successors are there.
    fn surge(&self, bounds: &Bounds) -> Plan {
        let mut plan = Plan::default();
        let mut candidates = Vec::new();
        let mut misplaced = Vec::new();
        let (mut surging, mut available) = (0, 0);
        for pair in self.pairs() {
            if pair.crowded {
                surging += 1;
                continue;
            }
            let counts = pair.old.or(pair.new);
            available += usize::from(counts.is_some_and(|pod| self.is_available(pod)));
            let Some(old) = pair.old else { continue };
            match pair.new {
                Some(new) if self.is_available(new) => plan.delete.push(Arc::clone(old)),
                Some(_) => surging += 1,
                None => match (self.runs_on(pair.node), self.is_available(old)) {
                    (true, true) => candidates.push(pair.node.to_owned()),
                    (true, false) => plan.create.push(pair.node.to_owned()),
                    (false, true) => misplaced.push(Arc::clone(old)),
                    (false, false) => plan.delete.push(Arc::clone(old)),
                },
            }
        }
        misplaced.truncate(available.saturating_sub(bounds.desired));
        plan.delete.extend(misplaced);
        candidates.truncate(bounds.max_surge.saturating_sub(surging));
        plan.create.extend(candidates);
        plan
    }

    fn runs_on(&self, name: &str) -> bool {
        let node = self.nodes.iter().find(|node| node_name(node) == name);
        node.is_some_and(|node| placement(self.set, node).runs)
    }
}
