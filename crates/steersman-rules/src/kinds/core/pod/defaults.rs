//! What a pod gets without asking.

use serde_json::{Value, json};

use super::{annotations, image, resources};
use crate::rules::document::{
    each, fill, fill_number, fill_text, set, text, within, within_existing,
};

/// Fills in a pod's spec, also within a template.
pub(in crate::kinds) fn pod_spec(spec: &mut Value) {
    fill_text(spec, "dnsPolicy", "ClusterFirst");
    fill_text(spec, "restartPolicy", "Always");
    fill_text(spec, "schedulerName", "default-scheduler");
    fill(spec, "securityContext", json!({}));
    fill(spec, "terminationGracePeriodSeconds", 30);
    service_account(spec);
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        each(spec, list, container);
    }
    each(spec, "volumes", volume);
}

/// Fills in what a template leaves to the pods made of it.
pub(in crate::kinds) fn pod_only(spec: &mut Value) {
    if spec["terminationGracePeriodSeconds"].as_i64().is_some_and(|seconds| seconds < 0) {
        set(spec, "terminationGracePeriodSeconds", 1);
    }
    fill(spec, "enableServiceLinks", true);
    let host_network = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        each(spec, list, |container| {
            within_existing(container, "resources", requests_from_limits);
            if host_network {
                each(container, "ports", |port| {
                    let own = port["containerPort"].as_i64().unwrap_or_default();
                    fill_number(port, "hostPort", own);
                });
            }
        });
    }
    resources::default_of_pod(spec);
}

/// Fills in a pod template.
pub(in crate::kinds) fn template(template: &mut Value) {
    annotations::drop_init_containers(template);
    within(template, "spec", pod_spec);
}

/// The old name of the service account's field stays in step with the new one.
fn service_account(spec: &mut Value) {
    let names = ["serviceAccountName", "serviceAccount"];
    let name = names.map(|key| text(&spec[key]).to_owned()).into_iter().find(|n| !n.is_empty());
    if let Some(name) = name {
        names.into_iter().for_each(|key| set(spec, key, name.as_str()));
    }
}

/// What sources of volumes are filled in with.
const SOURCES: &[(&str, &[(&str, &str)])] = &[
    ("hostPath", &[("type", "")]),
    ("iscsi", &[("iscsiInterface", "default")]),
    ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
    ("azureDisk", &[("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("kind", "Shared")]),
    ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
];

/// What is newest may change, so it is always asked for.
fn pull_policy(image: &str) -> &'static str {
    if image::is_latest(image) { "Always" } else { "IfNotPresent" }
}

fn container(container: &mut Value) {
    let policy = pull_policy(text(&container["image"]));
    fill_text(container, "imagePullPolicy", policy);
    fill_text(container, "terminationMessagePath", "/dev/termination-log");
    fill_text(container, "terminationMessagePolicy", "File");
    fill(container, "resources", json!({}));
    each(container, "ports", |port| fill_text(port, "protocol", "TCP"));
    each(container, "env", |env| {
        within_existing(env, "valueFrom", |source| {
            within_existing(source, "fieldRef", |field| fill_text(field, "apiVersion", "v1"));
        });
    });
    for probe_of in ["livenessProbe", "readinessProbe", "startupProbe"] {
        within_existing(container, probe_of, probe);
    }
    within_existing(container, "lifecycle", |lifecycle| {
        within_existing(lifecycle, "postStart", http_get);
        within_existing(lifecycle, "preStop", http_get);
    });
}

fn probe(probe: &mut Value) {
    fill_number(probe, "timeoutSeconds", 1);
    fill_number(probe, "periodSeconds", 10);
    fill_number(probe, "successThreshold", 1);
    fill_number(probe, "failureThreshold", 3);
    within_existing(probe, "grpc", |grpc| fill(grpc, "service", ""));
    http_get(probe);
}

fn http_get(handler: &mut Value) {
    within_existing(handler, "httpGet", |get| {
        fill_text(get, "path", "/");
        fill_text(get, "scheme", "HTTP");
    });
}

fn volume(volume: &mut Value) {
    let without_source = volume
        .as_object()
        .is_some_and(|fields| fields.iter().all(|(key, value)| key == "name" || value.is_null()));
    if without_source {
        set(volume, "emptyDir", json!({}));
    }
    for source in ["configMap", "secret", "downwardAPI", "projected"] {
        within_existing(volume, source, |source| fill(source, "defaultMode", 0o644));
    }
    for (source, fields) in SOURCES {
        within_existing(volume, source, |source| {
            for (field, value) in *fields {
                fill_text(source, field, value);
            }
        });
    }
    within_existing(volume, "azureDisk", |disk| fill(disk, "readOnly", false));
    within_existing(volume, "image", |image| {
        let policy = pull_policy(text(&image["reference"]));
        fill_text(image, "pullPolicy", policy);
    });
    within_existing(volume, "downwardAPI", downward);
    within_existing(volume, "projected", |projected| {
        each(projected, "sources", |source| {
            within_existing(source, "downwardAPI", downward);
            within_existing(source, "serviceAccountToken", |token| {
                fill(token, "expirationSeconds", 3600);
            });
        });
    });
    within_existing(volume, "ephemeral", |ephemeral| {
        within_existing(ephemeral, "volumeClaimTemplate", |claim| {
            within(claim, "spec", |spec| fill(spec, "volumeMode", "Filesystem"));
        });
    });
}

fn downward(source: &mut Value) {
    each(source, "items", |item| {
        within_existing(item, "fieldRef", |field| fill_text(field, "apiVersion", "v1"));
    });
}

/// A limit without a request is also the request.
fn requests_from_limits(resources: &mut Value) {
    let limits = resources["limits"].as_object().cloned().unwrap_or_default();
    if limits.is_empty() {
        return;
    }
    within(resources, "requests", |requests| {
        for (name, limit) in limits {
            fill(requests, &name, limit);
        }
    });
}
