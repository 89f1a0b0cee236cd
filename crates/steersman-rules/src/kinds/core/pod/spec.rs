//! The rules of a pod's spec, also within a template, in the order Kubernetes checks them.

use serde_json::Value;

use super::context::Pod;
use super::{affinity, claims, containers, dns, ephemeral, host, resources, scheduling};
use super::{security, volumes, windows};
use crate::names;
use crate::rules::at::{At, Errors};

/// Adds the mistakes in a pod's spec. `metadata` is the pod's own; null for a template.
pub(in crate::kinds) fn validate(spec: &At<'_, '_>, metadata: &Value, errors: &mut Errors) {
    let grace = spec.at("terminationGracePeriodSeconds");
    if grace.is_absent() {
        errors.push(grace.required(""));
    }
    let pod = Pod {
        is_pod: metadata.is_object(),
        volumes: volumes::validate(&spec.at("volumes"), metadata, errors),
        claims: claims::names(&spec.at("resourceClaims")),
        grace: grace.number(),
        os: spec.at("os.name").text(),
        restart_policy: spec.at("restartPolicy").text(),
        host_users: spec.at("hostUsers").value != &Value::Bool(false),
    };
    claims::pod_claims(&spec.at("resourceClaims"), metadata, errors);
    containers::validate(&spec.at("containers"), &pod, errors);
    containers::validate_init(&spec.at("initContainers"), spec, &pod, errors);
    ephemeral::validate(&spec.at("ephemeralContainers"), spec, &pod, errors);
    resources::of_pod(spec, &pod, errors);
    host::ports(spec, &pod, errors);
    policies(spec, errors);
    spec.at("nodeSelector").labels(errors);
    security::of_pod(&spec.at("securityContext"), spec, errors);
    affinity::validate(&spec.at("affinity"), errors);
    dns::config(&spec.at("dnsConfig"), spec.at("dnsPolicy").text(), errors);
    scheduling::gates(spec, errors);
    scheduling::spread(&spec.at("topologySpreadConstraints"), errors);
    windows::host_process(spec, errors);
    host::users(spec, errors);
    dns::hostname_override(spec, errors);
    names_and_numbers(spec, errors);
    windows::operating_system(spec, errors);
    containers::file_keys(spec, errors);
}

fn policies(spec: &At<'_, '_>, errors: &mut Errors) {
    const RESTART: &[&str] = &["Always", "OnFailure", "Never"];
    const DNS: &[&str] = &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    spec.at("restartPolicy").requires_one_of(RESTART, errors);
    spec.at("dnsPolicy").requires_one_of(DNS, errors);
}

fn names_and_numbers(spec: &At<'_, '_>, errors: &mut Errors) {
    spec.at("serviceAccountName").may_follow(names::dns1123_subdomain, errors);
    spec.at("nodeName").may_follow(names::dns1123_subdomain, errors);
    spec.at("activeDeadlineSeconds").within(1..=i64::from(i32::MAX), errors);
    spec.at("hostname").may_follow(names::dns1123_label, errors);
    spec.at("subdomain").may_follow(names::dns1123_label, errors);
    scheduling::tolerations(&spec.at("tolerations"), errors);
    dns::host_aliases(&spec.at("hostAliases"), errors);
    spec.at("priorityClassName").may_follow(names::dns1123_subdomain, errors);
    let runtime = spec.at("runtimeClassName");
    if runtime.is_set() {
        runtime.follows(names::dns1123_subdomain, errors);
    }
    let preemption = spec.at("preemptionPolicy");
    if preemption.is_set() {
        preemption.requires_one_of(&["PreemptLowerPriority", "Never"], errors);
    }
    resources::overhead(&spec.at("overhead"), errors);
}
