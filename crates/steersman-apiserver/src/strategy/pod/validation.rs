//! What a pod may not be.

use std::collections::HashSet;

use serde_json::Value;

use crate::field::FieldError;
use crate::names;
use crate::strategy::document::{is_empty, items, join, not_found, one_of, required, set, text};
use crate::strategy::quantity;

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

/// The mistakes in a pod's spec, at `path`; also within a template.
pub(in crate::strategy) fn pod_spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = volumes(spec, path);
    if items(&spec["containers"]).is_empty() {
        errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    let mut seen = HashSet::new();
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for (i, container) in items(&spec[list]).iter().enumerate() {
            let path = format!("{path}.{list}[{i}]");
            let name = text(&container["name"]);
            if !name.is_empty() && !seen.insert(name) {
                errors.push(FieldError::duplicate(format!("{path}.name"), &container["name"]));
            }
            errors.extend(self::container(container, spec, &path));
        }
    }
    errors.extend(policies(spec, path));
    errors
}

fn policies(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors: Vec<_> = [
        ("restartPolicy", &["Always", "OnFailure", "Never"][..]),
        ("dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"][..]),
        ("preemptionPolicy", &["PreemptLowerPriority", "Never"][..]),
    ]
    .iter()
    .filter_map(|(key, allowed)| one_of(spec, path, key, allowed))
    .collect();
    for key in ["serviceAccountName", "nodeName", "runtimeClassName"] {
        let value = text(&spec[key]);
        if !value.is_empty() {
            let field = format!("{path}.{key}");
            errors.extend(names::invalid(&field, value, names::dns1123_subdomain));
        }
    }
    errors.extend(names::validate_labels(&spec["nodeSelector"], &format!("{path}.nodeSelector")));
    if spec["activeDeadlineSeconds"].as_i64().is_some_and(|seconds| seconds < 1) {
        let detail = "must be between 1 and 2147483647, inclusive";
        let field = format!("{path}.activeDeadlineSeconds");
        errors.push(FieldError::invalid(field, &spec["activeDeadlineSeconds"], detail));
    }
    errors
}

fn container(container: &Value, spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match text(&container["name"]) {
        "" => errors.push(FieldError::required(format!("{path}.name"), "")),
        name => {
            errors.extend(names::invalid(&format!("{path}.name"), name, names::dns1123_label));
        }
    }
    errors.extend(required(container, path, "image"));
    let policies = ["Always", "IfNotPresent", "Never"];
    errors.extend(one_of(container, path, "imagePullPolicy", &policies));
    let messages = ["File", "FallbackToLogsOnError"];
    errors.extend(one_of(container, path, "terminationMessagePolicy", &messages));
    errors.extend(ports(container, path));
    for (i, env) in items(&container["env"]).iter().enumerate() {
        errors.extend(required(env, &format!("{path}.env[{i}]"), "name"));
    }
    errors.extend(mounts(container, spec, path));
    errors.extend(resources(&container["resources"], &format!("{path}.resources")));
    errors.extend(probes(container, path));
    errors
}

fn ports(container: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (i, port) in items(&container["ports"]).iter().enumerate() {
        let path = format!("{path}.ports[{i}]");
        let name = text(&port["name"]);
        if !name.is_empty() {
            let field = format!("{path}.name");
            let complaints = names::invalid(&field, name, names::port_name);
            if complaints.is_empty() && !seen.insert(name) {
                errors.push(FieldError::duplicate(field, &port["name"]));
            }
            errors.extend(complaints);
        }
        match port["containerPort"].as_i64().unwrap_or(0) {
            0 => errors.push(FieldError::required(format!("{path}.containerPort"), "")),
            _ => errors.extend(port_number(port, &path, "containerPort")),
        }
        if port["hostPort"].as_i64().unwrap_or(0) != 0 {
            errors.extend(port_number(port, &path, "hostPort"));
        }
        errors.extend(one_of(port, &path, "protocol", PROTOCOLS));
    }
    errors
}

/// Complains if the field is not the number of a port.
pub(in crate::strategy) fn port_number(
    object: &Value,
    path: &str,
    key: &str,
) -> Option<FieldError> {
    let valid = object[key].as_i64().is_some_and(|port| (1..=65535).contains(&port));
    let number = if object[key].is_null() { &Value::from(0) } else { &object[key] };
    let detail = "must be between 1 and 65535, inclusive";
    (!valid).then(|| FieldError::invalid(join(path, key), number, detail))
}

/// Complains if the protocol is not one that services and pods know.
pub(in crate::strategy) fn protocol(object: &Value, path: &str) -> Option<FieldError> {
    one_of(object, path, "protocol", PROTOCOLS)
}

fn volumes(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (i, volume) in items(&spec["volumes"]).iter().enumerate() {
        let field = format!("{path}.volumes[{i}].name");
        match text(&volume["name"]) {
            "" => errors.push(FieldError::required(field, "")),
            name if !seen.insert(name) => {
                errors.push(FieldError::duplicate(field, &volume["name"]));
            }
            name => errors.extend(names::invalid(&field, name, names::dns1123_label)),
        }
    }
    errors
}

fn mounts(container: &Value, spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (i, mount) in items(&container["volumeMounts"]).iter().enumerate() {
        let path = format!("{path}.volumeMounts[{i}]");
        match text(&mount["name"]) {
            "" => errors.push(FieldError::required(format!("{path}.name"), "")),
            name if !items(&spec["volumes"]).iter().any(|volume| volume["name"] == name) => {
                errors.push(not_found(format!("{path}.name"), &mount["name"]));
            }
            _ => {}
        }
        let field = format!("{path}.mountPath");
        match text(&mount["mountPath"]) {
            "" => errors.push(FieldError::required(field, "")),
            at if !seen.insert(at) => {
                errors.push(FieldError::invalid(field, &mount["mountPath"], "must be unique"));
            }
            _ => {}
        }
    }
    errors
}

fn resources(resources: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for list in ["limits", "requests"] {
        for (name, amount) in resources[list].as_object().into_iter().flatten() {
            if quantity::parse(amount).is_some_and(|amount| amount < 0) {
                let detail = "must be greater than or equal to 0";
                let field = format!("{path}.{list}[{name}]");
                errors.push(FieldError::invalid(field, amount, detail));
            }
        }
    }
    for (name, request) in resources["requests"].as_object().into_iter().flatten() {
        let limit = &resources["limits"][name];
        if let (Some(asked), Some(most)) = (quantity::parse(request), quantity::parse(limit))
            && asked > most
        {
            let limit = limit.as_str().map_or_else(|| limit.to_string(), str::to_owned);
            let detail = format!("must be less than or equal to {name} limit of {limit}");
            errors.push(FieldError::invalid(format!("{path}.requests"), request, &detail));
        }
    }
    errors
}

fn probes(container: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = &container[key];
        let handlers = ["exec", "httpGet", "tcpSocket", "grpc"];
        if probe.is_null() || handlers.iter().any(|handler| !probe[*handler].is_null()) {
            continue;
        }
        errors.push(FieldError::required(format!("{path}.{key}"), "must specify a handler type"));
    }
    errors
}

/// The mistakes in an update of a pod's spec: little of it may change.
pub(super) fn pod_spec_update(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for list in ["containers", "initContainers"] {
        if items(&old[list]).len() != items(&new[list]).len() {
            let detail = "pod updates may not add or remove containers";
            return vec![FieldError::forbidden(format!("spec.{list}"), detail)];
        }
    }
    errors.extend(deadline_update(old, new));
    errors.extend(tolerations_update(old, new));
    errors.extend(gates_update(old, new));
    if with_frozen_parts(old, new) != without_nulls(old) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                      `spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                      previously negative)";
        errors.push(FieldError::forbidden("spec", detail));
    }
    errors
}

/// The new spec with everything that may change put back to what it was.
fn with_frozen_parts(old: &Value, new: &Value) -> Value {
    let mut frozen = without_nulls(new);
    for list in ["containers", "initContainers"] {
        for (i, container) in items(&old[list]).iter().enumerate() {
            if let Some(image) = container.get("image")
                && let Some(slot) = frozen.get_mut(list).and_then(|list| list.get_mut(i))
            {
                set(slot, "image", image.clone());
            }
        }
    }
    let mut keys = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    let grace = "terminationGracePeriodSeconds";
    if old[grace].as_i64().is_some_and(|seconds| seconds < 0) && new[grace] == 1 {
        keys.push(grace);
    }
    if !is_empty(&old["schedulingGates"]) {
        keys.extend(["nodeSelector", "affinity"]);
    }
    for key in keys {
        let Some(fields) = frozen.as_object_mut() else { continue };
        match &old[key] {
            Value::Null => drop(fields.remove(key)),
            value => drop(fields.insert(key.to_owned(), value.clone())),
        }
    }
    frozen
}

fn without_nulls(spec: &Value) -> Value {
    let mut spec = spec.clone();
    if let Some(fields) = spec.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    spec
}

fn deadline_update(old: &Value, new: &Value) -> Option<FieldError> {
    const KEY: &str = "activeDeadlineSeconds";
    let detail = match (old[KEY].as_i64(), new[KEY].as_i64()) {
        (Some(old), Some(new)) if new > old => "must be less than or equal to previous value",
        (Some(_), None) => "must not update from a positive integer to nil value",
        _ => return None,
    };
    Some(FieldError::invalid(format!("spec.{KEY}"), &new[KEY], detail))
}

fn tolerations_update(old: &Value, new: &Value) -> Option<FieldError> {
    let kept = |toleration: &Value| {
        items(&new["tolerations"]).iter().any(|candidate| {
            let same = ["key", "operator", "value", "effect"];
            same.iter().all(|key| text(&candidate[*key]) == text(&toleration[*key]))
        })
    };
    let lost = !items(&old["tolerations"]).iter().all(kept);
    let detail = "existing toleration can not be modified except its tolerationSeconds";
    lost.then(|| FieldError::forbidden("spec.tolerations", detail))
}

fn gates_update(old: &Value, new: &Value) -> Option<FieldError> {
    let known = items(&old["schedulingGates"]);
    let added = items(&new["schedulingGates"]).iter().find(|gate| !known.contains(gate))?;
    let name = text(&added["name"]);
    let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
    Some(FieldError::forbidden("spec.schedulingGates", &detail))
}
