//! A Pod that names its node goes to that node.

use crate::framework::{Action, Cycle, Interest, NodeInfo, Plugin, Points, Refusal, Resource};

/// Compares names.
pub(crate) struct NodeName;

impl Plugin for NodeName {
    fn name(&self) -> &'static str {
        "NodeName"
    }

    fn points(&self) -> Points {
        Points::FILTER
    }

    fn interests(&self) -> &[Interest] {
        const { &[Interest::new(Resource::Node, Action::ADD)] }
    }

    fn is_local(&self) -> bool {
        true
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        match cycle.spec().node_name.as_deref() {
            Some(name) if !name.is_empty() && name != node.name() => {
                Err(Refusal::unresolvable("node(s) didn't match the requested node name"))
            }
            _ => Ok(()),
        }
    }
}
