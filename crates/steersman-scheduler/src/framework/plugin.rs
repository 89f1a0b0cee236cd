//! A plug-in: one reason for or against a node, or one thing to be done for a Pod.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::BitOr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use steersman::Client;
use steersman::events::Recorder;
use tokio::time::Instant;

use super::cycle::{Cycle, CycleState};
use super::events::{ClusterEvent, Hint, Interest};
use super::lister::Lister;
use super::node_info::NodeInfo;
use super::pod_info::PodInfo;
use super::refusal::{NodeRefusals, Refusal};

/// The best score that a plug-in can give a node.
pub const SCORE_MAX: i64 = 100;

/// Extension points, in the order in which a Pod passes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Points(u16);

impl Points {
    /// [`Plugin::pre_enqueue`].
    pub const PRE_ENQUEUE: Self = Self(1);
    /// [`Plugin::compare`].
    pub const QUEUE_SORT: Self = Self(1 << 1);
    /// [`Plugin::pre_filter`], and what is added and removed after it.
    pub const PRE_FILTER: Self = Self(1 << 2);
    /// [`Plugin::filter`].
    pub const FILTER: Self = Self(1 << 3);
    /// [`Plugin::post_filter`].
    pub const POST_FILTER: Self = Self(1 << 4);
    /// [`Plugin::pre_score`].
    pub const PRE_SCORE: Self = Self(1 << 5);
    /// [`Plugin::score`] and [`Plugin::normalize`].
    pub const SCORE: Self = Self(1 << 6);
    /// [`Plugin::reserve`] and [`Plugin::unreserve`].
    pub const RESERVE: Self = Self(1 << 7);
    /// [`Plugin::permit`].
    pub const PERMIT: Self = Self(1 << 8);
    /// [`Plugin::pre_bind`].
    pub const PRE_BIND: Self = Self(1 << 9);
    /// [`Plugin::bind`].
    pub const BIND: Self = Self(1 << 10);
    /// [`Plugin::post_bind`].
    pub const POST_BIND: Self = Self(1 << 11);
    /// None.
    pub const NONE: Self = Self(0);
    /// All that a plug-in can have beside others: the order of the queue is only one's.
    pub const ALL: Self = Self(((1 << 12) - 1) & !Self::QUEUE_SORT.0);

    /// One by one.
    pub(crate) const EACH: [Self; 12] = [
        Self::PRE_ENQUEUE,
        Self::QUEUE_SORT,
        Self::PRE_FILTER,
        Self::FILTER,
        Self::POST_FILTER,
        Self::PRE_SCORE,
        Self::SCORE,
        Self::RESERVE,
        Self::PERMIT,
        Self::PRE_BIND,
        Self::BIND,
        Self::POST_BIND,
    ];

    /// The number of a single point, from zero.
    pub(crate) fn number(self) -> usize {
        self.0.trailing_zeros() as usize
    }

    /// Whether it has one of these.
    pub fn contains(self, point: Self) -> bool {
        self.0 & point.0 != 0
    }

    /// These without others.
    #[must_use]
    pub fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }
}

impl BitOr for Points {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What is known before nodes are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreFilter {
    /// Every node is to be looked at.
    All,
    /// Only these nodes are.
    Only(BTreeSet<String>),
    /// The plug-in has nothing to say about this Pod: it is not asked about any node.
    Skip,
}

/// Whether a plug-in has something to say about which node is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreScore {
    /// It has.
    Score,
    /// It has not: it is not asked for scores.
    Skip,
}

/// How a Pod that fits nowhere can be helped.
#[derive(Clone, Debug, Default)]
pub struct PostFilter {
    /// The node where there will be room for it.
    pub nominated_node: Option<Arc<str>>,
    /// Which Pods must go for that.
    pub victims: Vec<Arc<PodInfo>>,
    /// All nodes of which it was chosen, if somebody else has a say in that.
    pub(crate) candidates: Vec<Candidate>,
}

/// A node where there is room for a Pod once some are gone.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) node: Arc<str>,
    /// The most important first.
    pub(crate) victims: Vec<Arc<PodInfo>>,
    /// How many of them a disruption budget protects.
    pub(crate) violations: usize,
}

/// Whether a Pod may be bound.
#[derive(Clone, Debug)]
pub enum Permit {
    /// It may.
    Allow,
    /// It has to wait until somebody allows it, but no longer than this.
    Wait(Duration),
    /// It may not.
    Reject(Refusal),
}

/// Pods that go from a node, and others that come to it instead.
#[derive(Clone, Copy, Debug)]
pub struct Replacement<'a> {
    /// Who goes.
    pub gone: &'a [Arc<PodInfo>],
    /// Who comes.
    pub coming: &'a [&'a Arc<PodInfo>],
}

/// A Pod as the queue knows it.
#[derive(Clone, Debug)]
pub struct QueuedPod {
    /// The Pod.
    pub info: Arc<PodInfo>,
    /// When it was put into the queue.
    pub timestamp: Instant,
    /// Which of those that came at the same time was first.
    pub(crate) number: u64,
    /// How often it was tried.
    pub attempts: u32,
}

/// A Pod on its way to a node.
pub struct Binding {
    /// The Pod.
    pub pod: Arc<Pod>,
    /// What is remembered of it.
    pub info: Arc<PodInfo>,
    /// The node.
    pub node: Arc<str>,
    /// What plug-ins remember.
    pub state: CycleState,
    /// Other objects.
    pub lister: Arc<dyn Lister>,
    /// Writes.
    pub client: Client,
    /// Tells of every change of claims and volumes, and of every Pod that goes.
    pub storage_changes: tokio::sync::watch::Receiver<u64>,
    /// Tells of every change of claims for devices.
    pub device_changes: tokio::sync::watch::Receiver<u64>,
    /// Records Events as the scheduler of the Pod.
    pub recorder: Recorder,
}

/// Takes part in scheduling. Every method has a default that changes nothing, so that a plug-in has
/// only those that it is about.
///
/// What decides must be quick and must not wait: only [`pre_bind`](Self::pre_bind) and
/// [`bind`](Self::bind) may, since Pods are bound beside one another.
pub trait Plugin: Send + Sync + 'static {
    /// Its name, by which a configuration knows it.
    fn name(&self) -> &'static str;

    /// The extension points that it has.
    fn points(&self) -> Points {
        Points::ALL
    }

    /// Which events may help a Pod that it refused.
    fn interests(&self) -> &[Interest] {
        Interest::EVERYTHING
    }

    /// Whether an event that it is interested in helps a Pod that it refused.
    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        let _ = (pod, event);
        Hint::Queue
    }

    /// Whether a Pod may be queued at all.
    fn pre_enqueue(&self, pod: &Pod) -> Result<(), Refusal> {
        let _ = pod;
        Ok(())
    }

    /// Which of two Pods is tried first: the lesser one.
    fn compare(&self, a: &QueuedPod, b: &QueuedPod) -> Ordering {
        let _ = (a, b);
        Ordering::Equal
    }

    /// Looks at the Pod before nodes are looked at, and prepares for that.
    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        let _ = cycle;
        Ok(PreFilter::All)
    }

    /// Counts another Pod on a node in what was prepared.
    fn add_pod(&self, cycle: &mut Cycle<'_>, pod: &PodInfo, node: &NodeInfo) {
        let _ = (cycle, pod, node);
    }

    /// Counts it no more.
    fn remove_pod(&self, cycle: &mut Cycle<'_>, pod: &PodInfo, node: &NodeInfo) {
        let _ = (cycle, pod, node);
    }

    /// Whether a node can run the Pod.
    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let _ = (cycle, node);
        Ok(())
    }

    /// Whether [`filter`](Self::filter) looks at nothing but the node, the Pods on it, and what the Pod
    /// asks of it: its requests, ports, node selector, node affinity and tolerations. Then it is not
    /// asked again about a node that has not changed, for a Pod that asks for the same.
    fn is_local(&self) -> bool {
        false
    }

    /// Whether a node cannot run the Pod even after others have gone from it and come to it: a quick
    /// look before that is tried out, which must never say so if [`filter`](Self::filter) would let
    /// the node pass then.
    fn rules_out(&self, cycle: &Cycle<'_>, node: &NodeInfo, after: Replacement<'_>) -> bool {
        let _ = (cycle, node, after);
        false
    }

    /// Helps a Pod that no node can run. None if it does not do that. A refusal that is unresolvable
    /// says that no node can be made to fit: if one was nominated before, it is no more.
    fn post_filter(
        &self,
        cycle: &Cycle<'_>,
        refusals: &NodeRefusals,
    ) -> Option<Result<PostFilter, Refusal>> {
        let _ = (cycle, refusals);
        None
    }

    /// Prepares for scores of these nodes.
    fn pre_score(
        &self,
        cycle: &mut Cycle<'_>,
        nodes: &[Arc<NodeInfo>],
    ) -> Result<PreScore, Refusal> {
        let _ = (cycle, nodes);
        Ok(PreScore::Score)
    }

    /// How good a node is for the Pod; more is better.
    fn score(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> i64 {
        let _ = (cycle, node);
        0
    }

    /// How good all nodes are, for who has worked that out for all at once, in their order. Then it
    /// is not asked about each.
    fn score_all(&self, cycle: &Cycle<'_>, nodes: &[Arc<NodeInfo>]) -> Option<Vec<i64>> {
        let _ = (cycle, nodes);
        None
    }

    /// The same of [`score`](Self::score) as [`is_local`](Self::is_local) says of filters: it looks
    /// at nothing but the node, the Pods on it, and what the Pod asks of it.
    fn scores_locally(&self, cycle: &Cycle<'_>) -> bool {
        let _ = cycle;
        false
    }

    /// Brings the scores of all nodes to between 0 and [`SCORE_MAX`], where they must be in the end.
    fn normalize(&self, cycle: &Cycle<'_>, nodes: &[Arc<NodeInfo>], scores: &mut [i64]) {
        let _ = (cycle, nodes, scores);
    }

    /// Takes what the Pod needs of what the plug-in looks after.
    fn reserve(&self, cycle: &mut Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let _ = (cycle, node);
        Ok(())
    }

    /// Gives it back, also if it was not taken.
    fn unreserve(&self, state: &CycleState, pod: &PodInfo, node: &str) {
        let _ = (state, pod, node);
    }

    /// Whether the Pod may be bound, or has to wait.
    fn permit(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Permit {
        let _ = (cycle, node);
        Permit::Allow
    }

    /// Does what has to be done before the Pod is bound. None if there is nothing.
    fn pre_bind<'a>(&'a self, binding: &'a Binding) -> Option<BoxFuture<'a, Result<(), Refusal>>> {
        let _ = binding;
        None
    }

    /// Binds the Pod. None if it leaves that to another.
    fn bind<'a>(&'a self, binding: &'a Binding) -> Option<BoxFuture<'a, steersman::Result<()>>> {
        let _ = binding;
        None
    }

    /// Hears that the Pod is bound.
    fn post_bind(&self, binding: &Binding) {
        let _ = binding;
    }
}
