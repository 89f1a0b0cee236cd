//! What is looked at: objects of three sizes, their schema, and five rules that hold for them.

use serde_json::{Value, json};

/// How many containers an object has; with them it has about 1, 10 and 100 KB.
pub(crate) const SIZES: [usize; 3] = [2, 44, 480];

/// Rules of the kinds that definitions have, all within what every rival can do.
pub(crate) const RULES: [(&str, &str); 5] = [
    (
        "three fields",
        "self.spec.minReplicas <= self.spec.replicas && self.spec.replicas <= self.spec.maxReplicas",
    ),
    ("every item's text", "self.spec.containers.all(c, c.image.startsWith('images.test/'))"),
    ("pattern of keys", "self.metadata.labels.all(key, key.matches('^[a-z]+([-./][a-z0-9]+)*$'))"),
    ("unique in pairs", "self.spec.ports.all(a, self.spec.ports.exists_one(b, b.name == a.name))"),
    (
        "filter and count",
        "size(self.spec.containers.filter(c, has(c.limits) && c.limits.cpu.endsWith('m'))) < 1000",
    ),
];

/// An object with so many containers.
pub(crate) fn object(containers: usize) -> Value {
    let labels: serde_json::Map<String, Value> =
        (0..8).map(|number| (format!("team.test/part-{number}"), json!("shop"))).collect();
    let ports: Vec<Value> = (0..8)
        .map(|number| json!({"name": format!("port-{number}"), "port": 8000 + number}))
        .collect();
    let containers: Vec<Value> = (0..containers)
        .map(|number| {
            json!({
                "name": format!("container-{number}"),
                "image": format!("images.test/shop/container-{number}:v1.2.3"),
                "command": ["serve", "--verbose", "--listen=0.0.0.0:8080"],
                "limits": {"cpu": "250m", "memory": "64Mi"},
            })
        })
        .collect();
    json!({
        "apiVersion": "example.com/v1", "kind": "Shop",
        "metadata": {"name": "shop", "labels": labels},
        "spec": {
            "replicas": 3, "minReplicas": 1, "maxReplicas": 10,
            "ports": ports, "containers": containers,
        },
    })
}

/// The schema of such objects, as a definition has it.
pub(crate) fn schema() -> Value {
    let text = json!({"type": "string", "maxLength": 100});
    let number = json!({"type": "integer"});
    json!({"type": "object", "properties": {
        "apiVersion": {"type": "string"}, "kind": {"type": "string"},
        "metadata": {"type": "object", "properties": {
            "name": {"type": "string"},
            "labels": {"type": "object", "maxProperties": 50, "additionalProperties": text},
        }},
        "spec": {"type": "object", "properties": {
            "replicas": number, "minReplicas": number, "maxReplicas": number,
            "ports": {"type": "array", "maxItems": 20, "items": {"type": "object", "properties": {
                "name": text, "port": number,
            }}},
            "containers": {"type": "array", "maxItems": 1000, "items": {
                "type": "object", "properties": {
                    "name": text, "image": text,
                    "command": {"type": "array", "maxItems": 10, "items": text},
                    "limits": {"type": "object", "properties": {"cpu": text, "memory": text}},
                },
            }},
        }},
    }})
}
