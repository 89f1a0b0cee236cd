//! What is valid in a pod or a template, but hardly meant.

use std::collections::HashSet;

use serde_json::Value;

use super::spec::each_container;
use crate::names;
use crate::rules::amounts::fraction;
use crate::rules::at::At;
use crate::rules::node_label;

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
    (
        "seccomp.security.alpha.kubernetes.io/pod",
        "non-functional in v1.27+; use the \"seccompProfile\" field instead",
    ),
];

/// The same, where the name of a container follows.
const CONTAINER_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "container.seccomp.security.alpha.kubernetes.io/",
        "non-functional in v1.27+; use the \"seccompProfile\" field instead",
    ),
    (
        "container.apparmor.security.beta.kubernetes.io/",
        "deprecated since v1.30; use the \"appArmorProfile\" field instead",
    ),
];

const VOLUMES: &[(&str, &str)] = &[
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

/// The warnings about a pod or a template; both have `metadata` and `spec`.
pub(in crate::kinds) fn of(pod: &At<'_, '_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let spec = pod.at("spec");
    annotations(pod, &mut warnings);
    nodes(&spec, &mut warnings);
    pods(&spec, &mut warnings);
    for volume in spec.each("volumes") {
        let old = VOLUMES.iter().filter(|(key, _)| volume.at(key).is_set());
        warnings.extend(old.map(|(key, why)| format!("{}: {why}", volume.at(key).path())));
    }
    repeated(&spec.at("hostAliases"), "ip", &mut warnings);
    repeated(&spec.at("imagePullSecrets"), "name", &mut warnings);
    for secret in spec.each("imagePullSecrets") {
        if secret.at("name").text().is_empty() {
            let path = secret.at("name").path();
            warnings.push(format!("{path}: invalid empty name \"\""));
        }
    }
    fraction(&spec.at("overhead"), "memory", &mut warnings);
    each_container(&spec, |container| {
        variables(&container.at("env"), &mut warnings);
        for list in ["resources.limits", "resources.requests"] {
            for name in ["memory", "ephemeral-storage"] {
                fraction(&container.at(list), name, &mut warnings);
            }
        }
    });
    ports(&spec, &mut warnings);
    let grace = spec.at("terminationGracePeriodSeconds");
    if grace.number().is_some_and(|seconds| seconds < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{}: {why}", grace.path()));
    }
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

fn annotations(pod: &At<'_, '_>, warnings: &mut Vec<String>) {
    for (key, value) in pod.at("metadata.annotations").entries() {
        let exact = ANNOTATIONS.iter().find(|(old, _)| *old == key);
        let prefixed = || CONTAINER_ANNOTATIONS.iter().find(|(old, _)| key.starts_with(old));
        if let Some((_, why)) = exact.or_else(prefixed) {
            warnings.push(format!("{}: {why}", value.path()));
        }
    }
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
        node_label::warn_of_term(&term.at("preference"), warnings);
    }
    for constraint in spec.each("topologySpreadConstraints") {
        node_label::warn_of_key(&constraint.at("topologyKey"), warnings);
        no_selector(&constraint, warnings);
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
        // A value that contains the one before it is meant.
        let extends = || variable.at("value").text().contains(&format!("$({name})"));
        if !seen.insert(name) && !extends() {
            let why = "which may be dropped when using apply";
            warnings
                .push(format!("{}: hides previous definition of {name:?}, {why}", variable.path()));
        }
    }
}

/// One port of one container, as far as it can clash with others.
struct Port {
    path: String,
    container: (i64, String),
    host: (i64, String),
}

fn ports(spec: &At<'_, '_>, warnings: &mut Vec<String>) {
    let mut count = 0;
    each_container(spec, |container| count += container.at("ports").len());
    // Clashes need two; and nobody has so many that all pairs would be a burden.
    if !(2..=256).contains(&count) {
        return;
    }
    let mut all: Vec<Port> = Vec::new();
    each_container(spec, |container| {
        for port in container.each("ports") {
            let number = |key: &str| port.at(key).number_or_zero();
            let text = |key: &str| port.at(key).text().to_owned();
            let port = Port {
                path: port.path(),
                container: (number("containerPort"), text("protocol")),
                host: (number("hostPort"), text("hostIP")),
            };
            let others = all.iter().filter(|other| other.container == port.container);
            warnings.extend(others.filter_map(|other| {
                let clash = clash(&port.host, &other.host)?;
                Some(format!("{}: {clash} port definition with {}", port.path, other.path))
            }));
            all.push(port);
        }
    });
}

fn clash(one: &(i64, String), other: &(i64, String)) -> Option<&'static str> {
    match (one.0, other.0) {
        _ if one == other => Some("duplicate"),
        (0, _) | (_, 0) => Some("overlapping"),
        (a, b) if a == b && one.1.is_empty() != other.1.is_empty() => Some("dangerously ambiguous"),
        _ => None,
    }
}
