//! Which kinds are checked, and what becomes of schemas.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::core::GroupVersionKind;
use serde_json::{Value, json};

use super::plan::{is_unchecked, kinds, param_kind, served};
use super::schema::{Document, path};

fn policy(spec: &Value) -> ValidatingAdmissionPolicy {
    let policy = json!({"metadata": {"name": "p", "generation": 2}, "spec": spec});
    serde_json::from_value(policy).unwrap()
}

/// A policy with these rules: groups, versions and resources.
fn about(rules: &[[&str; 3]]) -> ValidatingAdmissionPolicy {
    let words = |text: &str| -> Vec<String> {
        text.split(' ').map(|word| word.trim_matches('-').to_owned()).collect()
    };
    let rules: Vec<Value> = rules
        .iter()
        .map(|[groups, versions, resources]| {
            json!({"apiGroups": words(groups), "apiVersions": words(versions),
                   "resources": words(resources), "operations": ["*"]})
        })
        .collect();
    policy(&json!({"matchConstraints": {"resourceRules": rules}}))
}

/// What a small server serves, and as many things as nobody checks at once.
fn discovery() -> Value {
    let resource = |plural: &str, kind: &str| {
        json!({"resource": plural, "singularResource": kind.to_lowercase(),
               "responseKind": {"group": "", "version": "", "kind": kind}})
    };
    let group = |name: &str, version: &str, resources: Vec<Value>| {
        json!({"metadata": {"name": name}, "versions": [
            {"version": version, "resources": resources},
        ]})
    };
    let things: Vec<Value> =
        (0..12).map(|n| resource(&format!("things{n:02}"), &format!("Thing{n:02}"))).collect();
    json!({"items": [
        group("", "v1", vec![resource("pods", "Pod"), resource("events", "Event")]),
        group("apps", "v1", vec![resource("deployments", "Deployment")]),
        group("events.k8s.io", "v1", vec![resource("events", "Event")]),
        group("example.com", "v1", things),
    ]})
}

#[test]
fn kinds_are_those_that_rules_name_exactly() {
    let served = served(serde_json::from_value(discovery()).unwrap());
    let named = |rules: &[[&str; 3]]| -> Vec<String> {
        let name = |kind: GroupVersionKind| format!("{}/{}", kind.group, kind.kind);
        kinds(&about(rules), &served).into_iter().map(name).collect()
    };
    assert_eq!(named(&[["apps", "v1", "deployments"]]), ["apps/Deployment"]);
    assert_eq!(named(&[["apps", "v1", "Deployment deployments/scale"]]), ["apps/Deployment"]);
    for nothing in [
        ["*", "v1", "deployments"],
        ["apps *", "v1", "deployments"],
        ["apps", "*", "deployments"],
        ["apps", "v1", "*"],
        ["apps", "v1", "deployments/*"],
        ["apps", "v2", "deployments"],
        ["other.io", "v1", "deployments"],
    ] {
        assert!(named(&[nothing]).is_empty(), "{nothing:?}");
    }
    // The core group is no name, and what has none is looked for everywhere.
    assert_eq!(named(&[["-", "v1", "events"]]), ["/Event", "events.k8s.io/Event"]);
    assert_eq!(named(&[["-", "v1", "pods"], ["apps", "v1", "deployments"]]).len(), 2);
    let many: Vec<String> = (0..12).rev().map(|n| format!("things{n:02}")).collect();
    let many = ["example.com", "v1", &*many.join(" ")];
    let found = named(&[many, ["apps", "v1", "deployments"]]);
    assert_eq!(found.len(), 10);
    assert_eq!(found.last().map(String::as_str), Some("example.com/Thing09"));
    assert_eq!(named(&[["apps", "v1", "deployments"], many]).len(), 11);
    assert!(kinds(&policy(&json!({})), &served).is_empty());
}

#[test]
fn a_policy_is_checked_once_for_each_generation() {
    let mut checked = policy(&json!({}));
    assert!(is_unchecked(&checked));
    for (generation, is_due) in [(1, true), (2, false), (3, false)] {
        checked.status = serde_json::from_value(json!({"observedGeneration": generation})).unwrap();
        assert_eq!(is_unchecked(&checked), is_due, "{generation}");
    }
}

#[test]
fn parameters_are_of_the_kind_that_a_policy_names() {
    let kind = |api_version: &str| {
        let kind = json!({"apiVersion": api_version, "kind": "Limit"});
        param_kind(&policy(&json!({ "paramKind": kind })))
    };
    assert_eq!(kind("example.com/v1"), Some(GroupVersionKind::gvk("example.com", "v1", "Limit")));
    assert_eq!(kind("v1"), Some(GroupVersionKind::gvk("", "v1", "Limit")));
    assert_eq!(kind("a/b/c"), None);
    assert_eq!(param_kind(&policy(&json!({}))), None);
}

#[test]
fn references_are_replaced_and_circles_end() {
    let refer = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let document = json!({"components": {"schemas": {
        "com.example.Tree": {
            "type": "object",
            "description": "A tree.",
            "properties": {
                "child": refer("com.example.Tree"),
                "leaves": {"type": "array", "items": {"allOf": [refer("com.example.Leaf")]}},
                "named": {"type": "object", "additionalProperties": refer("com.example.Leaf")},
            },
            "x-kubernetes-group-version-kind": [
                {"group": "example.com", "version": "v1", "kind": "Tree"},
            ],
        },
        "com.example.Leaf": {"format": "int-or-string", "oneOf": [{"type": "string"}]},
    }}});
    let document: Document = serde_json::from_str(&document.to_string()).unwrap();
    let tree = GroupVersionKind::gvk("example.com", "v1", "Tree");
    let schema = document.schema_of(&tree).unwrap();
    assert_eq!(schema["properties"]["child"], json!({"type": "object"}));
    for leaf in ["/properties/leaves/items", "/properties/named/additionalProperties"] {
        let leaf = schema.pointer(leaf).unwrap();
        assert_eq!(leaf["x-kubernetes-int-or-string"], true, "{leaf}");
    }
    assert!(document.schema_of(&GroupVersionKind::gvk("example.com", "v2", "Tree")).is_none());
    assert_eq!(path(&tree), "/openapi/v3/apis/example.com/v1");
    assert_eq!(path(&GroupVersionKind::gvk("", "v1", "Pod")), "/openapi/v3/api/v1");
}
