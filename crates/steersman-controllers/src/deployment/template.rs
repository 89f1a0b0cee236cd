//! Pod templates: their hash, their equality, and the ReplicaSet that stands for one.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::ownership;

use crate::hash;

/// The label that tells the Pods of one template from those of another.
pub(super) const HASH_LABEL: &str = "pod-template-hash";
/// The most bytes in a ReplicaSet's name.
const NAME_MAX: usize = 253;

/// The oldest ReplicaSet that has the Deployment's template.
pub(super) fn find_new(
    deployment: &Deployment,
    sets: &[Arc<ReplicaSet>],
) -> Option<Arc<ReplicaSet>> {
    let template = &deployment.spec.as_ref()?.template;
    let mut same: Vec<_> = sets.iter().filter(|set| has_template(set, template)).collect();
    same.sort_by_key(|set| age(set));
    same.first().map(|set| Arc::clone(set))
}

/// What sorts ReplicaSets from old to new.
pub(super) fn age(set: &ReplicaSet) -> (Option<jiff::Timestamp>, Option<String>) {
    let created = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, set.metadata.name.clone())
}

/// Whether a ReplicaSet has this template, apart from the label with the hash.
pub(super) fn has_template(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let Some(own) = set.spec.as_ref().and_then(|spec| spec.template.as_ref()) else {
        return false;
    };
    without_hash(own) == without_hash(template)
}

/// A template without the label with the hash.
pub(super) fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let meta = template.metadata.get_or_insert_default();
    if let Some(labels) = &mut meta.labels {
        labels.remove(HASH_LABEL);
    }
    meta.labels = meta.labels.take().filter(|labels| !labels.is_empty());
    meta.creation_timestamp = None; // some clients send a null, some servers keep it
    template
}

/// The ReplicaSet for the Deployment's template.
pub(super) fn new_set(
    deployment: &Deployment,
    replicas: i32,
    annotations: BTreeMap<String, String>,
) -> ReplicaSet {
    let spec = deployment.spec.clone().unwrap_or_default();
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
    let hash = hash::of_template(&spec.template, collisions);
    let mut template = spec.template;
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(HASH_LABEL.into(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector;
    selector.match_labels.get_or_insert_default().insert(HASH_LABEL.into(), hash.clone());
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(set_name(name, &hash)),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: ownership::controller_reference(deployment).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(replicas),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    }
}

/// What the ReplicaSet of a template is called. A name has a limit, and the hash must be in it.
fn set_name(deployment: &str, hash: &str) -> String {
    let most = NAME_MAX.saturating_sub(1 + hash.len());
    let start = deployment.get(..most).unwrap_or(deployment);
    format!("{start}-{hash}")
}
