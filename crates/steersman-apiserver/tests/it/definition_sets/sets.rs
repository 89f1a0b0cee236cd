//! Sets of definitions as large projects have them: deep schemas with long descriptions, hundreds of
//! rules, hundreds of definitions. They are made here, in the style of those projects; tests install
//! them and `cargo xtask bench definitions` measures it.

use serde_json::{Map, Value, json};

/// A few kinds with long descriptions, in the style of cert-manager.
pub(crate) fn certificates() -> Vec<Value> {
    let kinds =
        ["Certificate", "CertificateRequest", "Issuer", "ClusterIssuer", "Order", "Challenge"];
    let of = |kind: &&str| definition("certs.example.io", kind, &["v1"], &deep(20, 3));
    kinds.iter().map(of).collect()
}

/// Very large schemas, in the style of prometheus-operator.
pub(crate) fn monitoring() -> Vec<Value> {
    let kinds = ["Prometheus", "Alertmanager", "ServiceMonitor"];
    let of = |kind: &&str| definition("monitoring.example.com", kind, &["v1"], &deep(60, 4));
    kinds.iter().map(of).collect()
}

/// Two hundred rules in each of two versions, in the style of Gateway API.
pub(crate) fn gateways() -> Vec<Value> {
    let mut spec = deep(6, 5);
    ruled(&mut spec, &mut 200);
    let kinds = ["Gateway", "GatewayClass", "HTTPRoute", "GRPCRoute", "ReferenceGrant"];
    let of = |kind: &&str| definition("gateway.networking.k8s.io", kind, &["v1", "v1beta1"], &spec);
    kinds.iter().map(of).collect()
}

/// So many kinds with some rules each, in the style of a provider of Crossplane.
pub(crate) fn cloud(kinds: usize) -> Vec<Value> {
    let mut spec = deep(10, 1);
    ruled(&mut spec, &mut 12);
    let of =
        |n: usize| definition("cloud.example.org", &format!("Managed{n}"), &["v1beta1"], &spec);
    (0..kinds).map(of).collect()
}

/// So many kinds with five fields each.
pub(crate) fn small(kinds: usize) -> Vec<Value> {
    let spec = deep(5, 0);
    let of = |n: usize| definition("small.example.org", &format!("Small{n}"), &["v1"], &spec);
    (0..kinds).map(of).collect()
}

/// An object of the kind of such a definition.
pub(crate) fn instance(definition: &Value) -> Value {
    let spec = &definition["spec"];
    let version = spec["versions"][0]["name"].as_str().unwrap_or_default();
    let group = spec["group"].as_str().unwrap_or_default();
    json!({
        "apiVersion": format!("{group}/{version}"), "kind": spec["names"]["kind"],
        "metadata": {"name": "a"},
        "spec": {
            "field0": "a", "field1": 1, "field2": ["a"],
            "one": {"field0": "b"}, "many": [{"field0": "c"}, {"field0": "d", "field1": 2}],
        },
    })
}

/// Where objects of the kind of such a definition are.
pub(crate) fn collection(definition: &Value) -> String {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let version = text(&spec["versions"][0]["name"]);
    let plural = text(&spec["names"]["plural"]);
    format!("/apis/{}/{version}/namespaces/default/{plural}", text(&spec["group"]))
}

/// Some words, as generators copy them from comments.
fn description(about: &str) -> String {
    format!("{about} says how this is done. ") + &"It is described at some length. ".repeat(5)
}

/// An object with so many texts, numbers, lists and maps, and so many levels of objects like it.
fn deep(fields: usize, levels: usize) -> Value {
    let mut properties = Map::new();
    for field in 0..fields {
        let name = format!("field{field}");
        let about = description(&name);
        let of = match field % 5 {
            0 => json!({"type": "string", "maxLength": 253, "pattern": "^[a-z0-9]([-a-z0-9]*)?$"}),
            1 => json!({"type": "integer", "format": "int32", "minimum": 0, "maximum": 65535}),
            2 => json!({"type": "array", "maxItems": 16, "x-kubernetes-list-type": "atomic",
                "items": {"type": "string", "maxLength": 63}}),
            3 => json!({"type": "object", "maxProperties": 16,
                "additionalProperties": {"type": "string", "maxLength": 253}}),
            _ => json!({"type": "string", "enum": ["Always", "Never"], "default": "Always"}),
        };
        let mut of = of;
        of["description"] = about.into();
        properties.insert(name, of);
    }
    if levels > 0 {
        let below = deep(fields, levels - 1);
        properties.insert("one".to_owned(), below.clone());
        let many = json!({"type": "array", "maxItems": 4, "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["field0"], "items": below});
        properties.insert("many".to_owned(), many);
    }
    let mut object = json!({"type": "object", "description": description("object")});
    object["properties"] = properties.into();
    object["required"] = json!(["field0"]);
    object
}

/// Adds rules to an object and to the objects in it, as many as are left.
fn ruled(schema: &mut Value, left: &mut usize) {
    const RULES: [&str; 4] = [
        "!has(self.field1) || self.field1 < 65535",
        "!has(self.field2) || self.field2.all(f, f.size() <= 63)",
        "self.field0.size() <= 253",
        "!has(self.field3) || !('forbidden' in self.field3)",
    ];
    let Some(properties) = schema["properties"].as_object_mut() else { return };
    for name in ["one", "many"] {
        if let Some(below) = properties.get_mut(name) {
            ruled(if name == "many" { &mut below["items"] } else { below }, left);
        }
    }
    let count = RULES.len().min(*left);
    *left -= count;
    let rules = RULES[..count].iter().map(|rule| json!({"rule": rule, "message": "is not so"}));
    schema["x-kubernetes-validations"] = rules.collect();
}

fn definition(group: &str, kind: &str, versions: &[&str], spec: &Value) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {
        "spec": spec,
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }}});
    let versions: Vec<Value> = (versions.iter().enumerate())
        .map(|(index, name)| {
            json!({
                "name": name, "served": true, "storage": index == 0, "schema": schema,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Field", "type": "string", "jsonPath": ".spec.field0"},
                ],
            })
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": {"api-approved.kubernetes.io": "https://example.com/pull/1"},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, "categories": [group.split('.').next()]},
            "versions": versions,
        },
    })
}
