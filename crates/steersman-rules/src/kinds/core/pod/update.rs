//! What of a pod may change once it exists: little.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{annotations, containers, scheduling};
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, remove, same, set, within};
use crate::rules::internal::pod_diff;

/// The start of what a client is told that wants more; what it wants follows.
const FROZEN: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                      `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
                      `spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                      previously negative)";

/// The mistakes in an update of a pod.
pub(super) fn validate(old: &Value, new: &Value, errors: &mut Errors) {
    annotations::update(&old["metadata"]["annotations"], &At::root(new), errors);
    let old = At::new(&old["spec"], "spec");
    let new = At::new(&new["spec"], "spec");
    for list in ["containers", "initContainers"] {
        let old = old.at(list);
        let new = new.at(list);
        if old.len() != new.len() {
            errors.push(new.forbidden("pod updates may not add or remove containers"));
            return;
        }
        // Kubernetes looks at these again, as at tolerations, and tells twice what is wrong.
        for container in new.items() {
            container.at("image").require(errors);
            containers::trimmed_image(&container, errors);
        }
    }
    if !deadline(&old.at("activeDeadlineSeconds"), &new.at("activeDeadlineSeconds"), errors) {
        return;
    }
    tolerations(&old.at("tolerations"), &new.at("tolerations"), errors);
    gates(&old.at("schedulingGates"), &new.at("schedulingGates"), errors);
    if !old.at("schedulingGates").list().is_empty() {
        gated(&old, &new, errors);
    }
    let asked = without_what_may_change(old.value, new.value);
    if !same(old.value, &asked) {
        errors.push(new.forbidden(&format!("{FROZEN}\n{}", pod_diff(old.value, &asked))));
    }
}

/// A deadline may come, and come nearer. Whether the rest is looked at.
fn deadline(old: &At<'_, '_>, new: &At<'_, '_>, errors: &mut Errors) -> bool {
    let Some(seconds) = new.number() else {
        if old.number().is_some() {
            errors.push(new.invalid("must not update from a positive integer to nil value"));
        }
        return true;
    };
    let before = errors.len();
    new.within(0..=i64::from(i32::MAX), errors);
    if errors.len() == before && old.number().is_some_and(|old| old < seconds) {
        errors.push(new.invalid("must be less than or equal to previous value"));
    }
    errors.len() == before
}

fn tolerations(old: &At<'_, '_>, new: &At<'_, '_>, errors: &mut Errors) {
    fn identity(toleration: &Value) -> [&str; 4] {
        ["key", "operator", "value", "effect"].map(|key| toleration[key].as_str().unwrap_or(""))
    }
    let kept: HashSet<[&str; 4]> = new.list().iter().map(identity).collect();
    if old.list().iter().all(|toleration| kept.contains(&identity(toleration))) {
        scheduling::tolerations(new, errors);
    } else {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(new.forbidden(why));
    }
}

fn gates(old: &At<'_, '_>, new: &At<'_, '_>, errors: &mut Errors) {
    let known: HashSet<&str> = old.list().iter().filter_map(|old| old["name"].as_str()).collect();
    for gate in new.items() {
        let name = gate.at("name");
        if !known.contains(name.text()) {
            let why = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                name.text()
            );
            errors.push(name.forbidden(&why));
        }
    }
}

/// A pod that waits at a gate may still be told more narrowly where to run.
fn gated(old: &At<'_, '_>, new: &At<'_, '_>, errors: &mut Errors) {
    let selector = new.at("nodeSelector");
    for (key, value) in old.at("nodeSelector").entries() {
        if selector.value[key] != *value.value {
            let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            errors.push(selector.invalid(why));
        }
    }
    let path = "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
                .nodeSelectorTerms";
    let old = old.at(path);
    let new = new.at(path);
    if old.list().is_empty() {
        return;
    }
    if old.len() != new.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(new.invalid_as("[]NodeSelectorTerm", why));
        return;
    }
    for (old, new) in old.list().iter().zip(new.items()) {
        if !only_additions(old, new.value) {
            let why = "only additions are allowed (no mutations or deletions)";
            errors.push(new.invalid_as("NodeSelectorTerm", why));
        }
    }
}

/// An empty term matches nothing, and so must stay empty.
fn only_additions(old: &Value, new: &Value) -> bool {
    let lists = ["matchExpressions", "matchFields"];
    let list = |term: &Value, key: &str| term[key].as_array().cloned().unwrap_or_default();
    if lists.iter().all(|key| list(old, key).is_empty()) {
        return lists.iter().all(|key| list(new, key).is_empty());
    }
    lists.iter().all(|key| list(new, key).starts_with(&list(old, key)))
}

/// The new spec with everything as it was that may change, or that was judged already.
fn without_what_may_change(old: &Value, new: &Value) -> Value {
    let mut spec = new.clone();
    let put_back = |spec: &mut Value, key: &str, was: &Value| match was {
        Value::Null => drop(remove(spec, key)),
        was => set(spec, key, was.clone()),
    };
    for list in ["containers", "initContainers"] {
        let images = items(&old[list]).iter().map(|container| &container["image"]);
        let containers = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, image) in containers.zip(images) {
            put_back(container, "image", image);
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        put_back(&mut spec, key, &old[key]);
    }
    const GRACE: &str = "terminationGracePeriodSeconds";
    if old[GRACE].as_i64().is_some_and(|seconds| seconds < 0) && new[GRACE] == 1 {
        put_back(&mut spec, GRACE, &old[GRACE]);
    }
    if !items(&old["schedulingGates"]).is_empty() {
        put_back(&mut spec, "nodeSelector", &old["nodeSelector"]);
        within(&mut spec, "affinity", |affinity| {
            put_back(affinity, "nodeAffinity", &old["affinity"]["nodeAffinity"]);
        });
        if old["affinity"].is_null() && spec["affinity"].as_object().is_some_and(Map::is_empty) {
            remove(&mut spec, "affinity");
        }
    }
    spec
}
