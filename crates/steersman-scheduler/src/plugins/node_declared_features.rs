//! A Pod goes only to nodes that say they can do what it needs.

use k8s_openapi::api::core::v1::{Node, Pod};

use crate::framework::{
    Action, ClusterEvent, Cycle, Hint, Interest, NodeInfo, Object, Plugin, Points, PreFilter,
    Refusal, Resource, declares, needed_features,
};

/// Compares what a Pod needs with what nodes declare.
pub(crate) struct NodeDeclaredFeatures;

impl Plugin for NodeDeclaredFeatures {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatures"
    }

    fn points(&self) -> Points {
        Points::PRE_FILTER | Points::FILTER
    }

    // What a Pod needs of nodes cannot be changed.
    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::NODE_DECLARED_FEATURE),
            ]
        }
    }

    fn hint(&self, _: &Pod, event: &ClusterEvent) -> Hint {
        let Object::Node(change) = &event.object else { return Hint::Skip };
        let declared =
            |node: &Node| node.status.as_ref().and_then(|it| it.declared_features.clone());
        let before = change.old.as_deref().map(declared);
        (before.is_none() || before != change.new.as_deref().map(declared)).into()
    }

    fn pre_filter(&self, cycle: &mut Cycle<'_>) -> Result<PreFilter, Refusal> {
        Ok(match needed_features(cycle.spec()).next() {
            Some(_) => PreFilter::All,
            None => PreFilter::Skip,
        })
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        match needed_features(cycle.spec()).all(|feature| declares(&node.node, feature)) {
            true => Ok(()),
            false => Err(Refusal::unresolvable("node(s) didn't match Pod's required features")),
        }
    }
}
