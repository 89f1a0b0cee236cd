//! `pods/resize`: how much CPU and memory the containers of a pod get, and nothing else.

use serde_json::{Map, Value};
use steersman_rules::field::{FieldError, NOWHERE};
use steersman_rules::rules::Rules;

use super::ephemeral_containers::MIRROR;
use crate::document::items;

const LISTS: [&str; 2] = ["containers", "initContainers"];

/// What may be resized in place.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// The old pod with the resources of the new one's containers. Containers that do not match
/// stay as the client sent them, for [`mistakes`] to name.
pub(super) fn taken(old: &Value, new: &Value) -> Value {
    let mut result = old.clone();
    for list in LISTS {
        let before = items(&old["spec"][list]);
        let after = items(&new["spec"][list]);
        let same = before.len() == after.len()
            && before.iter().zip(after).all(|(before, after)| before["name"] == after["name"]);
        let Some(spec) = result.get_mut("spec").and_then(Value::as_object_mut) else { continue };
        if !same {
            spec.insert(list.to_owned(), after.to_vec().into());
            continue;
        }
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, new) in containers.zip(after) {
            let Some(fields) = container.as_object_mut() else { continue };
            for field in ["resources", "resizePolicy"] {
                match new.get(field) {
                    Some(value) => fields.insert(field.to_owned(), value.clone()),
                    None => fields.remove(field),
                };
            }
        }
    }
    if let Some(spec) = result.get_mut("spec").and_then(Value::as_object_mut) {
        match new["spec"].get("resources") {
            Some(resources) => spec.insert("resources".to_owned(), resources.clone()),
            None => spec.remove("resources"),
        };
    }
    result
}

/// What is wrong with a resize.
pub(super) fn mistakes(rules: &Rules, old: &Value, new: &Value) -> Vec<FieldError> {
    let forbid = |field: &str, why: &str| vec![FieldError::forbidden(field, why)];
    if old["metadata"]["annotations"].get(MIRROR).is_some() {
        return forbid(NOWHERE, "static pods cannot be resized");
    }
    if old["spec"]["os"]["name"] == "windows" {
        return forbid(NOWHERE, "windows pods cannot be resized");
    }
    let mut errors = Vec::new();
    if class(rules, old) != class(rules, new) {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid("spec", &old["status"]["qosClass"], why));
    }
    if !is_supported(old) {
        errors.extend(forbid("spec", "Pod running on node without support for resize"));
    }
    errors.extend(of_pod(old, new));
    if !items(&old["status"]["nodeAllocatableResourceClaimStatuses"]).is_empty() {
        let why = "pods with node allocatable resource claims cannot be resized";
        errors.extend(forbid("spec", why));
    }
    let disordered = disorder(old, new);
    if disordered.is_empty() {
        errors.extend(of_containers(old, new));
    }
    errors.extend(disordered);
    errors
}

/// What is taken away from containers comes before what may not change, and there those that start
/// first come first.
fn of_containers(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for list in LISTS.into_iter().rev() {
        for (i, (old, new)) in pairs(list, old, new) {
            let path = format!("spec.{list}[{i}].resources");
            errors.extend(removals(&old["resources"], &new["resources"], &path));
        }
    }
    for list in LISTS {
        for (i, (old, new)) in pairs(list, old, new) {
            errors.extend(changes(old, new, &format!("spec.{list}[{i}]"), list));
        }
    }
    errors
}

/// The containers before and after, by their place.
fn pairs<'a>(
    list: &str,
    old: &'a Value,
    new: &'a Value,
) -> impl Iterator<Item = (usize, (&'a Value, &'a Value))> {
    items(&old["spec"][list]).iter().zip(items(&new["spec"][list])).enumerate()
}

/// The quality of service that a pod of this spec would be created with.
fn class(rules: &Rules, pod: &Value) -> Value {
    let mut made = pod.clone();
    rules.prepare_create(&mut made);
    made["status"]["qosClass"].take()
}

/// Complains of containers that were added, removed, renamed or moved.
fn disorder(old: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for list in LISTS {
        let before = items(&old["spec"][list]);
        let after = items(&new["spec"][list]);
        if before.len() != after.len() {
            let why = format!("{list} may not be added or removed on resize");
            errors.push(FieldError::forbidden(format!("spec.{list}"), &why));
            continue;
        }
        let moved = before.iter().zip(after).enumerate();
        errors.extend(moved.filter(|(_, (old, new))| old["name"] != new["name"]).map(|(i, _)| {
            let why = format!("{list} may not be renamed or reordered on resize");
            FieldError::forbidden(format!("spec.{list}[{i}].name"), &why)
        }));
    }
    errors
}

/// A node that tells no resources of a running container cannot change them.
fn is_supported(pod: &Value) -> bool {
    let mut statuses = items(&pod["status"]["containerStatuses"]).iter();
    let running = statuses.find(|status| !status["state"]["running"].is_null());
    running.is_none_or(|status| !status["resources"].is_null())
}

fn removals(before: &Value, after: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for part in ["requests", "limits"] {
        if removed(&before[part], &after[part]) {
            let why = format!("resource {part} cannot be removed");
            errors.push(FieldError::forbidden(format!("{path}.{part}"), &why));
        }
    }
    errors
}

fn changes(old: &Value, new: &Value, path: &str, list: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let before = &old["resources"];
    let after = &new["resources"];
    // Kubernetes leaves the claims out of the new container when it compares: one that has had any
    // is taken for changed, and nobody minds one that gets some.
    let claims = !items(&before["claims"]).is_empty();
    if claims || fixed(before) != fixed(after) || old["resizePolicy"] != new["resizePolicy"] {
        errors.push(match list {
            "containers" => {
                FieldError::forbidden("spec", "only cpu and memory resources are mutable")
            }
            _ => {
                let why =
                    "only cpu and memory resources for init or sidecar containers are mutable";
                FieldError::forbidden(path, why)
            }
        });
    }
    let restarts = |policy: &Value| policy["restartPolicy"] == "RestartContainer";
    if list == "initContainers"
        && old["restartPolicy"] != "Always"
        && old != new
        && items(&new["resizePolicy"]).iter().any(restarts)
    {
        let why = "non-sidecar init containers with a resize policy of RestartContainer cannot be \
                   resized";
        errors.push(FieldError::forbidden(path, why));
    }
    errors
}

/// Resources of the pod as a whole may grow and shrink, but not come or go.
fn of_pod(old: &Value, new: &Value) -> Vec<FieldError> {
    let before = &old["spec"]["resources"];
    let after = &new["spec"]["resources"];
    if !before.is_null() && after.is_null() {
        let why = "pod-level resources cannot be removed";
        return vec![FieldError::forbidden("spec.resources", why)];
    }
    let mut errors = Vec::new();
    for part in ["requests", "limits"] {
        if removed(&before[part], &after[part]) {
            let why = format!("pod-level resource {part} cannot be removed");
            errors.push(FieldError::forbidden(format!("spec.resources.{part}"), &why));
        }
    }
    let [had, has] = [before, after].map(|resources| items(&resources["claims"]));
    if fixed(before) != fixed(after) || had != has {
        let why = "only cpu and memory resources are mutable at pod-level";
        errors.push(FieldError::forbidden("spec", why));
    }
    errors
}

fn removed(before: &Value, after: &Value) -> bool {
    before.as_object().into_iter().flatten().any(|(name, _)| after.get(name).is_none())
}

/// The amounts that a resize must leave as they are.
fn fixed(resources: &Value) -> [Map<String, Value>; 2] {
    ["requests", "limits"].map(|part| {
        let all = resources[part].as_object().into_iter().flatten();
        let kept = all.filter(|(name, _)| !RESIZABLE.contains(&name.as_str()));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    })
}
