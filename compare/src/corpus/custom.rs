//! Custom resources: a definition with several versions, defaults, subresources and columns, and
//! every verb on its objects.

use serde_json::{Value, json};
use steersman_rules::resource::{Resource, Subresource};

use super::kinds::{Kind, Place};
use super::{verbs, watch};
use crate::step::{Language, Role, Scenario, Step};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub(super) fn scenarios(kinds: &[Kind], run: &str) -> Vec<Scenario> {
    let mut parts: Vec<verbs::Part> = verbs::STORED.to_vec();
    parts.extend([("watch", watch::steps as fn(&_, &_, &mut _)), ("rules", rules)]);
    let mut scenarios = Vec::new();
    for (name, steps) in parts {
        let Some(kind) = widget(kinds, run, name) else { continue };
        let (mut scenario, mut place) = kind.scenario(run, name);
        // Whoever removes the definitions of the same part leaves this one.
        place.mark.push_str("-custom");
        define(&kind, &place, &mut scenario);
        steps(&kind, &place, &mut scenario);
        scenarios.push(scenario);
    }
    scenarios
}

/// The kind, whose group is that of one scenario.
fn widget(kinds: &[Kind], run: &str, part: &str) -> Option<Kind> {
    let model = kinds.iter().find(|kind| kind.id == "deployments.apps")?;
    let group = format!("{part}-{run}.example.com");
    let subresources = model.resource.subresources.iter().map(|part| Subresource {
        kind: if part.name == "status" { "Widget".into() } else { part.kind.clone() },
        ..part.clone()
    });
    let mut resource: Resource = model.resource.clone();
    resource.subresources = subresources.collect();
    resource.group = group.into();
    resource.kind = "Widget".into();
    resource.plural = "widgets".into();
    resource.selectable_fields = vec!["spec.color".into()];
    let refuses = [
        json!({"spec": {"size": 0}}),
        json!({"spec": {"size": 11}}),
        json!({"spec": {"size": "x"}}),
        json!({"spec": {"size": 1.5}}),
        json!({"spec": {"color": "pink"}}),
        json!({"spec": {"color": null}}),
        json!({"spec": {"code": "abc"}}),
        json!({"spec": {"note": "too long a note"}}),
        json!({"spec": {"ports": [{"name": "a"}, {"name": "a"}]}}),
        json!({"spec": {"ports": [{}]}}),
        json!({"spec": {"tags": ["a", "a"]}}),
        json!({"spec": {"tags": ["a", "b", "c", "d"]}}),
        json!({"spec": {"target": true}}),
        json!({"spec": {"when": "yesterday"}}),
        json!({"spec": null}),
        json!({"spec": "x"}),
        json!({"spec": {"choice": {"a": 1, "b": 2}}}),
        json!({"spec": {"unknown": 1, "free": {"anything": [1]}}}),
    ];
    let example = json!({"spec": {"size": 3, "color": "red", "replicas": 1,
        "ports": [{"name": "http", "port": 80}]}});
    let sample = json!({"spec": {"size": 3, "color": "blue", "code": "AB12", "note": "short",
        "tags": ["a", "b"], "target": "50%", "when": "2025-01-01T00:00:00Z",
        "free": {"x": {"y": 1}}, "ports": [{"name": "a", "port": 1}, {"name": "b"}]}});
    let refuses = refuses.to_vec();
    let id = "widgets.custom".to_owned();
    Some(Kind { resource, id, example, sample: Some(sample), refuses, stays: Vec::new() })
}

/// Makes the definition and waits until the kind is served.
fn define(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let definition = definition(kind, place);
    scenario.tidy.collections.push(place.ours(DEFINITIONS));
    scenario.add(Step::post("definition", DEFINITIONS, definition).role(Role::Setup));
    scenario.add(Step::get("served", &place.collection).role(Role::Await));
    let old = place.collection.replace("/v1/", "/v1beta1/");
    scenario.add(Step::get("served-old", &old).role(Role::Await));
}

fn definition(kind: &Kind, place: &Place) -> Value {
    let group = &*kind.resource.group;
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "deprecated": !storage,
            "schema": {"openAPIV3Schema": schema()},
            "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}},
            "selectableFields": [{"jsonPath": ".spec.color"}],
            "additionalPrinterColumns": [
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
                {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1,
                    "description": "What it looks like"},
                {"name": "First", "type": "string", "jsonPath": ".spec.ports[0].name"},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            ],
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("widgets.{group}"), "labels": {"compare": place.mark}},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget",
                "listKind": "WidgetList", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [version("v1", true), version("v1beta1", false)],
        },
    })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "spec": {
                "type": "object",
                "required": ["color"],
                "properties": {
                    "size": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
                    "color": {"type": "string", "enum": ["red", "green", "blue"]},
                    "code": {"type": "string", "pattern": "^[A-Z]{2}[0-9]{2}$"},
                    "note": {"type": "string", "maxLength": 8, "nullable": true},
                    "replicas": {"type": "integer", "format": "int32"},
                    "when": {"type": "string", "format": "date-time"},
                    "target": {"x-kubernetes-int-or-string": true},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "tags": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "set",
                        "items": {"type": "string"}},
                    "ports": {"type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"], "items": {
                            "type": "object", "required": ["name"], "properties": {
                                "name": {"type": "string"},
                                "port": {"type": "integer", "default": 8080}}}},
                    "choice": {"type": "object", "properties": {
                            "a": {"type": "integer"}, "b": {"type": "integer"}},
                        "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                },
            },
            "status": {"type": "object", "properties": {
                "replicas": {"type": "integer"}, "selector": {"type": "string"},
                "phase": {"type": "string", "enum": ["Ready", "Odd"]}}},
        },
    })
}

/// The definition itself, the other version, and what becomes of objects when it changes.
fn rules(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let group = &*kind.resource.group;
    let path = format!("{DEFINITIONS}/widgets.{group}");
    scenario.add(Step::get("stored-definition", &path));
    scenario.add(Step::get("group", &format!("/apis/{group}")));
    scenario.add(Step::get("resources", &format!("/apis/{group}/v1")));
    scenario.add(Step::get("openapi", &format!("/openapi/v3/apis/{group}/v1")));
    scenario.add(Step::post("make", &place.collection, kind.object(place, "x")).role(Role::Needed));
    let old = kind.path(place, "x").replace("/v1/", "/v1beta1/");
    scenario.add(Step::get("other-version", &old));
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    scenario.add(Step::get("other-version-table", &old).accept(table));
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    scenario.add(Step::patch("other-version-patch", &old, Language::Merge, label.clone()));
    let protobuf = "application/vnd.kubernetes.protobuf";
    scenario.add(Step::get("protobuf", &old).accept(protobuf));
    let object = kind.object(place, "y");
    scenario.add(Step::post(
        "wrong-version",
        &place.collection.replace("/v1/", "/v1beta1/"),
        object,
    ));
    definitions(kind, place, scenario);
    let unserved = json!([{"op": "replace", "path": "/spec/versions/1/served", "value": false}]);
    scenario.add(Step::patch("unserve", &path, Language::Json, unserved).role(Role::Setup));
    scenario.add(Step::delete("definition-delete", &path));
    // Both take its objects away outside the request, each in its own time.
    scenario.add(Step::get("definition-after", &path).role(Role::AwaitGone));
}

/// Changes that a definition does not take.
fn definitions(kind: &Kind, place: &Place, scenario: &mut Scenario) {
    let path = format!("{DEFINITIONS}/widgets.{}", kind.resource.group);
    let version = "/spec/versions/0";
    let set = |at: &str, value: Value| json!([{"op": "add", "path": format!("{version}{at}"), "value": value}]);
    let field = "/schema/openAPIV3Schema/properties/spec/properties/size";
    let changes = [
        ("no-schema", set("/schema", json!({}))),
        ("no-type", set("/schema/openAPIV3Schema/type", json!(""))),
        ("odd-type", set(&format!("{field}/type"), json!("odd"))),
        ("odd-default", set(&format!("{field}/default"), json!("x"))),
        ("default-out-of-range", set(&format!("{field}/default"), json!(99))),
        ("unique-items", set(&format!("{field}/uniqueItems"), json!(true))),
        ("no-items", set(&format!("{field}/type"), json!("array"))),
        ("odd-pattern", set(&format!("{field}/pattern"), json!("("))),
        ("odd-column", set("/additionalPrinterColumns/0/type", json!("odd"))),
        ("odd-path", set("/additionalPrinterColumns/0/jsonPath", json!("spec"))),
        ("not-stored", set("/storage", json!(false))),
        ("odd-scale", set("/subresources/scale/specReplicasPath", json!("spec"))),
        ("odd-selectable", set("/selectableFields/0/jsonPath", json!(".spec.ports"))),
        ("odd-name", set("/name", json!("Odd"))),
    ];
    for (id, patch) in changes {
        let step = Step::patch(format!("definition-{id}"), &path, Language::Json, patch);
        scenario.add(step.dry());
    }
    let merges = [
        ("scope", json!({"spec": {"scope": "Cluster"}})),
        ("group", json!({"spec": {"group": "other.example.com"}})),
        ("plural", json!({"spec": {"names": {"plural": "others"}}})),
        ("kind", json!({"spec": {"names": {"kind": "other thing"}}})),
        ("conversion", json!({"spec": {"conversion": {"strategy": "Odd"}}})),
        ("webhook", json!({"spec": {"conversion": {"strategy": "Webhook"}}})),
        ("unknown-kept", json!({"spec": {"preserveUnknownFields": true}})),
        ("no-versions", json!({"spec": {"versions": []}})),
        ("status", json!({"status": {"storedVersions": ["v9"]}})),
    ];
    for (id, patch) in merges {
        let step = Step::patch(format!("definition-{id}"), &path, Language::Merge, patch);
        scenario.add(step.dry());
    }
    let again = definition(kind, place);
    scenario.add(Step::post("definition-again", DEFINITIONS, again));
}
