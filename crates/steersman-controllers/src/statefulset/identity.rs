//! Who a Pod of a StatefulSet is: its name ends with its ordinal, and its labels repeat it.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
use k8s_openapi::api::core::v1::Pod;

use crate::history::REVISION_LABEL;

/// The label with the Pod's own name, for Services that select one Pod.
pub(super) const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
/// The label with the Pod's ordinal.
pub(super) const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// The specification; what has none asks for the defaults.
pub(super) fn spec(set: &StatefulSet) -> Option<&StatefulSetSpec> {
    set.spec.as_ref()
}

/// The set's name.
pub(super) fn name_of(set: &StatefulSet) -> &str {
    set.metadata.name.as_deref().unwrap_or_default()
}

/// How many Pods the set asks for; one unless it says otherwise.
pub(super) fn desired(set: &StatefulSet) -> i32 {
    spec(set).and_then(|spec| spec.replicas).unwrap_or(1).max(0)
}

/// The first ordinal.
pub(super) fn start(set: &StatefulSet) -> i32 {
    spec(set).and_then(|spec| spec.ordinals.as_ref()?.start).unwrap_or(0)
}

/// The name of the Pod with this ordinal.
pub(super) fn pod_name(set: &StatefulSet, ordinal: i32) -> String {
    format!("{}-{ordinal}", name_of(set))
}

/// A Pod's ordinal, if it has the name of a Pod of this set.
pub(super) fn ordinal_of(set: &StatefulSet, pod: &Pod) -> Option<i32> {
    let (parent, ordinal) = pod.metadata.name.as_deref()?.rsplit_once('-')?;
    let digits = !ordinal.is_empty() && ordinal.bytes().all(|byte| byte.is_ascii_digit());
    (parent == name_of(set) && digits).then(|| ordinal.parse().ok())?
}

/// Whether the set asks for a Pod with this ordinal.
pub(super) fn is_wanted(set: &StatefulSet, ordinal: i32) -> bool {
    ordinal >= start(set) && ordinal - start(set) < desired(set)
}

/// Gives a Pod the labels that say who it is.
pub(super) fn identify(pod: &mut Pod, ordinal: i32) {
    let name = pod.metadata.name.clone().unwrap_or_default();
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME_LABEL.into(), name);
    labels.insert(POD_INDEX_LABEL.into(), ordinal.to_string());
}

/// Whether a Pod says who it is.
pub(super) fn is_identified(pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(POD_NAME_LABEL)) == pod.metadata.name.as_ref()
}

/// The name of the revision that a Pod was made of; empty if it does not say.
pub(super) fn revision_of(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(REVISION_LABEL)).map_or("", String::as_str)
}
