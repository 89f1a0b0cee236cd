//! Which containers that have ended, sandboxes without containers and logs of Pods that are gone may
//! go.

use std::collections::{BTreeMap, HashSet};

use jiff::{SignedDuration, Timestamp};

/// How many containers that have ended are kept, for people who look at their logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContainerPolicy {
    /// What was created later stays.
    pub(crate) min_age: SignedDuration,
    /// How many of each container of each Pod are kept.
    pub(crate) per_container: Option<usize>,
    /// How many are kept on the node.
    pub(crate) per_node: Option<usize>,
}

impl Default for ContainerPolicy {
    fn default() -> Self {
        Self { min_age: SignedDuration::ZERO, per_container: Some(1), per_node: None }
    }
}

/// How far a container is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContainerState {
    Running,
    /// It was made and not started: the newest of its name is about to be.
    Created,
    Ended,
    /// The runtime does not know. It could be running.
    Unknown,
}

/// A container as the runtime lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundContainer {
    pub(crate) id: String,
    /// Its name in the Pod.
    pub(crate) name: String,
    pub(crate) pod_uid: String,
    pub(crate) sandbox: String,
    pub(crate) created: Timestamp,
    pub(crate) state: ContainerState,
}

/// A sandbox as the runtime lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundSandbox {
    pub(crate) id: String,
    pub(crate) pod_uid: String,
    pub(crate) created: Timestamp,
    pub(crate) ready: bool,
}

/// What a Pod still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodState {
    /// It may run.
    Needed,
    /// It has ended, but somebody may want to see its logs.
    Ended,
    /// Nobody knows it any more.
    Gone,
}

/// What is found on a node.
#[derive(Clone, Copy)]
pub(crate) struct Garbage<'a> {
    pub(crate) containers: &'a [FoundContainer],
    pub(crate) sandboxes: &'a [FoundSandbox],
    /// The directories of logs, by name: `{namespace}_{name}_{uid}`.
    pub(crate) logs: &'a [String],
    pub(crate) pod: &'a dyn Fn(&str) -> PodState,
    /// Whether all Pods of the node have been read, so that an unknown one is really gone.
    pub(crate) pods_known: bool,
    /// Whether room is needed so much that Pods that have ended lose their containers too.
    pub(crate) pressed: bool,
}

/// What is to be removed, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ContainerGarbage {
    pub(crate) containers: Vec<DeadContainer>,
    pub(crate) sandboxes: Vec<DeadSandbox>,
    pub(crate) logs: Vec<String>,
}

/// A container to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadContainer {
    pub(crate) id: String,
    /// It could be running and has to be stopped before.
    pub(crate) stop: bool,
}

/// A sandbox to be stopped and removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeadSandbox {
    pub(crate) id: String,
    /// Its containers, which must have been removed before.
    pub(crate) containers: Vec<String>,
}

/// Says what is to be removed.
pub(crate) fn plan(
    garbage: &Garbage<'_>,
    policy: &ContainerPolicy,
    now: Timestamp,
) -> ContainerGarbage {
    let containers = garbage.dead_containers(policy, now);
    let removed: HashSet<&str> = containers.iter().map(|container| container.id.as_str()).collect();
    let sandboxes = garbage.dead_sandboxes(&removed);
    let gone = |name: &&String| garbage.is_gone(name.rsplit('_').next().unwrap_or_default());
    let logs = garbage.logs.iter().filter(gone).cloned().collect();
    ContainerGarbage { containers, sandboxes, logs }
}

/// Containers of the same name in the same Pod, newest first.
type Unit<'a> = Vec<&'a FoundContainer>;

impl Garbage<'_> {
    fn is_gone(&self, uid: &str) -> bool {
        self.pods_known && (self.pod)(uid) == PodState::Gone
    }

    /// Whether nothing of this Pod has to be kept in the runtime.
    fn is_forfeit(&self, uid: &str) -> bool {
        match (self.pod)(uid) {
            PodState::Needed => false,
            PodState::Ended => self.pods_known && self.pressed,
            PodState::Gone => self.pods_known,
        }
    }

    fn dead_containers(&self, policy: &ContainerPolicy, now: Timestamp) -> Vec<DeadContainer> {
        let dead = |container: &&FoundContainer| {
            let old = now.duration_since(container.created) >= policy.min_age;
            container.state != ContainerState::Running && old
        };
        let mut units: BTreeMap<(&str, &str), Unit<'_>> = BTreeMap::new();
        for container in self.containers.iter().filter(dead) {
            units.entry((&container.pod_uid, &container.name)).or_default().push(container);
        }
        for unit in units.values_mut() {
            unit.sort_by_key(|container| std::cmp::Reverse(container.created));
        }
        let mut removed: Vec<&FoundContainer> = Vec::new();
        units.retain(|(uid, _), unit| {
            let forfeit = self.is_forfeit(uid);
            if forfeit {
                keep_newest(unit, 0, &mut removed);
            } else if unit[0].state == ContainerState::Created {
                // Counted among the dead, it would take the place of the one that ended last.
                unit.remove(0);
            }
            !forfeit && !unit.is_empty()
        });
        if let Some(most) = policy.per_container {
            units.values_mut().for_each(|unit| keep_newest(unit, most, &mut removed));
        }
        if let Some(most) = policy.per_node {
            keep_on_node(&mut units, most, &mut removed);
        }
        let to_remove = |container: &FoundContainer| DeadContainer {
            id: container.id.clone(),
            stop: container.state == ContainerState::Unknown,
        };
        removed.into_iter().map(to_remove).collect()
    }

    /// Sandboxes that are not ready and have no containers left. Of a Pod that is needed the newest
    /// stays: its status is read from it.
    fn dead_sandboxes(&self, removed: &HashSet<&str>) -> Vec<DeadSandbox> {
        let mut by_pod: BTreeMap<&str, Vec<&FoundSandbox>> = BTreeMap::new();
        for sandbox in self.sandboxes {
            by_pod.entry(&sandbox.pod_uid).or_default().push(sandbox);
        }
        let mut found = Vec::new();
        for (uid, mut sandboxes) in by_pod {
            sandboxes.sort_by_key(|sandbox| std::cmp::Reverse(sandbox.created));
            let kept = usize::from(!self.is_forfeit(uid));
            for sandbox in sandboxes.into_iter().skip(kept).rev().filter(|sandbox| !sandbox.ready) {
                let inside = self.containers.iter().filter(|it| it.sandbox == sandbox.id);
                let containers: Vec<String> = inside.map(|it| it.id.clone()).collect();
                if containers.iter().all(|id| removed.contains(id.as_str())) {
                    found.push(DeadSandbox { id: sandbox.id.clone(), containers });
                }
            }
        }
        found
    }
}

/// Takes the oldest of a unit away.
fn keep_newest<'a>(unit: &mut Unit<'a>, most: usize, removed: &mut Vec<&'a FoundContainer>) {
    if unit.len() > most {
        removed.extend(unit.drain(most..).rev());
    }
}

/// Leaves an equal number of each unit, at least one, and then takes the oldest of all away.
fn keep_on_node<'a>(
    units: &mut BTreeMap<(&str, &str), Unit<'a>>,
    most: usize,
    removed: &mut Vec<&'a FoundContainer>,
) {
    let count = |units: &BTreeMap<_, Unit<'_>>| units.values().map(Vec::len).sum::<usize>();
    if count(units) <= most {
        return;
    }
    let each = (most / units.len()).max(1);
    units.values_mut().for_each(|unit| keep_newest(unit, each, removed));
    let mut all: Unit<'a> = units.values().flatten().copied().collect();
    all.sort_by_key(|container| std::cmp::Reverse(container.created));
    keep_newest(&mut all, most, removed);
}
