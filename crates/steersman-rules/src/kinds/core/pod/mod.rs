//! Pods: what they are filled with, and which rules hold when.
//!
//! [`spec`] names the rules in the order they are checked; each topic has a file. [`template`] has
//! what the kinds say that make pods: [`defaults`], [`spec`] and [`warnings`] serve those, too.

mod affinity;
mod annotations;
pub(in crate::kinds) mod claims;
mod columns;
mod container_status;
mod containers;
mod context;
pub(in crate::kinds) mod defaults;
pub(in crate::kinds) mod disabled;
mod dns;
mod env;
mod ephemeral;
mod host;
mod image;
mod label_keys;
mod mounts;
mod overlaps;
mod paths;
mod ports;
mod probes;
mod projected;
mod qos;
pub(in crate::kinds) mod resources;
mod restart;
pub(in crate::kinds) mod scheduling;
mod security;
mod spec;
mod status;
pub(in crate::kinds) mod template;
#[cfg(test)]
mod tests;
mod update;
mod volumes;
pub(in crate::kinds) mod warnings;
mod windows;

pub use qos::class as qos_class;

use serde_json::{Value, json};

use crate::kinds::kind::{self, Kind, Trait};
use crate::rules::Rules;
use crate::rules::at::{At, Errors};
use crate::rules::document::{items, set, text, within};
use crate::rules::status_addresses;

/// What is said of `Pod`.
pub(super) const KIND: Kind = Kind {
    plural: "pods",
    name: "Pod",
    short_names: &["po"],
    traits: &[
        Trait::All,
        Trait::Generation,
        Trait::Attach,
        Trait::Binding,
        Trait::EphemeralContainers,
        Trait::Eviction,
        Trait::Exec,
        Trait::Log,
        Trait::PortForward,
        Trait::Proxy,
        Trait::Resize,
        Trait::Status,
    ],
    status_metadata: kind::POD_METADATA,
    selectable_fields: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
    ],
    rules: &RULES,
    columns: columns::columns,
    ..Kind::namespaced(super::GROUP, "v1")
};

const RULES: Rules = Rules {
    default,
    create,
    keep,
    check,
    check_existing: Some(|pod, _, errors| metadata_and_spec(pod, errors)),
    change: |pod, old, errors| update::validate(old, pod.value, errors),
    prepare_status: status::prepare,
    check_status,
    warn,
    warn_status: status_addresses::of_pod,
    grace_period,
    ..Rules::NONE
};

fn default(pod: &mut Value) {
    annotations::drop_init_containers(pod);
    within(pod, "spec", |spec| {
        defaults::pod_spec(spec);
        defaults::pod_only(spec);
    });
}

fn create(pod: &mut Value) {
    within(pod, "spec", |spec| disabled::drop_of_spec(spec, &Value::Null));
    label_keys::merge(pod);
    annotations::copy_app_armor(pod);
    let mut status = json!({"phase": "Pending", "qosClass": qos::class(&pod["spec"])});
    if !items(&pod["spec"]["schedulingGates"]).is_empty() {
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        });
        set(&mut status, "conditions", vec![condition]);
    }
    set(pod, "status", status);
}

fn keep(old: &Value, new: &mut Value) {
    within(new, "spec", |spec| disabled::drop_of_spec(spec, &old["spec"]));
}

fn check(pod: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    metadata_and_spec(pod, errors);
    if old.is_null() {
        only_new(pod, errors);
    }
}

fn metadata_and_spec(pod: &At<'_, '_>, errors: &mut Errors) {
    let spec = pod.at("spec");
    annotations::validate(&pod.at("metadata.annotations"), &spec, errors);
    spec::validate(&spec, &pod.value["metadata"], errors);
    projected::tokens_need_an_account(&spec, errors);
    for list in ["containers", "initContainers"] {
        spec.each(list).for_each(|container| containers::trimmed_image(&container, errors));
    }
}

/// What a pod may come to have, but not begin with.
fn only_new(pod: &At<'_, '_>, errors: &mut Errors) {
    let spec = pod.at("spec");
    let ephemeral = spec.at("ephemeralContainers");
    if !ephemeral.list().is_empty() {
        errors.push(ephemeral.forbidden("cannot be set on create"));
    }
    let node = spec.at("nodeName");
    if !node.text().is_empty() && !spec.at("schedulingGates").list().is_empty() {
        let why = "cannot be set until all schedulingGates have been cleared";
        errors.push(node.forbidden(why));
    }
    annotations::match_fields(&pod.value["metadata"]["annotations"], &spec, errors);
}

fn check_status(pod: &At<'_, '_>, old: &Value, errors: &mut Errors) {
    annotations::update(&old["metadata"]["annotations"], pod, errors);
    status::validate(old, pod.value, errors);
}

fn warn(pod: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let pod_at = At::root(pod);
    let mut warnings = Vec::new();
    annotations::warn_of_app_armor(&pod_at, &mut warnings);
    warnings.extend(warnings::of_name(pod, "the Pod's hostname"));
    warnings.extend(warnings::of(&pod_at));
    warnings
}

/// A pod that no node runs, or that has ended, has nothing to wait for.
fn grace_period(pod: &Value, requested: Option<i64>) -> i64 {
    let ended = ["Succeeded", "Failed"].contains(&text(&pod["status"]["phase"]));
    if ended || text(&pod["spec"]["nodeName"]).is_empty() {
        return 0;
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64();
    match requested.or(own).unwrap_or(0) {
        ..0 => 1,
        seconds => seconds,
    }
}
