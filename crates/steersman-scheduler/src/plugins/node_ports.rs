//! A port of a node is given once.

use k8s_openapi::api::core::v1::Pod;

use crate::framework::{
    Action, ClusterEvent, Cycle, Hint, HostPort, Interest, NodeInfo, Object, Plugin, Points,
    PreFilter, Refusal, Resource,
};

/// Looks whether ports are free.
pub(crate) struct NodePorts;

impl Plugin for NodePorts {
    fn name(&self) -> &'static str {
        "NodePorts"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER | Points::FILTER
    }

    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::AssignedPod, Action::DELETE),
                Interest::new(Resource::Node, Action::ADD),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        let Object::Pod(change) = &event.object else { return Hint::Queue };
        let given_up = change.old.as_ref().map_or(&[][..], |old| &old.requests.ports);
        conflict(&HostPort::all_of(pod), given_up).into()
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        Ok(match cycle.info.requests.ports.is_empty() {
            true => PreFilter::Skip,
            false => PreFilter::All,
        })
    }

    fn is_local(&self) -> bool {
        true
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        match conflict(&cycle.info.requests.ports, &node.ports) {
            true => Err(Refusal::unschedulable(
                "node(s) didn't have free ports for the requested pod ports",
            )),
            false => Ok(()),
        }
    }
}

fn conflict(wanted: &[HostPort], used: &[HostPort]) -> bool {
    wanted.iter().any(|port| used.iter().any(|used| port.conflicts(used)))
}
