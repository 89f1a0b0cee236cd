//! A scheduler with a plug-in of one's own: nodes have a price.
//!
//! A node says in an annotation what it costs. A Pod that says in a label what it may cost goes to no
//! node that costs more, and every Pod goes rather to a cheap one. All else is as in Kubernetes.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use steersman::Manager;
use steersman_scheduler::framework::{
    Action, ClusterEvent, Cycle, Hint, Interest, NodeInfo, Object, Plugin, Refusal, Resource,
    SCORE_MAX,
};
use steersman_scheduler::{Configuration, ConfigurationError, Scheduler};

/// The name in `spec.schedulerName` of the Pods that this scheduler cares for.
pub const NAME: &str = "thrifty";
/// What a node costs, in cents an hour.
pub const PRICE: &str = "example.com/price";
/// What a node may cost at most for a Pod.
pub const LIMIT: &str = "example.com/price-limit";

/// Compares prices.
pub struct Thrifty;

impl Plugin for Thrifty {
    fn name(&self) -> &'static str {
        "Thrifty"
    }

    /// Only another price can help a Pod for which all nodes were too dear.
    fn interests(&self) -> &[Interest] {
        const {
            &[
                Interest::new(Resource::Node, Action::ADD),
                Interest::new(Resource::Node, Action::NODE_ANNOTATION),
            ]
        }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        let Object::Node(change) = &event.object else { return Hint::Skip };
        let labels = pod.metadata.labels.as_ref();
        let limit = labels.and_then(|labels| labels.get(LIMIT)?.parse().ok());
        let price = change.new.as_ref().map(|node| price(&NodeInfo::new(Arc::clone(node))));
        Hint::from(price.zip(limit).is_none_or(|(price, limit): (i64, i64)| price <= limit))
    }

    fn filter(&self, cycle: &Cycle<'_>, node: &NodeInfo) -> Result<(), Refusal> {
        let limit = cycle.info.labels.get(LIMIT).and_then(|limit| limit.parse::<i64>().ok());
        match limit {
            Some(limit) if price(node) > limit => {
                Err(Refusal::unresolvable("node(s) cost more than the pod may"))
            }
            _ => Ok(()),
        }
    }

    fn score(&self, _: &Cycle<'_>, node: &NodeInfo) -> i64 {
        price(node)
    }

    /// The cheapest node gets the most, the dearest nothing.
    fn normalize(&self, _: &Cycle<'_>, _: &[Arc<NodeInfo>], scores: &mut [i64]) {
        let dearest = scores.iter().copied().max().unwrap_or_default().max(1);
        for score in scores {
            *score = SCORE_MAX - SCORE_MAX * *score / dearest;
        }
    }
}

/// What a node costs; what says nothing costs nothing.
fn price(node: &NodeInfo) -> i64 {
    let annotations = node.node.metadata.annotations.as_ref();
    let price = annotations.and_then(|annotations| annotations.get(PRICE)?.parse().ok());
    price.unwrap_or_default()
}

/// Adds the scheduler to a manager.
pub fn install(manager: Manager) -> Result<Manager, ConfigurationError> {
    let configuration = Configuration::default().named(NAME);
    Scheduler::configured(configuration).with(Thrifty).install(manager)
}
