//! Which nodes get a Pod, and which Pods go: objects in, actions out.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, RollingUpdateDaemonSet};
use k8s_openapi::api::core::v1::{Node, Pod};

use super::nodes::placement;
use super::template::{is_updated, node_of};
use crate::history::REVISION_LABEL;
use crate::intstr::{Round, scaled};
use crate::pod::{self, Availability};
use crate::pod_control::name_of;

/// A DaemonSet and what is known of it.
pub(super) struct Daemon<'a> {
    pub(super) set: &'a DaemonSet,
    pub(super) nodes: &'a [Arc<Node>],
    /// The Pods by the node that they are for, without those that have ended and go.
    pub(super) pods: BTreeMap<String, Vec<Arc<Pod>>>,
    /// The hash of the present template.
    pub(super) hash: &'a str,
    pub(super) now: Timestamp,
}

/// What happens next.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The nodes that get a Pod.
    pub(super) create: Vec<String>,
    /// The Pods that go.
    pub(super) delete: Vec<Arc<Pod>>,
    /// Pods among them that have ended by themselves, of which people are told.
    pub(super) ended: Vec<Ended>,
    /// When a failed Pod may be deleted for which it is too early.
    pub(super) retry_in: Option<Duration>,
}

/// A Pod that has ended, though daemons run for ever.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    pub(super) pod: Arc<Pod>,
    pub(super) node: String,
}

/// Asks whether the failed Pod on a node may be deleted yet.
pub(super) type Ask<'a> = &'a dyn Fn(&str) -> Result<(), Duration>;

impl<'a> Daemon<'a> {
    /// Sorts Pods by the nodes that they are for.
    pub(super) fn new(
        set: &'a DaemonSet,
        nodes: &'a [Arc<Node>],
        pods: &[Arc<Pod>],
        hash: &'a str,
        now: Timestamp,
    ) -> Self {
        let mut by_node: BTreeMap<String, Vec<Arc<Pod>>> = BTreeMap::new();
        let over = |pod: &Pod| pod::is_terminal(pod) && pod.metadata.deletion_timestamp.is_some();
        for pod in pods.iter().filter(|pod| !over(pod)) {
            if let Some(node) = node_of(pod) {
                by_node.entry(node.to_owned()).or_default().push(Arc::clone(pod));
            }
        }
        by_node.values_mut().for_each(|pods| pods.sort_by(|a, b| seniority(a, b)));
        Self { set, nodes, pods: by_node, hash, now }
    }

    /// Which Pods lack, and which are too many.
    pub(super) fn plan(&self, ask: Ask<'_>) -> Plan {
        let mut plan = Plan::default();
        for node in self.nodes {
            self.plan_node(node, ask, &mut plan);
        }
        let exists = |name: &String| self.nodes.iter().any(|node| node_name(node) == name);
        let lost = self.pods.iter().filter(|(node, _)| !exists(node)).flat_map(|(_, pods)| pods);
        plan.delete.extend(lost.filter(|pod| !is_bound(pod)).cloned());
        plan
    }

    fn plan_node(&self, node: &Node, ask: Ask<'_>, plan: &mut Plan) {
        let placement = placement(self.set, node);
        let name = node_name(node);
        match self.pods.get(name) {
            None if placement.runs => plan.create.push(name.to_owned()),
            None => {}
            Some(pods) if placement.keeps => {
                let running = self.without_ended(name, pods, ask, plan);
                self.thin_out(&running, plan);
                if running.is_empty() && placement.runs && self.surges() {
                    plan.create.push(name.to_owned());
                }
            }
            Some(pods) => plan.delete.extend(pods.iter().filter(|pod| is_alive(pod)).cloned()),
        }
    }

    /// The Pods of a node that run or will run; those that have ended go.
    fn without_ended(
        &self,
        node: &str,
        pods: &[Arc<Pod>],
        ask: Ask<'_>,
        plan: &mut Plan,
    ) -> Vec<Arc<Pod>> {
        let mut running = Vec::new();
        for pod in pods.iter().filter(|pod| is_alive(pod)) {
            match pod::phase(pod) {
                "Failed" => {
                    if let Err(delay) = ask(node) {
                        plan.retry_in = plan.retry_in.into_iter().chain([delay]).min();
                        continue;
                    }
                }
                "Succeeded" => {}
                _ => {
                    running.push(Arc::clone(pod));
                    continue;
                }
            }
            plan.ended.push(Ended { pod: Arc::clone(pod), node: node.to_owned() });
            plan.delete.push(Arc::clone(pod));
        }
        running
    }

    /// Leaves one Pod of those on a node, the oldest; with a surge, one of each template until the
    /// new one can do without the old one.
    fn thin_out(&self, running: &[Arc<Pod>], plan: &mut Plan) {
        if !self.surges() {
            plan.delete.extend(running.iter().skip(1).cloned());
            return;
        }
        let is_new = |pod: &&Arc<Pod>| revision_hash(pod) == Some(self.hash);
        let (new, old): (Vec<_>, Vec<_>) = running.iter().partition(is_new);
        let surplus = new.iter().skip(1).chain(old.iter().skip(1));
        plan.delete.extend(surplus.map(|pod| Arc::clone(pod)));
        if let (Some(new), Some(old)) = (new.first(), old.first())
            && (!pod::is_ready(old) || self.is_available(new))
        {
            plan.delete.push(Arc::clone(old));
        }
    }

    /// Whether a Pod has been ready for long enough.
    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        pod::availability(pod, self.min_ready_seconds(), self.now) == Availability::Available
    }

    pub(super) fn min_ready_seconds(&self) -> i32 {
        self.set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0)
    }

    /// Whether a Pod is of the present template.
    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        is_updated(self.set, pod, self.hash)
    }

    /// How Pods are replaced, if that is the controller's business.
    pub(super) fn rolling(&self) -> Option<&RollingUpdateDaemonSet> {
        let strategy = self.set.spec.as_ref()?.update_strategy.as_ref()?;
        let rolls = strategy.type_.as_deref() == Some("RollingUpdate");
        strategy.rolling_update.as_ref().filter(|_| rolls)
    }

    fn surges(&self) -> bool {
        let surge = self.rolling().and_then(|rolling| rolling.max_surge.as_ref());
        surge.is_some_and(|surge| scaled(surge, 1, Round::Up) > 0)
    }
}

/// The node's name.
pub(super) fn node_name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// Whether a Pod is not being deleted.
pub(super) fn is_alive(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
}

fn is_bound(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.is_some_and(|node| !node.is_empty())
}

fn revision_hash(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(REVISION_LABEL).map(String::as_str)
}

/// The Pod that stays comes first: on its node, older, by name.
fn seniority(a: &Pod, b: &Pod) -> Ordering {
    let created = |pod: &Pod| pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
    let by_node = is_bound(b).cmp(&is_bound(a));
    by_node.then_with(|| created(a).cmp(&created(b))).then_with(|| name_of(a).cmp(name_of(b)))
}
