//! The claims of a Pod's ephemeral volumes.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

/// Whether a Pod has ephemeral volumes.
pub(super) fn concerns(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none() && volumes(pod).any(|it| it.ephemeral.is_some())
}

fn volumes(pod: &Pod) -> impl Iterator<Item = &Volume> {
    pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten())
}

/// Each ephemeral volume of a Pod with its claim.
pub(super) fn claims(pod: &Pod) -> Vec<(&str, PersistentVolumeClaim)> {
    let of_pod = pod.metadata.name.as_deref().unwrap_or_default();
    let owner = || OwnerReference {
        api_version: "v1".into(),
        kind: "Pod".into(),
        name: of_pod.to_owned(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let claim = |volume: &Volume| {
        let template = volume.ephemeral.as_ref()?.volume_claim_template.clone()?;
        let given = template.metadata.unwrap_or_default();
        let metadata = ObjectMeta {
            name: Some(format!("{of_pod}-{}", volume.name)),
            namespace: pod.metadata.namespace.clone(),
            annotations: given.annotations,
            labels: given.labels,
            owner_references: Some(vec![owner()]),
            ..ObjectMeta::default()
        };
        Some(PersistentVolumeClaim { metadata, spec: Some(template.spec), status: None })
    };
    let claims = volumes(pod).filter_map(|volume| Some((volume.name.as_str(), claim(volume)?)));
    claims.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_ephemeral_volume_has_a_claim_that_belongs_to_the_pod() {
        let spec = json!({"accessModes": ["ReadWriteOnce"]});
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": spec});
        let mut pod: Pod = serde_json::from_value(json!({
            "metadata": {"namespace": "default", "name": "web", "uid": "p"},
            "spec": {"containers": [], "volumes": [
                {"name": "a", "emptyDir": {}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}},
            ]},
        }))
        .unwrap();
        assert!(concerns(&pod));
        let owner = json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "p",
                           "controller": true, "blockOwnerDeletion": true});
        let expected: PersistentVolumeClaim = serde_json::from_value(json!({
            "metadata": {"namespace": "default", "name": "web-scratch",
                         "labels": {"app": "web"}, "ownerReferences": [owner]},
            "spec": spec,
        }))
        .unwrap();
        assert_eq!(claims(&pod), [("scratch", expected)]);
        pod.metadata.deletion_timestamp = Some(steersman::clock::now_time());
        assert!(!concerns(&pod));
    }
}
