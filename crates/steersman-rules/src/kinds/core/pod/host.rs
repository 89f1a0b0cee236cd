//! What a pod shares with its host: ports, namespaces, users.

use std::collections::HashSet;

use serde_json::Value;

use super::context::{Pod, each_container};
use crate::rules::at::{At, Errors};

/// On the host's network a port of the host is the port of the container.
pub(super) fn ports(spec: &At<'_, '_>, pod: &Pod<'_>, errors: &mut Errors) {
    if !spec.at("hostNetwork").is_true() {
        return;
    }
    for container in spec.each("containers") {
        for port in container.each("ports") {
            let host = port.at("hostPort");
            let number = host.number_or_zero();
            let own = port.at("containerPort").number();
            if (pod.is_pod || number != 0) && number != own.unwrap_or(0) {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(host.invalid_value(number, why));
            }
        }
    }
}

/// No two containers may have the same port of the host.
pub(super) fn port_conflicts<'v: 'p, 'p>(
    containers: impl Iterator<Item = At<'v, 'p>>,
    errors: &mut Errors,
) {
    let mut seen = HashSet::new();
    for container in containers {
        for port in container.each("ports") {
            let number = port.at("hostPort").number_or_zero();
            let protocol = port.at("protocol").text();
            let address = port.at("hostIP").text();
            if number != 0 && !seen.insert((protocol, address, number)) {
                let shown = format!("{protocol}/{address}/{number}");
                errors.push(port.at("hostPort").duplicate_value(shown));
            }
        }
    }
}

/// A pod sees the processes of its host or of all its containers, not both. To Kubernetes that is a
/// matter of its security context.
pub(super) fn process_namespace(spec: &At<'_, '_>, errors: &mut Errors) {
    let share = spec.at("shareProcessNamespace");
    if share.is_true() && spec.at("hostPID").is_true() {
        let why = "ShareProcessNamespace and HostPID cannot both be enabled";
        let shown = spec.named("securityContext.shareProcessNamespace").with(share.value);
        errors.push(shown.invalid(why));
    }
}

/// Users of its own keep a pod off the host's namespaces.
pub(super) fn users(spec: &At<'_, '_>, errors: &mut Errors) {
    const WHY: &str = "when `hostUsers` is false";
    if spec.at("hostUsers").value != &Value::Bool(false) {
        return;
    }
    for (field, shown) in
        [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")]
    {
        if spec.at(field).is_true() {
            errors.push(spec.named(shown).forbidden(WHY));
        }
    }
    each_container(spec, |container| {
        let devices = container.at("volumeDevices");
        if !devices.list().is_empty() {
            errors.push(devices.forbidden(WHY));
        }
    });
}
