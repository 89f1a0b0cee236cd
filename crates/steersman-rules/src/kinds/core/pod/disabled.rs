//! Fields of features that are switched off. What a client gives there is dropped, unless the
//! object has the field already: then the feature was on once, and nothing is taken away.

use serde_json::Value;

use crate::rules::document::{each, is_empty, items, remove, within_existing};

const CONTAINERS: &[&str] = &["initContainers", "containers", "ephemeralContainers"];
const CONTAINER_STATUSES: &[&str] =
    &["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
const ALLOCATED_BY_CLAIMS: &str = "nodeAllocatableResourceClaimStatuses";

/// Drops such fields from the spec of a pod; `old` is the spec it replaces, or null.
pub(super) fn drop_of_spec(spec: &mut Value, old: &Value) {
    for source in ["clusterTrustBundle", "podCertificate"] {
        if !projects(old, source) {
            drop_projection(spec, source);
        }
    }
    if old["schedulingGroup"].is_null() {
        remove(spec, "schedulingGroup");
    }
    if !has_stop_signals(old) {
        drop_stop_signals(spec);
    }
}

/// Drops such fields from a template of pods, which lies at a pointer such as `/spec/template`;
/// `old` is the object that is replaced, or null.
pub(in crate::kinds) fn drop_of_template(object: &mut Value, template: &str, old: &Value) {
    let old = old.pointer(template).map_or(&Value::Null, |template| &template["spec"]);
    if let Some(template) = object.pointer_mut(template) {
        within_existing(template, "spec", |spec| drop_of_spec(spec, old));
    }
}

/// Drops such fields from the status of a pod.
pub(super) fn drop_of_status(status: &mut Value, old: &Value) {
    if !shows_image_volumes(old) {
        for list in CONTAINER_STATUSES {
            each(status, list, |container| {
                each(container, "volumeMounts", |mount| drop(remove(mount, "volumeStatus")));
            });
        }
    }
    if is_empty(&old[ALLOCATED_BY_CLAIMS]) {
        remove(status, ALLOCATED_BY_CLAIMS);
    }
}

fn projects(spec: &Value, source: &str) -> bool {
    let volumes = items(&spec["volumes"]).iter();
    let mut sources = volumes.flat_map(|volume| items(&volume["projected"]["sources"]));
    sources.any(|given| !given[source].is_null())
}

fn drop_projection(spec: &mut Value, source: &str) {
    each(spec, "volumes", |volume| {
        within_existing(volume, "projected", |projected| {
            each(projected, "sources", |given| drop(remove(given, source)));
        });
    });
}

fn has_stop_signals(spec: &Value) -> bool {
    let mut containers = CONTAINERS.iter().flat_map(|list| items(&spec[*list]));
    containers.any(|container| !container["lifecycle"]["stopSignal"].is_null())
}

/// A lifecycle that says no more than that goes with it.
fn drop_stop_signals(spec: &mut Value) {
    for list in CONTAINERS {
        each(spec, list, |container| {
            let mut left_empty = false;
            within_existing(container, "lifecycle", |lifecycle| {
                let dropped = remove(lifecycle, "stopSignal").is_some_and(|it| !it.is_null());
                left_empty = dropped && is_empty(lifecycle);
            });
            if left_empty {
                remove(container, "lifecycle");
            }
        });
    }
}

/// Whether a status tells which image a volume was made of.
fn shows_image_volumes(status: &Value) -> bool {
    let containers = CONTAINER_STATUSES.iter().flat_map(|list| items(&status[*list]));
    let mut mounts = containers.flat_map(|container| items(&container["volumeMounts"]));
    mounts.any(|mount| !mount["volumeStatus"].is_null())
}
