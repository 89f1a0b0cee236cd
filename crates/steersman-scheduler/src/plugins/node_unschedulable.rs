//! A node that takes no Pods gets only those that tolerate it.

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use steersman::placement::tolerates;

use super::pod::{is_of, tolerations};
use crate::framework::{
    Action, ClusterEvent, Cycle, Hint, Interest, NodeInfo, Object, Plugin, Points, Refusal,
    Resource,
};

static UNSCHEDULABLE: LazyLock<Taint> = LazyLock::new(|| Taint {
    key: "node.kubernetes.io/unschedulable".into(),
    effect: "NoSchedule".into(),
    ..Taint::default()
});

/// Looks whether a node takes Pods.
pub(crate) struct NodeUnschedulable;

impl Plugin for NodeUnschedulable {
    fn name(&self) -> &'static str {
        "NodeUnschedulable"
    }

    fn points(&self) -> Points {
        Points::FILTER
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::NODE_TAINT),
                Interest::new(Resource::UnscheduledPod, Action::POD_TOLERATION),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        let Object::Node(change) = &event.object else {
            return (is_of(pod, event) && is_tolerated(pod)).into();
        };
        let was_closed = change.old.as_deref().is_none_or(is_closed);
        (was_closed && change.new.as_deref().is_some_and(|node| !is_closed(node))).into()
    }

    fn is_local(&self) -> bool {
        true
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        match is_closed(&node.node) && !is_tolerated(cycle.pod) {
            true => Err(Refusal::unresolvable("node(s) were unschedulable")),
            false => Ok(()),
        }
    }
}

fn is_closed(node: &Node) -> bool {
    node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true))
}

fn is_tolerated(pod: &Pod) -> bool {
    tolerations(pod).iter().any(|it| tolerates(it, &UNSCHEDULABLE))
}
