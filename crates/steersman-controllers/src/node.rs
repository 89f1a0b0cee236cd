//! Facts about Nodes that several controllers ask for.

use k8s_openapi::api::core::v1::{Node, NodeCondition, Taint};

/// What keeps Pods from a node, and what they are sent away by.
pub(crate) const NO_SCHEDULE: &str = "NoSchedule";
pub(crate) const NO_EXECUTE: &str = "NoExecute";

/// The Node's name; empty if it has none.
pub(crate) fn name(node: &Node) -> &str {
    node.metadata.name.as_deref().unwrap_or_default()
}

/// A condition of a Node.
pub(crate) fn condition<'a>(node: &'a Node, type_: &str) -> Option<&'a NodeCondition> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// The status of the condition `Ready`: `True`, `False`, `Unknown`.
pub(crate) fn readiness(node: &Node) -> Option<&str> {
    condition(node, "Ready").map(|ready| ready.status.as_str())
}

/// What a Node is tainted with.
pub(crate) fn taints(node: &Node) -> &[Taint] {
    node.spec.as_ref().and_then(|spec| spec.taints.as_deref()).unwrap_or_default()
}

/// What sends Pods away that do not tolerate it.
pub(crate) fn no_execute_taints(node: &Node) -> Vec<Taint> {
    taints(node).iter().filter(|taint| taint.effect == NO_EXECUTE).cloned().collect()
}
