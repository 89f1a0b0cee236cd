//! What is remembered of a Pod.
//!
//! A cluster has many more Pods than a scheduler can hold as objects. This is the part of one that
//! decisions about others depend on; what only its own decision needs is read from the cache then.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Affinity, Pod, PodAffinityTerm, PodSpec, Volume, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use steersman::ObjectKey;
use steersman::volumes::claims_of;

use super::requests::PodRequests;
use super::selector::{Labels, Selector};

/// The condition of a Pod that goes because another needs its place.
const DISRUPTION_TARGET: &str = "DisruptionTarget";
/// Its reason if it was the scheduler that chose it.
pub(crate) const PREEMPTED: &str = "PreemptionByScheduler";

/// What is remembered of a Pod.
#[derive(Clone, Debug, PartialEq)]
pub struct PodInfo {
    /// Which Pod it is.
    pub key: ObjectKey,
    /// Tells it from others of its name.
    pub uid: Arc<str>,
    /// Its labels.
    pub labels: Labels,
    /// How much it matters.
    pub priority: i32,
    /// What it takes from its node.
    pub requests: PodRequests,
    /// Which Pods it wants to be near to or far from, if any.
    pub affinity: Option<Box<AffinityTerms>>,
    /// The claims that it uses.
    pub claims: Box<[String]>,
    /// Its volumes that not every other Pod may use at the same time.
    pub exclusive_volumes: Box<[Volume]>,
    /// Whether it is being deleted.
    pub is_terminating: bool,
    /// Whether that is because another needs its place.
    pub is_preempted: bool,
    /// Since when it runs.
    pub start_time: Option<Time>,
    /// Whose Pod it is to schedule.
    pub scheduler_name: Arc<str>,
    /// Gates that keep it from being scheduled.
    pub gates: usize,
    /// How many taints it tolerates; they can only be added.
    pub tolerations: usize,
    /// How many of its claims for devices have been made from templates.
    pub generated_claims: usize,
    /// The node where room is being made for it.
    pub nominated_node: Option<Arc<str>>,
    /// The same for all [kin](Self::is_kin_of).
    pub(crate) kinship: u64,
}

/// Which Pods a Pod wants to be near to or far from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct AffinityTerms {
    /// Pods that it must be near to.
    pub required: Vec<AffinityTerm>,
    /// Pods that it must not be near to.
    pub required_anti: Vec<AffinityTerm>,
    /// Pods that it would like to be near to.
    pub preferred: Vec<WeightedTerm>,
    /// Pods that it would like not to be near to.
    pub preferred_anti: Vec<WeightedTerm>,
}

/// Some Pods, and what near means.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AffinityTerm {
    /// The namespaces by name.
    pub namespaces: BTreeSet<String>,
    /// The namespaces by label.
    pub namespace_selector: Selector,
    /// Their labels.
    pub selector: Selector,
    /// Near are nodes with the same value of this label.
    pub topology_key: String,
}

/// A term, and how much it matters.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WeightedTerm {
    /// The term.
    pub term: AffinityTerm,
    /// How much it matters.
    pub weight: i32,
}

impl PodInfo {
    /// What is to be remembered of a Pod.
    pub fn of(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        let status = pod.status.as_ref();
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let affinity = spec.and_then(|spec| spec.affinity.as_ref());
        let scheduler = spec.and_then(|spec| spec.scheduler_name.as_deref());
        let volumes = spec.and_then(|spec| spec.volumes.as_ref()).into_iter().flatten();
        let is_terminating = pod.metadata.deletion_timestamp.is_some();
        let mut info = Self {
            key: ObjectKey::of(pod),
            uid: pod.metadata.uid.as_deref().unwrap_or_default().into(),
            labels: pod.metadata.labels.clone().unwrap_or_default(),
            priority: spec.and_then(|spec| spec.priority).unwrap_or_default(),
            requests: PodRequests::of(pod),
            affinity: affinity.and_then(|affinity| AffinityTerms::of(affinity, namespace)),
            claims: claims_of(pod).map(|claim| claim.name).collect(),
            exclusive_volumes: volumes.filter(|volume| is_exclusive(volume)).cloned().collect(),
            is_terminating,
            is_preempted: is_terminating && is_preempted(pod),
            start_time: status.and_then(|status| status.start_time.clone()),
            scheduler_name: scheduler.unwrap_or(crate::names::SCHEDULER_NAME).into(),
            gates: count(spec, |spec| spec.scheduling_gates.as_deref().map_or(0, <[_]>::len)),
            tolerations: count(spec, |spec| spec.tolerations.as_deref().map_or(0, <[_]>::len)),
            generated_claims: status
                .and_then(|status| status.resource_claim_statuses.as_deref())
                .map_or(0, <[_]>::len),
            nominated_node: status
                .and_then(|status| status.nominated_node_name.as_deref())
                .filter(|node| !node.is_empty())
                .map(Into::into),
            kinship: 0,
        };
        let mut hasher = DefaultHasher::new();
        info.traits().hash(&mut hasher);
        info.kinship = hasher.finish();
        info
    }

    /// Whether decisions about other Pods cannot tell the two apart, but by their nodes: they are
    /// of one namespace, have the same labels and terms, and both are being deleted or neither.
    pub fn is_kin_of(&self, other: &Self) -> bool {
        self.kinship == other.kinship && self.traits() == other.traits()
    }

    fn traits(&self) -> impl Hash + PartialEq + '_ {
        (self.namespace(), &self.labels, &self.affinity, self.is_terminating)
    }

    /// Its namespace.
    pub fn namespace(&self) -> &str {
        self.key.namespace.as_deref().unwrap_or_default()
    }

    /// The terms by which it must not be near to others.
    pub fn required_anti_affinity(&self) -> &[AffinityTerm] {
        self.affinity.as_deref().map_or(&[], |affinity| &affinity.required_anti)
    }
}

fn count(spec: Option<&PodSpec>, of: fn(&PodSpec) -> usize) -> usize {
    spec.map_or(0, of)
}

fn is_preempted(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let target = conditions.find(|condition| condition.type_ == DISRUPTION_TARGET);
    target.is_some_and(|it| it.status == "True" && it.reason.as_deref() == Some(PREEMPTED))
}

/// Whether a volume is one that two Pods cannot always use at the same time.
pub(crate) fn is_exclusive(volume: &Volume) -> bool {
    volume.gce_persistent_disk.is_some()
        || volume.aws_elastic_block_store.is_some()
        || volume.rbd.is_some()
        || volume.iscsi.is_some()
}

impl AffinityTerms {
    fn of(affinity: &Affinity, namespace: &str) -> Option<Box<Self>> {
        let term = |term: &PodAffinityTerm| AffinityTerm::of(term, namespace);
        let weighted = |it: &WeightedPodAffinityTerm| WeightedTerm {
            term: AffinityTerm::of(&it.pod_affinity_term, namespace),
            weight: it.weight,
        };
        let mut terms = Self::default();
        if let Some(near) = &affinity.pod_affinity {
            let required = near.required_during_scheduling_ignored_during_execution.iter();
            let preferred = near.preferred_during_scheduling_ignored_during_execution.iter();
            terms.required = required.flatten().map(term).collect();
            terms.preferred = preferred.flatten().map(weighted).collect();
        }
        if let Some(far) = &affinity.pod_anti_affinity {
            let required = far.required_during_scheduling_ignored_during_execution.iter();
            let preferred = far.preferred_during_scheduling_ignored_during_execution.iter();
            terms.required_anti = required.flatten().map(term).collect();
            terms.preferred_anti = preferred.flatten().map(weighted).collect();
        }
        (terms != Self::default()).then(|| Box::new(terms))
    }
}

impl AffinityTerm {
    fn of(term: &PodAffinityTerm, namespace: &str) -> Self {
        let named = term.namespaces.as_deref().unwrap_or_default();
        let is_own = named.is_empty() && term.namespace_selector.is_none();
        let namespaces = match is_own {
            true => BTreeSet::from([namespace.to_owned()]),
            false => named.iter().cloned().collect(),
        };
        Self {
            namespaces,
            namespace_selector: Selector::of(term.namespace_selector.as_ref()),
            selector: Selector::of(term.label_selector.as_ref()),
            topology_key: term.topology_key.clone(),
        }
    }

    /// Whether a Pod is one of those, whose namespace has these labels.
    pub fn matches(&self, pod: &PodInfo, namespace_labels: &Labels) -> bool {
        let is_there = self.namespaces.contains(pod.namespace())
            || self.namespace_selector.matches(namespace_labels);
        is_there && self.selector.matches(&pod.labels)
    }
}
