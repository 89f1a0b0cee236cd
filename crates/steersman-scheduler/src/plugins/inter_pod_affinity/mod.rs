//! Pods that must be near to each other, or must not be, or would like to.

mod counts;
mod scoring;

use std::sync::{Arc, LazyLock};

use k8s_openapi::api::core::v1::{Namespace, Node, Pod};

use self::counts::Counts;
use self::scoring::Scores;
use super::pod::is_of;
use crate::framework::{
    Action, AffinityTerm, AffinityTerms, Before, ClusterEvent, Cycle, Hint, Interest, Labels,
    Lister, NodeInfo, Object, Plugin, PodInfo, Points, PreFilter, PreScore, Refusal, Resource,
    Selector,
};

/// Keeps to the affinity between Pods.
pub(crate) struct InterPodAffinity {
    /// How much it counts that a Pod must be near to the one to be scheduled.
    pub(crate) hard_weight: i32,
    /// Whether only what the Pod itself would like counts.
    pub(crate) ignores_preferred_of_others: bool,
}

impl Default for InterPodAffinity {
    fn default() -> Self {
        Self { hard_weight: 1, ignores_preferred_of_others: false }
    }
}

impl Plugin for InterPodAffinity {
    fn name(&self) -> &'static str {
        "InterPodAffinity"
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
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::NODE_LABEL),
                Interest::new(Resource::Namespace, Action::UPDATE),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        let own = PodInfo::of(pod);
        match &event.object {
            Object::Pod(_) if is_of(pod, event) => Hint::Queue,
            Object::Pod(change) => concerns(&own, change).into(),
            Object::Node(change) => joins(&own, change).into(),
            Object::Namespace(change) => relabels(&own, change).into(),
            _ => Hint::Queue,
        }
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        let has_none = cycle.info.affinity.is_none();
        if has_none && cycle.snapshot.with_required_anti_affinity().next().is_none() {
            return Ok(PreFilter::Skip); // so it is for most Pods of most clusters
        }
        let counts = Counts::of(cycle);
        if counts.are_irrelevant() {
            return Ok(PreFilter::Skip);
        }
        cycle.state.insert(counts);
        Ok(PreFilter::All)
    }

    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &PodInfo, node: &NodeInfo) {
        let own = Arc::clone(cycle.info);
        if let Some(counts) = cycle.state.get_mut::<Counts>() {
            counts.count(&own, pod, node, 1);
        }
    }

    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &PodInfo, node: &NodeInfo) {
        let own = Arc::clone(cycle.info);
        if let Some(counts) = cycle.state.get_mut::<Counts>() {
            counts.count(&own, pod, node, -1);
        }
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        cycle.state.get::<Counts>().map_or(Ok(()), |counts| counts.filter(cycle.info, node))
    }

    fn pre_score(&self, cycle: &mut Cycle<'_>, _: &[Arc<NodeInfo>]) -> Result<PreScore, Refusal> {
        let own = cycle.info.affinity.as_deref();
        let prefers =
            own.is_some_and(|it| !it.preferred.is_empty() || !it.preferred_anti.is_empty());
        if !prefers
            && (self.ignores_preferred_of_others || cycle.snapshot.with_affinity().next().is_none())
        {
            return Ok(PreScore::Skip);
        }
        let scores = Scores::of(cycle, prefers, self.hard_weight);
        if scores.is_empty() {
            return Ok(PreScore::Skip);
        }
        cycle.state.insert(scores);
        Ok(PreScore::Score)
    }

    fn score(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        cycle.state.get::<Scores>().map_or(0, |scores| scores.score(node))
    }

    fn normalize(&self, _: &Cycle<'_>, _: &[Arc<NodeInfo>], scores: &mut [i64]) {
        scoring::normalize(scores);
    }
}

/// The labels of a namespace.
fn labels_of_namespace(lister: &dyn Lister, name: &str) -> Labels {
    let namespace = lister.namespace(name);
    namespace.and_then(|it| it.metadata.labels.clone()).unwrap_or_default()
}

/// A term whose selector of namespaces has become a list of them, so that it can be asked about Pods
/// of any namespace.
fn resolved(term: &AffinityTerm, lister: &dyn Lister) -> AffinityTerm {
    let mut term = term.clone();
    if term.namespace_selector == Selector::Nothing {
        return term;
    }
    if !term.namespace_selector.is_empty() {
        for namespace in lister.namespaces() {
            let labels = namespace.metadata.labels.clone().unwrap_or_default();
            if term.namespace_selector.matches(&labels) {
                term.namespaces.extend(namespace.metadata.name.clone());
            }
        }
        term.namespace_selector = Selector::Nothing;
    }
    term
}

/// Whether a Pod may be one of a term's; what labels its namespace has is not known here.
fn may_match(term: &AffinityTerm, pod: &PodInfo) -> bool {
    let is_there =
        term.namespaces.contains(pod.namespace()) || term.namespace_selector != Selector::Nothing;
    is_there && term.selector.matches(&pod.labels)
}

/// Whether a change of another Pod may make this one fit.
fn concerns(own: &PodInfo, change: &Before<PodInfo>) -> bool {
    let AffinityTerms { required, required_anti, .. } = terms_of(own);
    let mut far = required_anti.iter();
    // One that it must be near to is one by all terms.
    let near = |it: &PodInfo| !required.is_empty() && required.iter().all(|by| may_match(by, it));
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => {
            (!near(old) && near(new)) || far.any(|by| may_match(by, old) && !may_match(by, new))
        }
        (Some(old), None) => {
            far.any(|by| may_match(by, old))
                || old.required_anti_affinity().iter().any(|by| may_match(by, own))
        }
        (None, Some(new)) => near(new),
        (None, None) => false,
    }
}

/// The terms of a Pod.
fn terms_of(pod: &PodInfo) -> &AffinityTerms {
    static NONE: LazyLock<AffinityTerms> = LazyLock::new(AffinityTerms::default);
    pod.affinity.as_deref().unwrap_or(&NONE)
}

/// Whether a namespace has other labels, so that its Pods are among those of a term now, or no more.
/// Kubernetes does not look at that, and lets such a Pod wait until something else happens.
fn relabels(own: &PodInfo, change: &Before<Namespace>) -> bool {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return false };
    let labels = |it: &Namespace| it.metadata.labels.clone().unwrap_or_default();
    let (old, new_labels) = (labels(old), labels(new));
    if old == new_labels {
        return false;
    }
    let selects = |term: &AffinityTerm, labels: &Labels| term.namespace_selector.matches(labels);
    let comes = |term: &AffinityTerm| !selects(term, &old) && selects(term, &new_labels);
    let goes = |term: &AffinityTerm| selects(term, &old) && !selects(term, &new_labels);
    let helps = own.affinity.as_deref().is_some_and(|terms| {
        terms.required.iter().any(comes) || terms.required_anti.iter().any(goes)
    });
    // Terms of others, which are not known here, may have meant it by the labels of its namespace.
    helps || new.metadata.name.as_deref() == Some(own.namespace())
}

/// Whether a node that came or has other labels may be where a Pod can go.
fn joins(own: &PodInfo, change: &Before<Node>) -> bool {
    let Some(new) = &change.new else { return false };
    let terms = terms_of(own);
    let value = |node: &Node, key: &str| node.metadata.labels.as_ref()?.get(key).cloned();
    let Some(old) = &change.old else {
        return terms.required.iter().all(|it| value(new, &it.topology_key).is_some());
    };
    let mut keys = terms.required.iter().chain(&terms.required_anti).map(|it| &*it.topology_key);
    // Without terms of its own, those of others keep it away, by keys that are not known here.
    keys.clone().next().is_none() || keys.any(|key| value(old, key) != value(new, key))
}
