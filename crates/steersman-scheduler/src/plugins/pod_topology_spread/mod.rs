//! Pods of one kind spread over zones, nodes, or whatever else a label of nodes tells apart.

mod constraints;
mod counts;
mod scoring;

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod, TopologySpreadConstraint};

use self::constraints::{Constraint, Unsatisfiable};
use self::counts::Counts;
use self::scoring::Scores;
use crate::framework::{
    Action, Before, ClusterEvent, Cycle, Hint, Interest, Labels, NodeInfo, Object, Plugin, PodInfo,
    Points, PreFilter, PreScore, Refusal, Resource,
};

/// The label of nodes that is different for each.
const HOSTNAME: &str = "kubernetes.io/hostname";

/// Spreads Pods.
pub(crate) struct PodTopologySpread {
    /// What holds for Pods that say nothing.
    pub(crate) defaults: Vec<TopologySpreadConstraint>,
    /// Whether these are Kubernetes' own, by which nodes without the labels count as well.
    pub(crate) is_system_defaulted: bool,
}

impl Default for PodTopologySpread {
    fn default() -> Self {
        let constraint = |key: &str, max_skew: i32| TopologySpreadConstraint {
            topology_key: key.to_owned(),
            when_unsatisfiable: "ScheduleAnyway".into(),
            max_skew,
            ..TopologySpreadConstraint::default()
        };
        let zone = constraint("topology.kubernetes.io/zone", 5);
        Self { defaults: vec![constraint(HOSTNAME, 3), zone], is_system_defaulted: true }
    }
}

impl Plugin for PodTopologySpread {
    fn name(&self) -> &'static str {
        "PodTopologySpread"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER | Points::FILTER | Points::PRE_SCORE | Points::SCORE
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::AssignedPod, Action::ADD),
                Interest::new(Resource::AssignedPod, Action::DELETE),
                Interest::new(Resource::AssignedPod, Action::POD_LABEL),
                Interest::new(Resource::UnscheduledPod, Action::POD_LABEL),
                Interest::new(Resource::UnscheduledPod, Action::POD_TOLERATION),
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::DELETE),
                Interest::new(Resource::Node, Action::NODE_LABEL),
                Interest::new(Resource::Node, Action::NODE_TAINT),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        let own = constraints::of_pod(pod, Unsatisfiable::DoNotSchedule);
        match &event.object {
            // Of defaults it is not worked out for a hint what they are for the Pod.
            Object::Pod(_) | Object::Node(_) if own.is_empty() && !is_elsewhere(pod, event) => {
                Hint::Queue
            }
            Object::Pod(_) if event.action == Action::POD_TOLERATION => {
                own.iter().any(|constraint| constraint.honors_taints).into()
            }
            Object::Pod(change) => (!is_elsewhere(pod, event) && recounts(&own, change)).into(),
            Object::Node(change) => moves(&own, change).into(),
            _ => Hint::Queue,
        }
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        let constraints = self.constraints(cycle, Unsatisfiable::DoNotSchedule);
        if constraints.is_empty() {
            return Ok(PreFilter::Skip);
        }
        let counts = Counts::of(constraints, cycle);
        cycle.state.insert(counts);
        Ok(PreFilter::All)
    }

    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &PodInfo, node: &NodeInfo) {
        count(cycle, pod, node, 1);
    }

    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &PodInfo, node: &NodeInfo) {
        count(cycle, pod, node, -1);
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        match cycle.state.get::<Counts>() {
            Some(counts) => counts.filter(&cycle.info.labels, node),
            None => Ok(()),
        }
    }

    fn pre_score(
        &self,
        cycle: &mut Cycle<'_>,
        nodes: &[Arc<NodeInfo>],
    ) -> Result<PreScore, Refusal> {
        let constraints = self.constraints(cycle, Unsatisfiable::ScheduleAnyway);
        if constraints.is_empty() {
            return Ok(PreScore::Skip);
        }
        let own = cycle.spec().topology_spread_constraints.as_deref().unwrap_or_default();
        let needs_all = !own.is_empty() || !self.is_system_defaulted;
        let scores = Scores::of(&constraints, needs_all, cycle, nodes);
        cycle.state.insert(scores);
        Ok(PreScore::Score)
    }

    fn score_all(&self, cycle: &Cycle<'_>, _: &[Arc<NodeInfo>]) -> Option<Vec<i64>> {
        cycle.state.get::<Scores>().map(|scores| scores.raw().to_vec())
    }

    fn normalize(&self, cycle: &Cycle<'_>, _: &[Arc<NodeInfo>], scores: &mut [i64]) {
        if let Some(state) = cycle.state.get::<Scores>() {
            state.normalize(scores);
        }
    }
}

impl PodTopologySpread {
    /// What holds for a Pod: what it says, or what holds for those that say nothing.
    fn constraints(&self, cycle: &Cycle<'_>, unsatisfiable: Unsatisfiable) -> Vec<Constraint> {
        let own = cycle.spec().topology_spread_constraints.as_deref().unwrap_or_default();
        match own.is_empty() {
            true => constraints::by_default(&self.defaults, cycle, unsatisfiable),
            false => constraints::of_pod(cycle.pod, unsatisfiable),
        }
    }
}

/// Whether an event is about a Pod of another namespace, which is counted for none of this one.
fn is_elsewhere(pod: &Pod, event: &ClusterEvent) -> bool {
    let Object::Pod(change) = &event.object else { return false };
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    change.either().is_none_or(|other| other.namespace() != namespace)
}

/// Whether a change of a Pod changes what is counted.
fn recounts(constraints: &[Constraint], change: &Before<PodInfo>) -> bool {
    let counts = |by: &Constraint, pod: &PodInfo| by.selector.matches(&pod.labels);
    constraints.iter().any(|by| match (&change.old, &change.new) {
        (Some(old), Some(new)) => counts(by, old) != counts(by, new),
        (old, new) => old.iter().chain(new).any(|pod| counts(by, pod)),
    })
}

/// Whether a node comes into a domain, goes from one, or counts in it by other taints.
fn moves(constraints: &[Constraint], change: &Before<Node>) -> bool {
    let domains = |node: &Node| -> Option<Vec<String>> {
        let labels = node.metadata.labels.as_ref();
        constraints.iter().map(|by| labels?.get(&by.topology_key).cloned()).collect()
    };
    let taints = |node: &Node| node.spec.as_ref().and_then(|spec| spec.taints.clone());
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => {
            let (before, after) = (domains(old), domains(new));
            before != after || (after.is_some() && taints(old) != taints(new))
        }
        (old, new) => old.iter().chain(new).any(|node| domains(node).is_some()),
    }
}

fn count(cycle: &mut Cycle<'_>, pod: &PodInfo, node: &NodeInfo, by: i64) {
    let (of, info) = (Arc::clone(cycle.pod), Arc::clone(cycle.info));
    if let Some(counts) = cycle.state.get_mut::<Counts>()
        && pod.namespace() == info.namespace()
    {
        counts.count(&of, pod, node, by);
    }
}

/// Whether a node can be told apart by every constraint.
fn has_keys(constraints: &[Constraint], labels: &Labels) -> bool {
    constraints.iter().all(|constraint| labels.contains_key(&constraint.topology_key))
}
