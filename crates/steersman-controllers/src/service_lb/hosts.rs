//! The nodes to which a load balancer would send what it gets.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;

use crate::node::{name, taints};

/// Keeps a node out of load balancers.
const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers";
/// On a node that an autoscaler is about to remove.
const TO_BE_DELETED: &str = "ToBeDeletedByClusterAutoscaler";

/// Nodes by their names, with what a cloud calls them.
pub(super) type Hosts = BTreeMap<String, String>;

/// Those of these nodes that load balancers have.
pub(super) fn hosts<N: AsRef<Node>>(nodes: &[N]) -> Hosts {
    let nodes = nodes.iter().map(AsRef::as_ref).filter(|node| serves(node));
    nodes.map(|node| (name(node).to_owned(), provider_id(node).to_owned())).collect()
}

/// Whether load balancers may have other nodes since a node has changed. One that is about to be
/// removed goes when it is: until then its connections can end.
pub(super) fn differ(old: &Node, new: &Node) -> bool {
    is_included(old) != is_included(new) || provider_id(old) != provider_id(new)
}

fn serves(node: &Node) -> bool {
    let leaves = node.metadata.deletion_timestamp.is_some()
        || taints(node).iter().any(|taint| taint.key == TO_BE_DELETED);
    !leaves && is_included(node)
}

/// Whether nobody wants to keep a node out, in words that Go reads as yes and no.
fn is_included(node: &Node) -> bool {
    let labels = node.metadata.labels.as_ref();
    let excluded = labels.and_then(|labels| labels.get(EXCLUDED)).map(String::as_str);
    matches!(excluded, None | Some("0" | "f" | "F" | "false" | "FALSE" | "False"))
}

fn provider_id(node: &Node) -> &str {
    node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref()).unwrap_or_default()
}
