//! What a field selector may name on a built-in kind, and what it reads there.
//!
//! `metadata.name` and `metadata.namespace` work for every kind and are not repeated here.

use serde_json::Value;

/// The selectable fields of a kind, besides name and namespace.
pub(super) fn fields(group: &str, kind: &str) -> &'static [&'static str] {
    match (group, kind) {
        ("", "Pod") => &[
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
        ("", "Node") => &["spec.unschedulable"],
        ("", "ReplicationController") => &["status.replicas"],
        ("", "Namespace") => &["status.phase"],
        ("", "Secret") => &["type"],
        ("", "Service") => &["spec.clusterIP", "spec.type"],
        ("", "Event") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("events.k8s.io", "Event") => &[
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reason",
            "reportingController",
            "type",
        ],
        ("batch", "Job") => &["status.successful"],
        ("certificates.k8s.io", "CertificateSigningRequest") => &["spec.signerName"],
        ("resource.k8s.io", "ResourceSlice") => &["spec.nodeName", "spec.driver"],
        _ => &[],
    }
}

/// What a field selector compares with: the field as text, empty where it is absent.
///
/// A few names of old do not name the field they read, and numbers and switches that are absent
/// read as their zero, as they do in Kubernetes.
pub fn value(object: &Value, field: &str) -> String {
    match field {
        "spec.unschedulable" | "spec.hostNetwork" => or(at(object, field), "false"),
        "status.replicas" => or(at(object, field), "0"),
        "status.successful" => or(at(object, "status.succeeded"), "0"),
        "source" => or(
            at(object, "source.component"),
            object["reportingComponent"].as_str().unwrap_or_default(),
        ),
        "status.podIPs" => {
            let ips = object["status"]["podIPs"].as_array().map_or(&[][..], Vec::as_slice);
            ips.iter().filter_map(|ip| ip["ip"].as_str()).collect::<Vec<_>>().join(",")
        }
        _ => at(object, field),
    }
}

fn at(object: &Value, path: &str) -> String {
    match path.split('.').fold(object, |value, key| &value[key]) {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn or(found: String, fallback: &str) -> String {
    if found.is_empty() { fallback.to_owned() } else { found }
}
