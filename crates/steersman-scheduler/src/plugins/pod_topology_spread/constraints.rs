//! How Pods are to be spread.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, TopologySpreadConstraint};
use steersman::ObjectKey;
use steersman::placement::selects;

use crate::framework::{Cycle, Kin, Labels, NodeInfo, Selector, Snapshot, Topology};
use crate::plugins::pod::tolerations;
use crate::plugins::taint_toleration::tolerates_all;

/// What happens where a constraint cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsatisfiable {
    DoNotSchedule,
    ScheduleAnyway,
}

/// One way in which Pods are to be spread.
#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub(super) max_skew: i32,
    pub(super) topology_key: String,
    pub(super) selector: Selector,
    pub(super) min_domains: i32,
    /// Whether nodes that the Pod does not select are left out.
    honors_affinity: bool,
    /// Whether nodes whose taints the Pod does not tolerate are left out.
    pub(super) honors_taints: bool,
}

impl Constraint {
    /// Whether a node counts.
    pub(super) fn counts(&self, pod: &Pod, node: &NodeInfo) -> bool {
        let is_selected = || pod.spec.as_ref().is_none_or(|spec| selects(spec, &node.node));
        (!self.honors_affinity || is_selected())
            && (!self.honors_taints || tolerates_all(tolerations(pod), node.taints()))
    }

    /// Whether every node counts, whichever it is.
    fn counts_all(&self, pod: &Pod) -> bool {
        let selects_all = || {
            pod.spec.as_ref().is_none_or(|spec| {
                let affinity = spec.affinity.as_ref();
                let of_nodes = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
                spec.node_selector.is_none() && of_nodes.is_none()
            })
        };
        !self.honors_taints && (!self.honors_affinity || selects_all())
    }

    /// Whether the nodes at these places count that have every one of some labels.
    pub(super) fn counted<'a>(
        &'a self,
        labels: &'a [Arc<Topology>],
        cycle: &'a Cycle<'_>,
    ) -> impl Fn(usize) -> bool + use<'a> {
        let counts_all = self.counts_all(cycle.pod);
        let nodes = cycle.snapshot.nodes();
        move |place: usize| {
            labels.iter().all(|topology| topology.domain(place).is_some())
                && (counts_all || self.counts(cycle.pod, &nodes[place]))
        }
    }

    /// The Pods of a namespace that count.
    pub(super) fn pods<'a>(
        &'a self,
        namespace: &'a str,
        snapshot: &'a Snapshot,
    ) -> impl Iterator<Item = &'a Kin> {
        let selected = match self.selector.is_empty() {
            true => Vec::new(),
            false => snapshot.kin_selected(&self.selector),
        };
        selected
            .into_iter()
            .filter(move |kin| !kin.like.is_terminating && kin.like.namespace() == namespace)
    }
}

/// The domains of every constraint.
pub(super) fn topologies(constraints: &[Constraint], snapshot: &Snapshot) -> Vec<Arc<Topology>> {
    constraints.iter().map(|it| snapshot.topology(&it.topology_key)).collect()
}

/// The constraints that a Pod has.
pub(super) fn of_pod(pod: &Pod, unsatisfiable: Unsatisfiable) -> Vec<Constraint> {
    let spec = pod.spec.as_ref();
    let all = spec.and_then(|spec| spec.topology_spread_constraints.as_deref());
    let labels = pod.metadata.labels.as_ref();
    read(all.unwrap_or_default(), labels, unsatisfiable)
}

/// The constraints of a Pod that has none: over the Pods of its Services and its controller.
pub(super) fn by_default(
    defaults: &[TopologySpreadConstraint],
    cycle: &Cycle<'_>,
    unsatisfiable: Unsatisfiable,
) -> Vec<Constraint> {
    let mut constraints = read(defaults, Some(&cycle.info.labels), unsatisfiable);
    if constraints.is_empty() {
        return constraints;
    }
    let selector = default_selector(cycle);
    if selector.is_empty() || selector == Selector::Nothing {
        return Vec::new();
    }
    for constraint in &mut constraints {
        constraint.selector = selector.clone();
    }
    constraints
}

fn read(
    constraints: &[TopologySpreadConstraint],
    labels: Option<&Labels>,
    unsatisfiable: Unsatisfiable,
) -> Vec<Constraint> {
    let action = match unsatisfiable {
        Unsatisfiable::DoNotSchedule => "DoNotSchedule",
        Unsatisfiable::ScheduleAnyway => "ScheduleAnyway",
    };
    let wanted = constraints.iter().filter(|it| it.when_unsatisfiable == action);
    wanted.map(|constraint| constraint_of(constraint, labels)).collect()
}

fn constraint_of(constraint: &TopologySpreadConstraint, labels: Option<&Labels>) -> Constraint {
    let keys = constraint.match_label_keys.iter().flatten();
    let same = keys.filter_map(|key| labels.and_then(|labels| labels.get_key_value(key)));
    let selector = Selector::of(constraint.label_selector.as_ref()).and(Selector::of_labels(same));
    Constraint {
        max_skew: constraint.max_skew,
        topology_key: constraint.topology_key.clone(),
        selector,
        min_domains: constraint.min_domains.unwrap_or(1),
        honors_affinity: constraint.node_affinity_policy.as_deref() != Some("Ignore"),
        honors_taints: constraint.node_taints_policy.as_deref() == Some("Honor"),
    }
}

/// Selects the Pods of the Services and the controller of a Pod.
fn default_selector(cycle: &Cycle<'_>) -> Selector {
    let namespace = cycle.info.namespace();
    let mut labels = Labels::new();
    for service in cycle.lister.services(namespace) {
        let selector = service.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let Some(selector) = selector else { continue };
        if Selector::of_labels(selector).matches(&cycle.info.labels) {
            labels.extend(selector.clone());
        }
    }
    let owners = cycle.pod.metadata.owner_references.iter().flatten();
    let Some(owner) = owners.into_iter().find(|it| it.controller == Some(true)) else {
        return Selector::of_labels(&labels);
    };
    let key = ObjectKey::namespaced(namespace, owner.name.as_str());
    let lister = cycle.lister;
    let more = match (owner.api_version.as_str(), owner.kind.as_str()) {
        ("v1", "ReplicationController") => {
            let found = lister.replication_controller(&key);
            let spec = found.as_ref().and_then(|it| it.spec.as_ref());
            labels.extend(spec.and_then(|spec| spec.selector.clone()).unwrap_or_default());
            None
        }
        ("apps/v1", "ReplicaSet") => {
            let found = lister.replica_set(&key);
            found.and_then(|it| Some(Selector::of(Some(&it.spec.as_ref()?.selector))))
        }
        ("apps/v1", "StatefulSet") => {
            let found = lister.stateful_set(&key);
            found.and_then(|it| Some(Selector::of(Some(&it.spec.as_ref()?.selector))))
        }
        _ => None,
    };
    let selector = Selector::of_labels(&labels);
    match more {
        Some(more) if more != Selector::Nothing => selector.and(more),
        _ => selector,
    }
}
