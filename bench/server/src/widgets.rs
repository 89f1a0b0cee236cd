//! Custom resources for controllers: about 1 KB of JSON each, managed fields included.
//!
//! Small objects of the author's own are what most controllers reconcile. They have no status
//! at first. Every number makes the same Widget each time.

use serde_json::{Value, json};

use crate::mark::WRITTEN;

/// How many namespaces the Widgets are in.
const NAMESPACES: usize = 100;

/// What makes the server know Widgets.
pub fn definition() -> Value {
    let written = json!({"type": "string"});
    let part = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "count": {"type": "integer"}}});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "note": {"type": "string"},
            "parts": {"type": "array", "items": part}}},
        "status": {"type": "object", "properties": {"written": written}}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.bench.steersman.dev"},
        "spec": {
            "group": "bench.steersman.dev",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets",
                      "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                          "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}],
        },
    })
}

/// The path of a Widget in the API.
pub fn path(number: usize) -> String {
    let namespace = namespace(number);
    let name = name(number);
    format!("/apis/bench.steersman.dev/v1/namespaces/{namespace}/widgets/{name}")
}

/// A Widget, as JSON.
pub fn widget(number: usize) -> Value {
    let part = |part: usize| json!({"name": format!("part-{part}"), "count": number % 7 + part});
    json!({
        "apiVersion": "bench.steersman.dev/v1",
        "kind": "Widget",
        "metadata": {
            "name": name(number),
            "namespace": namespace(number),
            "uid": format!("5d2c7b60-0000-4000-8000-{number:012}"),
            "creationTimestamp": "2026-05-01T08:00:00Z",
            "generation": 1,
            "labels": {
                "app.kubernetes.io/name": format!("app-{}", number % 300),
                "app.kubernetes.io/managed-by": "bench",
            },
            "annotations": { WRITTEN: "0" },
            "managedFields": [{
                "manager": "bench", "operation": "Update", "apiVersion": "bench.steersman.dev/v1",
                "time": "2026-05-01T08:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {
                    "f:metadata": { "f:labels": { ".": {}, "f:app.kubernetes.io/name": {},
                                                  "f:app.kubernetes.io/managed-by": {} } },
                    "f:spec": { ".": {}, "f:size": {}, "f:note": {}, "f:parts": {} },
                },
            }],
        },
        "spec": {
            "size": number,
            "note": format!("Widget {number} is assembled from the parts below and kept in stock."),
            "parts": (0..5).map(part).collect::<Vec<_>>(),
        },
    })
}

fn name(number: usize) -> String {
    format!("widget-{number:06}")
}

fn namespace(number: usize) -> String {
    format!("team-{}", number % NAMESPACES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_widget_is_about_one_kilobyte() {
        let size = widget(123).to_string().len();
        assert!((900..1300).contains(&size), "{size} bytes");
    }
}
