//! What is valid in a pod or a template, but hardly meant.

use std::collections::HashSet;

use serde_json::Value;

use super::context::each_container;
use super::{annotations, overlaps, ports};
use crate::kinds::core::persistent_volume_claim;
use crate::names;
use crate::rules::address;
use crate::rules::amounts::fraction;
use crate::rules::at::At;
use crate::rules::node_label;

/// Amounts of bytes.
const BYTES: [&str; 2] = ["memory", "ephemeral-storage"];

/// Annotations that fields have replaced.
const ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
    (
        "security.alpha.kubernetes.io/unsafe-sysctls",
        "non-functional in v1.11+; use the \"sysctls\" field instead",
    ),
];

/// Volumes that nothing serves any more: the field, how it is told, and since when.
const VOLUMES: &[(&str, &str, &str)] = &[
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// The warnings about a pod or a template; both have `metadata` and `spec`.
pub(in crate::kinds) fn of(pod: &At<'_, '_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = pod.at("spec");
    nodes(&spec, &mut warnings);
    let given = pod.at("metadata.annotations");
    for (key, why) in ANNOTATIONS {
        let annotation = given.entry(key);
        if annotation.is_set() {
            warnings.push(format!("{}: {why}", annotation.path()));
        }
    }
    volumes(&spec, &mut warnings);
    repeated(&spec.at("hostAliases"), "ip", &mut warnings);
    repeated(&spec.at("imagePullSecrets"), "name", &mut warnings);
    for secret in spec.each("imagePullSecrets") {
        if secret.at("name").text().is_empty() {
            let path = secret.at("name").path();
            warnings.push(format!("{path}: invalid empty name \"\""));
        }
    }
    for name in BYTES {
        fraction(&spec.at("overhead"), name, &mut warnings);
    }
    annotations::warn(pod, &mut warnings);
    each_container(&spec, |container| {
        annotations::warn_of_container(pod, container, &mut warnings);
        for name in BYTES {
            for list in ["resources.limits", "resources.requests"] {
                fraction(&container.at(list), name, &mut warnings);
            }
        }
        variables(&container.at("env"), &mut warnings);
    });
    ports::warn(&spec, &mut warnings);
    let grace = spec.at("terminationGracePeriodSeconds");
    if grace.number().is_some_and(|seconds| seconds < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{}: {why}", grace.path()));
    }
    pods(&spec, &mut warnings);
    addresses(&spec, &mut warnings);
    warnings
}

/// The warning about a name that will be part of hostnames.
pub(in crate::kinds) fn of_name(object: &Value, whose: &str) -> Option<String> {
    let complaints = names::dns1123_label(object["metadata"]["name"].as_str().unwrap_or_default());
    (!complaints.is_empty()).then(|| {
        format!(
            "metadata.name: this is used in {whose}, which can result in surprising behavior; a \
             DNS label is recommended: [{}]",
            complaints.join(" ")
        )
    })
}

fn volumes(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    for volume in spec.each("volumes") {
        let old = VOLUMES.iter().filter(|(key, ..)| volume.at(key).is_set());
        warnings.extend(old.map(|(_, shown, why)| format!("{}: {why}", volume.at(shown).path())));
        let claim = volume.at("ephemeral.volumeClaimTemplate.spec");
        persistent_volume_claim::warn_of_spec(&claim, warnings);
    }
    overlaps::warn(spec, warnings);
}

fn nodes(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    for (key, value) in spec.at("nodeSelector").entries() {
        if let Some(why) = node_label::deprecation(key) {
            warnings.push(format!("{}: {why}", value.path()));
        }
    }
    let affinity = spec.at("affinity.nodeAffinity");
    let required = "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
    for term in affinity.each(required) {
        node_label::warn_of_term(&term, warnings);
    }
    for term in affinity.each("preferredDuringSchedulingIgnoredDuringExecution") {
        preferred(&term.at("preference"), warnings);
    }
    for constraint in spec.each("topologySpreadConstraints") {
        node_label::warn_of_key(&constraint.at("topologyKey"), warnings);
        no_selector(&constraint, warnings);
    }
}

/// No node has a label of a value that labels cannot have; of what is required, that is a mistake.
fn preferred(term: &At<'_, '_>, warnings: &mut Vec<String>) {
    for expression in term.each("matchExpressions") {
        node_label::warn_of_key(&expression.at("key"), warnings);
        for value in expression.each("values") {
            for why in names::label_value(value.text()) {
                warnings.push(format!("{}: {} is invalid, {why}", value.path(), value.text()));
            }
        }
    }
}

fn no_selector(term: &At<'_, '_>, warnings: &mut Vec<String>) {
    let selector = term.at("labelSelector");
    if selector.is_absent() {
        let why = "a null labelSelector results in matching no pod";
        warnings.push(format!("{}: {why}", selector.path()));
    }
}

fn pods(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    for kind in ["affinity.podAffinity", "affinity.podAntiAffinity"] {
        let affinity = spec.at(kind);
        for term in affinity.each("requiredDuringSchedulingIgnoredDuringExecution") {
            no_selector(&term, warnings);
        }
        for term in affinity.each("preferredDuringSchedulingIgnoredDuringExecution") {
            no_selector(&term.at("podAffinityTerm"), warnings);
        }
    }
}

fn repeated(list: &At<'_, '_>, key: &str, warnings: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for item in list.items() {
        let value = item.at(key);
        if !seen.insert(value.text()) {
            warnings.push(format!("{}: duplicate {key} {:?}", value.path(), value.text()));
        }
    }
}

fn variables(list: &At<'_, '_>, warnings: &mut Vec<String>) {
    let mut seen = HashSet::new();
    for variable in list.items() {
        let name = variable.at("name").text();
        // A value that contains the one before it, and more, is meant.
        let extends = || {
            let before = format!("$({name})");
            let value = variable.at("value").text();
            variable.at("valueFrom").is_absent() && value != before && value.contains(&before)
        };
        if !seen.insert(name) && !extends() {
            let why = "which may be dropped when using apply";
            warnings
                .push(format!("{}: hides previous definition of {name:?}, {why}", variable.path()));
        }
    }
}

fn addresses(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let servers = spec.at("dnsConfig.nameservers");
    let told = |at: &At<'_, '_>| address::ip_warning(&at.path(), at.text());
    warnings.extend(servers.items().filter_map(|server| told(&server)));
    warnings.extend(spec.each("hostAliases").filter_map(|alias| told(&alias.at("ip"))));
}
