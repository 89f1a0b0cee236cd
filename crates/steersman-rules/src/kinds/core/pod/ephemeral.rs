//! Ephemeral containers: put into a running pod to look around in it.

use std::collections::HashSet;

use super::containers::{common, trimmed_image};
use super::context::Pod;
use crate::rules::at::{At, Errors};

/// What an ephemeral container may not have.
const FORBIDDEN: &[&str] = &[
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

const WHY: &str = "cannot be set for an Ephemeral Container";

/// The mistakes in the ephemeral containers of a pod.
pub(super) fn validate(list: &At<'_, '_>, spec: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    if list.list().is_empty() {
        return;
    }
    let mut others = HashSet::new();
    for key in ["containers", "initContainers"] {
        let containers = spec.value[key].as_array().into_iter().flatten();
        others.extend(containers.filter_map(|container| container["name"].as_str()));
    }
    let mut names = others.clone();
    for container in list.items() {
        common(&container, pod, errors);
        trimmed_image(&container, errors);
        if !names.insert(container.at("name").text()) {
            errors.push(container.at("name").duplicate());
        }
        let target = container.at("targetContainerName");
        if !target.text().is_empty() && !others.contains(target.text()) {
            errors.push(target.not_found());
        }
        let given = FORBIDDEN.iter().filter(|field| !container.at(field).is_empty());
        errors.extend(given.map(|field| container.at(field).forbidden(WHY)));
        for mount in container.each("volumeMounts") {
            for field in ["subPath", "subPathExpr"] {
                if !mount.at(field).text().is_empty() {
                    errors.push(mount.at(field).forbidden(WHY));
                }
            }
        }
    }
}
