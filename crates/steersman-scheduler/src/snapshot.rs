//! What the scheduler knows: what is taken on each node, by Pods that are bound or assumed.
//!
//! A Pod is assumed to be on a node from the decision until the cache shows its binding, since
//! other Pods are decided upon in between. It is kept up to date by every Pod's
//! change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::{Node, Pod};
use steersman::ObjectKey;
use steersman::informer::Event;

use crate::backlog::Backlog;
use crate::host_ports::HostPort;
use crate::pod_volumes::PodVolumes;
use crate::requests::{PodRequests, Resources};
use crate::volume_waits::VolumeWaits;

/// The scheduler's knowledge behind one lock, which is never held across an await.
#[derive(Default)]
pub(crate) struct SharedState(Mutex<State>);

impl SharedState {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the scheduler knows beyond the cache.
#[derive(Default)]
pub(crate) struct State {
    /// By uid: every Pod that takes something from a node.
    placed: HashMap<String, Placed>,
    /// By node name: the sum over `placed`. Shared with the views of a decision.
    used: HashMap<String, Arc<Usage>>,
    /// By node name: what it offers, as read from this version of the Node.
    offered: HashMap<String, (Option<String>, Arc<Resources>)>,
    /// Pods that fit nowhere at the moment.
    pub(crate) backlog: Backlog,
    /// Pods that wait because of their claims.
    pub(crate) volumes: VolumeWaits,
}

/// A Pod that takes something from a node.
struct Placed {
    node: String,
    requests: PodRequests,
    /// Decided upon, but not yet seen bound.
    assumed: bool,
}

/// What is taken on a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Usage {
    /// What its Pods ask for.
    pub(crate) asked: Resources,
    /// The same with assumptions, for scoring.
    pub(crate) assumed: Resources,
    /// How many Pods it has.
    pub(crate) pods: i64,
    /// Which of its ports they have.
    pub(crate) ports: Vec<HostPort>,
}

/// A node as plugins see it.
pub(crate) struct NodeView<'a> {
    /// The node.
    pub(crate) node: &'a Node,
    /// What it offers.
    pub(crate) allocatable: Arc<Resources>,
    /// What is taken.
    pub(crate) used: Arc<Usage>,
}

/// A Pod as plugins see it.
pub(crate) struct PodView<'a> {
    /// The Pod.
    pub(crate) pod: &'a Pod,
    /// What it asks for.
    pub(crate) requests: PodRequests,
    /// The claims that it uses, if any.
    pub(crate) volumes: Option<&'a PodVolumes>,
}

impl State {
    /// These nodes, and what is taken on each.
    pub(crate) fn views<'a>(
        &mut self,
        nodes: impl IntoIterator<Item = &'a Node>,
    ) -> Vec<NodeView<'a>> {
        let views: Vec<_> = nodes.into_iter().map(|node| self.view(node)).collect();
        if self.offered.len() > 2 * views.len() {
            self.offered.clear(); // mostly nodes that are gone
        }
        views
    }

    fn view<'a>(&mut self, node: &'a Node) -> NodeView<'a> {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        let used = self.used.get(name).cloned().unwrap_or_default();
        NodeView { node, allocatable: self.allocatable(name, node), used }
    }

    /// What a node offers. Read again only when the Node has changed.
    fn allocatable(&mut self, name: &str, node: &Node) -> Arc<Resources> {
        let version = &node.metadata.resource_version;
        match self.offered.get(name) {
            Some((read, resources)) if read.is_some() && read == version => Arc::clone(resources),
            _ => {
                let status = node.status.as_ref();
                let offered = status.and_then(|status| status.allocatable.as_ref());
                let resources = Arc::new(Resources::of(offered));
                self.offered.insert(name.to_owned(), (version.clone(), Arc::clone(&resources)));
                resources
            }
        }
    }

    /// Whether a Pod has been decided upon already.
    pub(crate) fn is_assumed(&self, uid: &str) -> bool {
        self.placed.get(uid).is_some_and(|placed| placed.assumed)
    }

    /// Counts a Pod on a node from now on, although it is not bound yet.
    pub(crate) fn assume(&mut self, uid: &str, node: &str, requests: PodRequests) {
        self.place(uid, Placed { node: node.to_owned(), requests, assumed: true });
    }

    /// Takes back an assumption: the Pod could not be bound.
    pub(crate) fn forget(&mut self, uid: &str) {
        if self.is_assumed(uid) {
            self.displace(uid);
        }
    }

    /// The Pods that fit nowhere at the moment.
    pub(crate) fn waiting(&self) -> Vec<ObjectKey> {
        self.backlog.keys()
    }

    /// The Pods that fit nowhere, if this Pod has given something up or is about to.
    pub(crate) fn waiting_for(&self, pod: &Pod) -> Vec<ObjectKey> {
        let leaves = pod.metadata.deletion_timestamp.is_some() || is_terminal(pod);
        if leaves && bound_to(pod).is_some() { self.waiting() } else { Vec::new() }
    }

    /// Takes in what happened to a Pod.
    pub(crate) fn observe(&mut self, event: &Event<Pod>) {
        let item = event.object();
        let Some(uid) = item.uid() else { return };
        if let Event::Deleted { .. } = event {
            self.displace(uid);
            self.backlog.remove(item.key());
            self.volumes.remove(item.key());
            return;
        }
        let Some(pod) = item.object() else { return };
        if bound_to(&pod).is_some() {
            self.backlog.remove(item.key()); // by whomever
            self.volumes.remove(item.key());
        }
        match bound_to(&pod) {
            Some(_) if is_terminal(&pod) => self.displace(uid),
            Some(node) => {
                let requests = PodRequests::of(&pod);
                self.place(uid, Placed { node: node.to_owned(), requests, assumed: false });
            }
            None => {} // an assumption is still on its way to the server
        }
    }

    fn place(&mut self, uid: &str, placed: Placed) {
        self.displace(uid);
        let usage = Arc::make_mut(self.used.entry(placed.node.clone()).or_default());
        usage.asked.add(&placed.requests.asked);
        usage.assumed.add(&placed.requests.assumed);
        usage.pods += 1;
        usage.ports.extend(placed.requests.ports.iter().cloned());
        self.placed.insert(uid.to_owned(), placed);
    }

    fn displace(&mut self, uid: &str) {
        let Some(Placed { node, requests, .. }) = self.placed.remove(uid) else { return };
        let Some(usage) = self.used.get_mut(&node).map(Arc::make_mut) else { return };
        usage.asked.subtract(&requests.asked);
        usage.assumed.subtract(&requests.assumed);
        usage.pods -= 1;
        for port in &requests.ports {
            if let Some(index) = usage.ports.iter().position(|used| used == port) {
                usage.ports.swap_remove(index);
            }
        }
        if usage.pods == 0 {
            self.used.remove(&node);
        }
    }
}

/// The node that a Pod is bound to.
pub(crate) fn bound_to(pod: &Pod) -> Option<&str> {
    let node = pod.spec.as_ref()?.node_name.as_deref()?;
    (!node.is_empty()).then_some(node)
}

/// Whether a Pod has ended and takes nothing any more.
pub(crate) fn is_terminal(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steersman::cache::Item;

    use super::*;

    fn pod(node: Option<&str>, phase: &str) -> Item<Pod> {
        let pod = json!({
            "metadata": {"namespace": "default", "name": "p", "uid": "p"},
            "spec": {"nodeName": node, "containers": [
                {"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
            "status": {"phase": phase},
        });
        Item::typed(serde_json::from_value(pod).unwrap())
    }

    fn used(state: &mut State) -> (i64, i64) {
        let mut node = Node::default();
        node.metadata.name = Some("n".into());
        let view = state.view(&node);
        (view.used.asked.get("cpu"), view.used.pods)
    }

    fn updated(pod: Item<Pod>) -> Event<Pod> {
        Event::Updated { old: pod.clone(), new: pod }
    }

    #[test]
    fn an_assumed_pod_counts_once_until_and_after_it_is_seen_bound() {
        let mut state = State::default();
        state.observe(&Event::Added { object: pod(None, "Pending"), initial: false });
        state.assume("p", "n", PodRequests::of(&pod(None, "Pending").object().unwrap()));
        assert_eq!(used(&mut state), (2000, 1));
        state.observe(&updated(pod(None, "Pending")));
        assert_eq!(used(&mut state), (2000, 1));
        state.observe(&updated(pod(Some("n"), "Running")));
        assert_eq!(used(&mut state), (2000, 1));
        assert!(!state.is_assumed("p"));
    }

    #[test]
    fn an_assumption_can_be_taken_back_but_a_binding_cannot() {
        let mut state = State::default();
        state.assume("p", "n", PodRequests::of(&pod(None, "Pending").object().unwrap()));
        state.forget("p");
        assert_eq!(used(&mut state), (0, 0));
        state.observe(&updated(pod(Some("n"), "Running")));
        state.forget("p");
        assert_eq!(used(&mut state), (2000, 1));
    }

    #[test]
    fn a_pod_that_ended_or_is_gone_takes_nothing() {
        let mut state = State::default();
        state.observe(&updated(pod(Some("n"), "Running")));
        state.observe(&updated(pod(Some("n"), "Succeeded")));
        assert_eq!(used(&mut state), (0, 0));
        state.observe(&updated(pod(Some("n"), "Running")));
        let gone = Event::Deleted { object: pod(Some("n"), "Running"), final_state_unknown: false };
        state.observe(&gone);
        assert_eq!(used(&mut state), (0, 0));
    }
}
