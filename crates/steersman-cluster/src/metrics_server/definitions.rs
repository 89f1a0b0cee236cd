//! What PodMetrics and NodeMetrics are, in the form of definitions: names, fields and columns are
//! those of metrics-server.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// The group of both.
pub(super) const GROUP: &str = "metrics.k8s.io";

/// The definitions of PodMetrics and of NodeMetrics.
pub(super) fn definitions() -> &'static [Value; 2] {
    static DEFINITIONS: LazyLock<[Value; 2]> = LazyLock::new(|| [pods(), nodes()]);
    &DEFINITIONS
}

fn pods() -> Value {
    let container = json!({
        "description": "ContainerMetrics sets resource usage metrics of a container.",
        "type": "object", "required": ["name", "usage"],
        "properties": {
            "name": {
                "description": "Container name corresponding to the one from pod.spec.containers.",
                "type": "string",
            },
            "usage": usage("The memory usage is the memory working set."),
        },
    });
    let containers = json!({
        "description":
            "Metrics for all containers are collected within the same time window.",
        "type": "array", "items": container,
    });
    let names = json!({
        "plural": "pods", "singular": "podmetrics", "kind": "PodMetrics",
        "listKind": "PodMetricsList",
    });
    let about = "PodMetrics sets resource usage metrics of a pod.";
    definition("Namespaced", &names, about, ("containers", containers))
}

fn nodes() -> Value {
    let names = json!({
        "plural": "nodes", "singular": "nodemetrics", "kind": "NodeMetrics",
        "listKind": "NodeMetricsList",
    });
    let about = "NodeMetrics sets resource usage metrics of a node.";
    let usage = usage("The memory usage is the memory working set.");
    definition("Cluster", &names, about, ("usage", usage))
}

fn usage(about: &str) -> Value {
    let quantity = json!({
        "anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true,
    });
    json!({"description": about, "type": "object", "additionalProperties": quantity})
}

fn definition(scope: &str, names: &Value, about: &str, (field, of_it): (&str, Value)) -> Value {
    let measured = "The following fields define time interval from which metrics were collected \
                    from the interval [Timestamp-Window, Timestamp].";
    let schema = json!({
        "description": about, "type": "object", "required": ["timestamp", "window", field],
        "properties": {
            "timestamp": {"description": measured, "type": "string", "format": "date-time"},
            "window": {"type": "string"},
            field: of_it,
        },
    });
    let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
    let columns = [
        column("cpu", ".usage.cpu"),
        column("memory", ".usage.memory"),
        column("Window", ".window"),
    ];
    let plural = names["plural"].as_str().unwrap_or_default();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{GROUP}"),
            "annotations": {
                "api-approved.kubernetes.io": "https://github.com/kubernetes/metrics",
            },
        },
        "spec": {
            "group": GROUP, "scope": scope, "names": names,
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "additionalPrinterColumns": columns,
            }],
        },
    })
}
