//! Nodes: each writes only its own, and not what decides which Pods come to it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::super::fields::items;
use super::Asked;
use crate::admission_registration::Operation;
use crate::status::Result;

/// Labels that a node may set although Kubernetes has them.
const LABELS: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

/// Where it may set whatever label it likes.
const PREFIXES: [&str; 2] = ["kubelet.kubernetes.io", "node.kubernetes.io"];

/// Where it may set none.
const RESTRICTED: &str = "node-restriction.kubernetes.io";

pub(super) fn check(asked: &Asked<'_>) -> Result<()> {
    let Asked { node, new, old, .. } = *asked;
    let name = asked.name();
    if name != node {
        let why = format!("node {node:?} is not allowed to modify node {name:?}");
        return Err(asked.refusal(&why));
    }
    let forbidden = forbidden(&new["metadata"]["labels"], &old["metadata"]["labels"]);
    let source = &new["spec"]["configSource"];
    let why = match asked.operation() {
        Operation::Delete => return Ok(()),
        Operation::Create if !source.is_null() => {
            format!("node {node:?} is not allowed to create pods with a non-nil configSource")
        }
        Operation::Create if !forbidden.is_empty() => {
            format!("node {node:?} is not allowed to set the following labels: {forbidden}")
        }
        Operation::Create => return Ok(()),
        Operation::Update if !source.is_null() && *source != old["spec"]["configSource"] => {
            format!(
                "node {node:?} is not allowed to update configSource to a new non-nil configSource"
            )
        }
        Operation::Update if items(&new["spec"]["taints"]) != items(&old["spec"]["taints"]) => {
            format!("node {node:?} is not allowed to modify taints")
        }
        Operation::Update if owners(new) != owners(old) => {
            format!("node {node:?} is not allowed to modify ownerReferences")
        }
        Operation::Update if !forbidden.is_empty() => {
            format!("is not allowed to modify labels: {forbidden}")
        }
        Operation::Update | Operation::Connect => return Ok(()),
    };
    Err(asked.refusal(&why))
}

fn owners(object: &Value) -> &[Value] {
    items(&object["metadata"]["ownerReferences"])
}

/// The labels that differ and that a node may not touch, as they are told.
fn forbidden(new: &Value, old: &Value) -> String {
    if new == old {
        return String::new();
    }
    let labels = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (new, old): (Map<_, _>, Map<_, _>) = (labels(new), labels(old));
    let keys: BTreeSet<&String> = new.keys().chain(old.keys()).collect();
    let touched = keys.into_iter().filter(|key| new.get(*key) != old.get(*key));
    let forbidden: Vec<&str> =
        touched.map(String::as_str).filter(|key| is_forbidden(key)).collect();
    forbidden.join(", ")
}

fn is_forbidden(key: &str) -> bool {
    let prefix = key.split_once('/').map_or("", |(prefix, _)| prefix);
    let is_in = |domain: &str| {
        prefix.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    let is_kubernetes = is_in("kubernetes.io") || is_in("k8s.io");
    let is_its = LABELS.contains(&key) || PREFIXES.iter().any(|domain| is_in(domain));
    is_in(RESTRICTED) || (is_kubernetes && !is_its)
}

#[cfg(test)]
mod tests {
    use super::is_forbidden;

    #[test]
    fn a_node_sets_labels_of_its_own_and_of_nobody_in_particular() {
        for key in [
            "foo",
            "example.com/foo",
            "kubernetes.io/hostname",
            "topology.kubernetes.io/zone",
            "node.kubernetes.io/instance-type",
            "node.kubernetes.io/foo",
            "foo.kubelet.kubernetes.io/bar",
            "notkubernetes.io/foo",
        ] {
            assert!(!is_forbidden(key), "{key}");
        }
        for key in [
            "node-restriction.kubernetes.io/foo",
            "foo.node-restriction.kubernetes.io/foo",
            "kubernetes.io/foo",
            "k8s.io/foo",
            "other.k8s.io/foo",
            "node-role.kubernetes.io/control-plane",
            "notnode.kubernetes.io/foo",
        ] {
            assert!(is_forbidden(key), "{key}");
        }
    }
}
