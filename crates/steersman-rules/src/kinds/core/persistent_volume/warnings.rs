//! What is valid in a persistent volume, but of old.

use super::MOUNT_OPTIONS;
use crate::rules::at::At;
use crate::rules::node_label;

/// Annotations that fields have replaced.
const ANNOTATIONS: &[(&str, &str)] = &[
    (
        "volume.beta.kubernetes.io/storage-class",
        "deprecated since v1.8; use \"storageClassName\" attribute instead",
    ),
    (MOUNT_OPTIONS, "deprecated since v1.31; use \"mountOptions\" attribute instead"),
];

/// Sources that nothing serves any more: the field, how it is told, and since when.
const SOURCES: &[(&str, &str, &str)] = &[
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// The warnings about a volume.
pub(super) fn of(volume: &At<'_, '_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let annotations = volume.at("metadata.annotations");
    for (key, why) in ANNOTATIONS {
        let annotation = annotations.entry(key);
        if annotation.is_set() {
            warnings.push(format!("{}: {why}", annotation.path()));
        }
    }
    let spec = volume.at("spec");
    let policy = spec.at("persistentVolumeReclaimPolicy");
    if policy.text() == "Recycle" {
        warnings.push(format!(
            "{}: The Recycle reclaim policy is deprecated. Instead, the recommended approach is \
             to use dynamic provisioning.",
            policy.path()
        ));
    }
    for term in spec.each("nodeAffinity.required.nodeSelectorTerms") {
        node_label::warn_of_term(&term, &mut warnings);
    }
    let old = SOURCES.iter().filter(|(key, ..)| spec.at(key).is_set());
    warnings.extend(old.map(|(_, shown, why)| format!("{}: {why}", spec.at(shown).path())));
    warnings
}
