//! What the Pods of a DaemonSet look like: the template, what lets them onto every node, and the one
//! node that each is for.

use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::{
    Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Pod, PodSpec, Toleration,
};

use crate::history::REVISION_LABEL;
use crate::pod_control;

/// The annotation of a DaemonSet that counts its templates, from before there were revisions.
const GENERATION_ANNOTATION: &str = "deprecated.daemonset.template.generation";
/// The label of a Pod with that number.
const GENERATION_LABEL: &str = "pod-template-generation";
/// The field by which a Pod is bound to one node.
const NODE_NAME: &str = "metadata.name";

/// Taints that daemons live with, and what they do otherwise.
const TOLERATED: [(&str, &str); 6] = [
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
];
/// One more, for those that bring the network themselves.
const TOLERATED_ON_HOST: (&str, &str) = ("node.kubernetes.io/network-unavailable", "NoSchedule");

/// The Pod of a DaemonSet for this node.
pub(super) fn pod_for(set: &DaemonSet, node: &str, hash: &str) -> Pod {
    let template = set.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    let mut pod = pod_control::from_template(&set.metadata, template);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.extend(generation(set).map(|number| (GENERATION_LABEL.into(), number.to_string())));
    labels.insert(REVISION_LABEL.into(), hash.to_owned());
    let spec = pod.spec.get_or_insert_default();
    spec.tolerations = Some(tolerations(spec));
    pin(spec.affinity.get_or_insert_default(), node);
    pod
}

/// What the Pods of a template tolerate, with what all daemons do.
pub(super) fn tolerations(spec: &PodSpec) -> Vec<Toleration> {
    let mut all = spec.tolerations.clone().unwrap_or_default();
    let on_host = Some(TOLERATED_ON_HOST).filter(|_| spec.host_network == Some(true));
    for (key, effect) in TOLERATED.into_iter().chain(on_host) {
        let wanted = Toleration {
            key: Some(key.into()),
            operator: Some("Exists".into()),
            effect: Some(effect.into()),
            ..Toleration::default()
        };
        // One that holds for some time only would end with it.
        let same = |own: &&mut Toleration| {
            own.key == wanted.key
                && own.operator == wanted.operator
                && own.effect == wanted.effect
                && own.value.as_deref().unwrap_or_default().is_empty()
        };
        match all.iter_mut().find(same) {
            Some(own) => *own = wanted,
            None => all.push(wanted),
        }
    }
    all
}

/// Binds a Pod to one node, whatever else it asked of nodes: that has been looked at.
fn pin(affinity: &mut Affinity, node: &str) {
    let requirement = NodeSelectorRequirement {
        key: NODE_NAME.into(),
        operator: "In".into(),
        values: Some(vec![node.into()]),
    };
    let term =
        NodeSelectorTerm { match_fields: Some(vec![requirement]), ..NodeSelectorTerm::default() };
    let affinity = affinity.node_affinity.get_or_insert_default();
    affinity.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: vec![term] });
}

/// The node that a Pod is on, or is to be on.
pub(super) fn node_of(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    if let Some(node) = spec.node_name.as_deref().filter(|name| !name.is_empty()) {
        return Some(node);
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let required = affinity.required_during_scheduling_ignored_during_execution.as_ref()?;
    let terms = required.node_selector_terms.iter();
    let mut fields = terms.flat_map(|term| term.match_fields.iter().flatten());
    let name = fields.find(|field| field.key == NODE_NAME && field.operator == "In")?;
    match name.values.as_deref() {
        Some([node]) => Some(node),
        _ => None,
    }
}

/// Whether a Pod is of the present template.
pub(super) fn is_updated(set: &DaemonSet, pod: &Pod, hash: &str) -> bool {
    let label = |name: &str| pod.metadata.labels.as_ref()?.get(name).cloned();
    let counted = generation(set).map(|number| number.to_string());
    (!hash.is_empty() && label(REVISION_LABEL).as_deref() == Some(hash))
        || (counted.is_some() && label(GENERATION_LABEL) == counted)
}

fn generation(set: &DaemonSet) -> Option<i64> {
    set.metadata.annotations.as_ref()?.get(GENERATION_ANNOTATION)?.parse().ok()
}
