//! Containers and init containers: what all have in common, and what only some may have.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::context::{Pod, each_container};
use super::{env, host, mounts, probes, resources, restart, security};
use crate::names;
use crate::rules::at::{At, Errors, PORTS};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// The mistakes in the containers of a pod.
pub(super) fn validate(list: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    if list.list().is_empty() {
        errors.push(list.required(""));
        return;
    }
    let mut names = HashSet::new();
    for container in list.items() {
        common(&container, pod, errors);
        if !names.insert(container.at("name").text()) {
            errors.push(container.at("name").duplicate());
        }
        probes::lifecycle(&container.at("lifecycle"), pod, errors);
        probes::of_container(&container, pod, errors);
        restart::policy(&container, errors);
    }
    host::port_conflicts(list.items(), errors);
}

/// The mistakes in the init containers of a pod.
pub(super) fn validate_init(
    list: &At<'_, '_>,
    spec: &At<'_, '_>,
    pod: &Pod<'_>,
    errors: &mut Errors,
) {
    let regular = spec.value["containers"].as_array().into_iter().flatten();
    let mut names: HashSet<&str> = regular.filter_map(|c| c["name"].as_str()).collect();
    for container in list.items() {
        common(&container, pod, errors);
        restart::init_policy(&container, errors);
        let name = container.at("name");
        if names.contains(name.text()) {
            errors.push(name.duplicate());
        } else if !name.text().is_empty() {
            names.insert(name.text());
        }
        // Each is looked at alone, and so Kubernetes takes it for the first.
        let alone = list.items().take(1).map(|first| first.with(container.value));
        host::port_conflicts(alone, errors);
        if container.at("restartPolicy").text() == "Always" {
            probes::lifecycle(&container.at("lifecycle"), pod, errors);
            probes::of_container(&container, pod, errors);
        } else {
            init_only(&container, errors);
        }
    }
}

/// What an init container that ends may not have.
fn init_only(container: &At<'_, '_>, errors: &mut Errors) {
    for field in ["lifecycle"].iter().chain(&probes::PROBES) {
        let field = container.at(field);
        if field.is_set() {
            let why = "may not be set for init containers without restartPolicy=Always";
            errors.push(field.forbidden(why));
        }
    }
    for policy in container.each("resizePolicy") {
        let policy = policy.at("restartPolicy");
        if policy.text() == "RestartContainer" {
            let why = "must not be set to 'RestartContainer' for non-sidecar initContainers";
            errors.push(policy.invalid(why));
        }
    }
}

/// The mistakes that any container can have.
pub(super) fn common(container: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    container.at("name").requires(names::dns1123_label, errors);
    container.at("image").require(errors);
    let message = container.at("terminationMessagePolicy");
    message.requires_one_of(&["File", "FallbackToLogsOnError"], errors);
    ports(&container.at("ports"), errors);
    env::variables(&container.at("env"), errors);
    env::sources(&container.at("envFrom"), errors);
    mounts::validate(container, pod, errors);
    mounts::devices(container, pod, errors);
    pull_policy(&container.at("imagePullPolicy"), errors);
    resources::of_container(&container.at("resources"), &pod.claims, errors);
    restart::resize_policies(&container.at("resizePolicy"), pod, errors);
    security::of_container(&container.at("securityContext"), pod, errors);
}

/// Complains about spaces around an image. A template may leave some, and whoever makes pods of it
/// notices.
pub(super) fn trimmed_image(container: &At<'_, '_>, errors: &mut Errors) {
    let image = container.at("image");
    if image.text().trim() != image.text() {
        errors.push(image.invalid("must not have leading or trailing whitespace"));
    }
}

/// Complains about a policy for pulling images.
pub(super) fn pull_policy(policy: &At<'_, '_>, errors: &mut Errors) {
    policy.requires_one_of(&["Always", "IfNotPresent", "Never"], errors);
}

fn ports(ports: &At<'_, '_>, errors: &mut Errors) {
    let mut seen = HashSet::new();
    for port in ports.items() {
        let name = port.at("name");
        if !name.text().is_empty() {
            let before = errors.len();
            name.follows(names::port_name, errors);
            if errors.len() == before && !seen.insert(name.text()) {
                errors.push(name.duplicate());
            }
        }
        let number = port.at("containerPort");
        if number.number_or_zero() == 0 {
            errors.push(number.required(""));
        } else {
            number.within(PORTS, errors);
        }
        let host = port.at("hostPort");
        if host.number() != Some(0) {
            host.within(PORTS, errors);
        }
        port.at("protocol").requires_one_of(PROTOCOLS, errors);
    }
}

/// Files that variables are read from must lie in a volume that starts empty.
pub(super) fn file_keys(spec: &At<'_, '_>, errors: &mut Errors) {
    let mut volumes: HashMap<&str, &Value> = HashMap::new();
    for volume in spec.at("volumes").list() {
        volumes.entry(volume["name"].as_str().unwrap_or_default()).or_insert(volume);
    }
    each_container(spec, |container| {
        for variable in container.each("env") {
            let volume = variable.at("valueFrom.fileKeyRef.volumeName");
            if variable.at("valueFrom.fileKeyRef").is_absent() {
                continue;
            }
            match volumes.get(volume.text()) {
                None => errors.push(volume.not_found()),
                Some(found) if found["emptyDir"].is_null() => {
                    errors.push(volume.invalid("referenced volume must be of type emptyDir"));
                }
                Some(_) => {}
            }
        }
    });
}
