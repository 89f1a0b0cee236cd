//! Sets of definitions as large projects have them: deep schemas with long descriptions, hundreds of
//! rules, hundreds of definitions. They are made here, in the style of those projects.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::api::Api;
use crate::crd::{DEFINITIONS, condition};

/// What a definition may take until it is served, in a build that is not optimised and on a machine
/// that does other things.
const PATIENCE: Duration = Duration::from_secs(10);

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

/// Installs a definition, creates an instance, and says how long both took.
async fn install(api: &Api, definition: &Value) -> (Duration, Duration) {
    let begin = Instant::now();
    let created = api.post(DEFINITIONS, definition).await.ok();
    assert_eq!(condition(&created, "Established")["status"], "True");
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
    let version = text(&spec["versions"][0]["name"]);
    let path = format!("/apis/{group}/{version}/namespaces/default/{plural}");
    api.get(&path).await.ok();
    let served = begin.elapsed();
    let instance = json!({
        "apiVersion": format!("{group}/{version}"), "kind": spec["names"]["kind"],
        "metadata": {"name": "a"},
        "spec": {
            "field0": "a", "field1": 1, "field2": ["a"],
            "one": {"field0": "b"}, "many": [{"field0": "c"}, {"field0": "d", "field1": 2}],
        },
    });
    let begin = Instant::now();
    let created = api.post(&path, &instance).await.ok();
    assert_eq!(created["spec"]["field4"], "Always");
    (served, begin.elapsed())
}

async fn install_all(name: &str, definitions: &[Value]) {
    let api = Api::start().await;
    let (mut slowest, mut first) = (Duration::ZERO, Duration::ZERO);
    for definition in definitions {
        let (served, created) = install(&api, definition).await;
        slowest = slowest.max(served);
        first = first.max(created);
    }
    assert!(slowest < PATIENCE && first < PATIENCE, "{name}: {slowest:?}, {first:?}");
}

#[tokio::test]
async fn a_set_with_long_descriptions_is_installed() {
    let kinds =
        ["Certificate", "CertificateRequest", "Issuer", "ClusterIssuer", "Order", "Challenge"];
    let of = |kind: &&str| definition("certs.example.io", kind, &["v1"], &deep(20, 3));
    install_all("certificates", &kinds.iter().map(of).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_set_with_very_large_schemas_is_installed() {
    let kinds = ["Prometheus", "Alertmanager", "ServiceMonitor"];
    let of = |kind: &&str| definition("monitoring.example.com", kind, &["v1"], &deep(60, 4));
    install_all("monitoring", &kinds.iter().map(of).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_set_with_hundreds_of_rules_in_several_versions_is_installed() {
    let mut spec = deep(6, 5);
    ruled(&mut spec, &mut 200);
    let kinds = ["Gateway", "GatewayClass", "HTTPRoute", "GRPCRoute", "ReferenceGrant"];
    let of = |kind: &&str| definition("gateway.networking.k8s.io", kind, &["v1", "v1beta1"], &spec);
    install_all("gateways", &kinds.iter().map(of).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_set_of_a_hundred_small_definitions_is_installed() {
    let mut spec = deep(10, 1);
    ruled(&mut spec, &mut 12);
    let of =
        |n: usize| definition("cloud.example.org", &format!("Managed{n}"), &["v1beta1"], &spec);
    install_all("cloud", &(0..100).map(of).collect::<Vec<_>>()).await;
}

#[tokio::test]
async fn a_small_definition_is_served_in_no_time() {
    let api = Api::start().await;
    let mut times: Vec<Duration> = Vec::new();
    for n in 0..20 {
        let small = definition("small.example.org", &format!("Small{n}"), &["v1"], &deep(5, 0));
        let begin = Instant::now();
        api.post(DEFINITIONS, &small).await.ok();
        api.get(&format!("/apis/small.example.org/v1/small{n}s")).await.ok();
        times.push(begin.elapsed());
    }
    times.sort();
    eprintln!("a small definition is served within {:?}, at most {:?}", times[10], times[19]);
    assert!(times[10] < PATIENCE / 10);
}

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    text.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[tokio::test]
#[ignore = "prints what a thousand definitions take, which only a process of its own can tell"]
async fn a_thousand_definitions_at_rest() {
    let api = Api::start().await;
    let mut spec = deep(10, 1);
    ruled(&mut spec, &mut 12);
    let of =
        |n: usize| definition("cloud.example.org", &format!("Managed{n}"), &["v1beta1"], &spec);
    api.post(DEFINITIONS, &of(1000)).await.ok();
    let before = resident();
    let begin = Instant::now();
    for n in 0..1000 {
        api.post(DEFINITIONS, &of(n)).await.ok();
    }
    let each = (resident() - before) / 1000;
    let size = of(0).to_string().len();
    eprintln!("{each} bytes for each of {size} bytes of JSON, in {:?}", begin.elapsed());
}
