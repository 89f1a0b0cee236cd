//! Pods for which room is being made on a node, and which therefore count there.

use std::sync::Arc;

use imbl::{HashMap, Vector};

use super::pod_info::PodInfo;

/// So many changes are remembered one by one.
const CHANGES_MAX: usize = 1024;

/// Which Pods are to go to which node once there is room. Decisions look at a copy while it changes,
/// so that copies share what is the same.
#[derive(Clone, Debug, Default)]
pub struct Nominator {
    by_node: HashMap<Arc<str>, Vec<Arc<PodInfo>>>,
    /// By uid of the Pod.
    nodes: HashMap<Arc<str>, Arc<str>>,
    /// The nodes of the last changes.
    changed: Vector<Arc<str>>,
    /// How many changes there were.
    changes: u64,
}

impl Nominator {
    /// Counts a Pod on a node, and on no other.
    pub fn nominate(&mut self, pod: Arc<PodInfo>, node: &Arc<str>) {
        self.remove(&pod.uid);
        self.note(node);
        self.nodes.insert(Arc::clone(&pod.uid), Arc::clone(node));
        self.by_node.entry(Arc::clone(node)).or_default().push(pod);
    }

    /// Counts a Pod nowhere. The Pod, if it was counted.
    pub fn remove(&mut self, uid: &str) -> Option<Arc<PodInfo>> {
        let node = self.nodes.remove(uid)?;
        self.note(&node);
        let pods = self.by_node.get_mut(&node)?;
        let place = pods.iter().position(|pod| &*pod.uid == uid)?;
        let removed = pods.remove(place);
        if pods.is_empty() {
            self.by_node.remove(&node);
        }
        Some(removed)
    }

    fn note(&mut self, node: &Arc<str>) {
        self.changes += 1;
        self.changed.push_back(Arc::clone(node));
        if self.changed.len() > CHANGES_MAX {
            self.changed.pop_front();
        }
    }

    /// How many changes there were so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes
    }

    /// The nodes of all changes but the first so many, the last first; none if they are not
    /// remembered.
    pub(super) fn changed_since(&self, seen: u64) -> Option<impl Iterator<Item = &Arc<str>>> {
        let new = usize::try_from(self.changes.checked_sub(seen)?).ok()?;
        (new <= self.changed.len()).then(|| self.changed.iter().rev().take(new))
    }

    /// The node that a Pod is to go to.
    pub fn node_of(&self, uid: &str) -> Option<&Arc<str>> {
        self.nodes.get(uid)
    }

    /// The Pods that are to go to a node.
    pub fn on(&self, node: &str) -> &[Arc<PodInfo>] {
        match self.nodes.is_empty() {
            true => &[],
            false => self.by_node.get(node).map_or(&[], Vec::as_slice),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::asking;

    #[test]
    fn what_has_changed_is_known_unless_that_was_too_much() {
        let mut nominator = Nominator::default();
        let pod = Arc::new(PodInfo::of(&asking("p", "1")));
        let since = |nominator: &Nominator, seen: u64| -> Option<Vec<String>> {
            Some(nominator.changed_since(seen)?.map(ToString::to_string).collect())
        };
        nominator.nominate(Arc::clone(&pod), &"a".into());
        nominator.nominate(Arc::clone(&pod), &"b".into());
        let expected = |names: &[&str]| Some(names.iter().map(ToString::to_string).collect());
        assert_eq!(since(&nominator, 0), expected(&["b", "a", "a"]));
        assert_eq!(since(&nominator, 2), expected(&["b"]));
        assert_eq!(since(&nominator, 3), expected(&[]));
        for _ in 0..CHANGES_MAX {
            nominator.nominate(Arc::clone(&pod), &"a".into());
        }
        assert_eq!(since(&nominator, 3), None);
        assert_eq!(since(&nominator, nominator.changes() - 1), expected(&["a"]));
    }
}
