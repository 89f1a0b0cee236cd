//! What a status says of each container: as whom it runs, and how its devices are.

use std::collections::HashSet;

use serde_json::Value;

use crate::field::FieldError;
use crate::rules::at::{At, Errors};
use crate::rules::document::{by_name, items};

/// The numbers that users and groups have.
const IDS: std::ops::RangeInclusive<i64> = 0..=i32::MAX as i64;

const HEALTH: &[&str] = &["Healthy", "Unhealthy", "Unknown"];

/// The longest that is told of a device's health, in bytes.
const MESSAGE_MAX: usize = 1024;

/// The mistakes in the statuses of all containers.
pub(super) fn validate(status: &At<'_, '_>, spec: &Value, errors: &mut Errors) {
    for list in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        status.each(list).for_each(|container| user(&container, &spec["os"], errors));
    }
    for (list, containers) in
        [("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")]
    {
        let known = by_name(items(&spec[containers]));
        for container in status.each(list) {
            let own = known.get(container.at("name").text()).copied();
            for allocated in container.each("allocatedResourcesStatus") {
                resource(&allocated, own, errors);
            }
        }
    }
    for container in status.each("ephemeralContainerStatuses") {
        let allocated = container.at("allocatedResourcesStatus");
        if !allocated.is_empty() {
            errors.push(allocated.forbidden("must not be specified in container status"));
        }
    }
}

/// A pod that does not name its operating system is taken for one of Linux.
fn user(container: &At<'_, '_>, os: &Value, errors: &mut Errors) {
    let linux = container.at("user.linux");
    match os["name"].as_str() {
        _ if linux.is_absent() => {}
        Some("windows") => errors.push(linux.forbidden("cannot be set for a windows pod")),
        None | Some("linux") => {
            linux.at("uid").within(IDS, errors);
            linux.at("gid").within(IDS, errors);
            linux.each("supplementalGroups").for_each(|group| group.within(IDS, errors));
        }
        Some(_) => {}
    }
}

/// The mistakes in the status of a resource; `container` is the one that has it, if it is known.
fn resource(allocated: &At<'_, '_>, container: Option<&Value>, errors: &mut Errors) {
    let name = allocated.at("name");
    if let Some(container) = container {
        let (found, why) = if name.text().starts_with("claim:") {
            let claims = items(&container["resources"]["claims"]);
            let why = "must match one of the container's resource claims in a format \
                       'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty";
            (claims.iter().any(|claim| claim_name(claim) == name.text()), why)
        } else {
            let requested = container["resources"]["requests"].get(name.text()).is_some();
            (requested, "must match one of the container's resource requests")
        };
        if !found {
            errors.push(name.invalid_value(name.text(), why));
        }
    }
    let mut seen = HashSet::new();
    for device in allocated.each("resources") {
        health(&device, errors);
        let id = device.at("resourceID");
        if !seen.insert(id.text()) {
            errors.push(id.duplicate_value(id.text()));
        }
    }
}

fn claim_name(claim: &Value) -> String {
    let name = claim["name"].as_str().unwrap_or_default();
    match claim["request"].as_str() {
        None | Some("") => format!("claim:{name}"),
        Some(request) => format!("claim:{name}/{request}"),
    }
}

fn health(device: &At<'_, '_>, errors: &mut Errors) {
    let health = device.at("health");
    if !HEALTH.contains(&health.text()) {
        errors.push(FieldError::not_supported(health.path(), &health.text().into(), HEALTH));
    }
    let message = device.at("message");
    if message.is_set() && message.text().is_empty() {
        errors.push(message.required("must be non-empty if specified"));
    } else if message.text().len() > MESSAGE_MAX {
        errors.push(message.too_long(MESSAGE_MAX));
    }
}
