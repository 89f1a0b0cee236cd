//! What a Pod needs that not every kubelet can do. A node says which of it its kubelet can, in
//! `status.declaredFeatures`.

use k8s_openapi::api::core::v1::{Container, Node, PodSpec};

/// A feature, and whether a Pod needs it.
type Feature = (&'static str, fn(&PodSpec) -> bool);

/// Those that decide where a Pod can run, in the order of their names.
const FEATURES: [Feature; 2] = [
    ("RestartAllContainersOnContainerExits", may_restart_all),
    ("UserNamespacesHostNetworkSupport", |spec| {
        spec.host_network == Some(true) && spec.host_users == Some(false)
    }),
];

/// What a Pod needs, by name.
pub fn needed_features(spec: &PodSpec) -> impl Iterator<Item = &'static str> {
    FEATURES.into_iter().filter(move |(_, needs)| needs(spec)).map(|(name, _)| name)
}

/// Whether a node says that it can do something.
pub fn declares(node: &Node, feature: &str) -> bool {
    let declared = node.status.as_ref().and_then(|status| status.declared_features.as_ref());
    declared.is_some_and(|all| all.iter().any(|it| it == feature))
}

/// Whether a container of a Pod can end so that all are started anew.
pub fn may_restart_all(spec: &PodSpec) -> bool {
    let may = |container: &Container| {
        let mut rules = container.restart_policy_rules.iter().flatten();
        rules.any(|rule| rule.action == "RestartAllContainers")
    };
    spec.init_containers.iter().flatten().chain(&spec.containers).any(may)
}
