//! The documents hold together: every reference resolves, every resource has its operations.

mod custom;
mod protobuf;
mod published;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use steersman_rules::kinds;
use steersman_rules::resource::Verb;
use steersman_rules::schema::builtin as table;

use super::Form;
use super::catalog::Builtin;
use super::contents::Contents;
use super::facts::Facts;
use super::part::{Document, Part, inflate};

fn contents(form: Form) -> Contents {
    Contents::new(Builtin::of(form), Vec::new())
}

fn json(document: &Document<'_>) -> Value {
    serde_json::from_slice(&inflate(&document.gzip()).unwrap()).unwrap()
}

fn v3(name: &str) -> Value {
    json(&contents(Form::V3).v3(name))
}

/// Every `$ref` below a value.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(to)) = fields.get("$ref") {
                found.insert(to.clone());
            }
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn unresolved(document: &Value) -> Vec<String> {
    let mut found = BTreeSet::new();
    references(document, &mut found);
    assert!(!found.is_empty());
    let lacks = |to: &String| document.pointer(to.trim_start_matches('#')).is_none();
    found.into_iter().filter(lacks).collect()
}

#[test]
fn parts_side_by_side_are_one_gzip_stream_of_their_contents() {
    let long = "x".repeat(200_000);
    let parts = ["", "a", &long].map(|text| Part::new(text.as_bytes(), Box::default()));
    let mut document = Document::default();
    document.plain(b"[".as_slice());
    document.parts(&parts);
    document.plain(long.as_bytes());
    let expected = format!("[,a,{long}{long}");
    assert_eq!(inflate(&document.gzip()).unwrap(), expected.as_bytes());
}

#[test]
fn the_etag_changes_with_the_content_and_only_with_it() {
    let tag = |text: &str| {
        let part = Part::new(text.as_bytes(), Box::default());
        let mut document = Document::default();
        document.part(&part);
        document.etag()
    };
    assert_eq!(tag("a"), tag("a"));
    assert_ne!(tag("a"), tag("b"));
}

#[test]
fn every_reference_of_every_document_resolves() {
    // What tokens are checked with is told as text.
    let names = contents(Form::V3).names().into_iter().filter(|name| !name.contains("openid"));
    for name in names {
        assert_eq!(unresolved(&v3(&name)), Vec::<String>::new(), "{name}");
    }
    assert_eq!(unresolved(&json(&contents(Form::V2).v2())), Vec::<String>::new());
}

#[test]
fn every_type_of_the_table_is_defined_and_described_in_both_versions() {
    let v2 = json(&contents(Form::V2).v2());
    let v3: BTreeMap<String, Value> = contents(Form::V3)
        .names()
        .into_iter()
        .flat_map(|name| v3(&name)["components"]["schemas"].as_object().unwrap().clone())
        .collect();
    for name in table::types().into_keys().map(super::names::builtin) {
        for schema in [&v2["definitions"][&name], &v3[&name]] {
            assert!(schema["description"].is_string(), "{name}: {schema}");
        }
    }
}

/// The operations of a document, as (verb, group/version/kind).
fn operations(document: &Value) -> BTreeSet<(String, String)> {
    let items = document["paths"].as_object().unwrap().values();
    let operations = items.flat_map(|item| item.as_object().unwrap().values());
    let named = operations.filter(|operation| operation["x-kubernetes-action"].is_string());
    let of = |operation: &Value| {
        let gvk = &operation["x-kubernetes-group-version-kind"];
        let action = operation["x-kubernetes-action"].as_str().unwrap().to_owned();
        let part = |name: &str| gvk[name].as_str().unwrap();
        (action, format!("{}/{}/{}", part("group"), part("version"), part("kind")))
    };
    named.map(of).collect()
}

fn action(verb: Verb) -> &'static str {
    match verb {
        Verb::Create => "post",
        Verb::Update => "put",
        Verb::Patch => "patch",
        Verb::Delete => "delete",
        Verb::DeleteCollection => "deletecollection",
        Verb::Get => "get",
        Verb::List => "list",
        Verb::Watch => "watchlist",
    }
}

#[test]
fn every_verb_of_every_resource_is_an_operation_in_both_versions() {
    let v2 = operations(&json(&contents(Form::V2).v2()));
    for resource in kinds::all() {
        let v3 = operations(&v3(&super::catalog::document_name(&resource)));
        let kind = format!("{}/{}/{}", resource.group, resource.version, resource.kind);
        for verb in resource.verbs {
            let wanted = (action(*verb).to_owned(), kind.clone());
            assert!(v3.contains(&wanted) && v2.contains(&wanted), "{wanted:?}");
        }
        for sub in resource.subresources.iter().filter(|sub| !sub.is_connection()) {
            let (group, version) = sub
                .group_version
                .as_ref()
                .map_or_else(|| (resource.group.clone(), resource.version.clone()), Clone::clone);
            let kind = format!("{group}/{version}/{}", sub.kind);
            let wanted = (action(sub.verbs[0]).to_owned(), kind);
            assert!(v3.contains(&wanted) && v2.contains(&wanted), "{wanted:?}");
        }
    }
}

#[test]
fn every_kind_is_found_by_group_version_and_kind() {
    for resource in kinds::all() {
        let document = v3(&super::catalog::document_name(&resource));
        let schemas = document["components"]["schemas"].as_object().unwrap();
        for kind in [&resource.kind, &resource.list_kind] {
            if kind == &resource.list_kind && !resource.verbs.contains(&Verb::List) {
                continue;
            }
            let wanted = super::definitions::group_version_kind(&resource.api_version(), kind);
            let is = |schema: &&Value| {
                let kinds = schema["x-kubernetes-group-version-kind"].as_array();
                kinds.is_some_and(|kinds| kinds.contains(&wanted))
            };
            assert_eq!(schemas.values().filter(is).count(), 1, "{wanted}");
        }
    }
}

#[test]
fn no_two_operations_have_the_same_name() {
    let document = json(&contents(Form::V2).v2());
    let mut seen = BTreeSet::new();
    for item in document["paths"].as_object().unwrap().values() {
        for operation in
            item.as_object().unwrap().values().filter_map(|o| o["operationId"].as_str())
        {
            assert!(seen.insert(operation.to_owned()), "{operation}");
        }
    }
    for name in [
        "listCoreV1PodForAllNamespaces",
        "createCoreV1NamespacedPodEviction",
        "deleteAppsV1CollectionNamespacedDeployment",
        "patchRbacAuthorizationV1ClusterRole",
        "watchCoreV1NamespacedPodList",
        "getFlowcontrolApiserverV1APIResources",
    ] {
        assert!(seen.contains(name), "{name}");
    }
}

#[test]
fn patch_lists_the_parameters_that_kubectl_looks_for() {
    let names = |operation: &Value| -> Vec<String> {
        let parameters = operation["parameters"].as_array().unwrap().iter();
        parameters.map(|p| p["name"].as_str().unwrap_or("shared").to_owned()).collect()
    };
    let path = "/api/v1/namespaces/{namespace}/pods/{name}";
    let v3 = v3("api/v1");
    assert_eq!(
        names(&v3["paths"][path]["patch"]),
        ["dryRun", "fieldManager", "fieldValidation", "force"]
    );
    assert_eq!(names(&v3["paths"][path]["put"]), ["dryRun", "fieldManager", "fieldValidation"]);
    let v2 = json(&contents(Form::V2).v2());
    let patch = &v2["paths"][path]["patch"];
    assert_eq!(names(patch), ["dryRun", "shared", "fieldValidation", "shared", "body"]);
    assert_eq!(patch["parameters"][1]["$ref"], "#/parameters/fieldManager");
}

#[test]
fn a_container_reads_as_kubernetes_describes_it() {
    let document = v3("api/v1");
    let schemas = &document["components"]["schemas"];
    let pod = &schemas["io.k8s.api.core.v1.PodSpec"];
    let containers = &pod["properties"]["containers"];
    assert_eq!(containers["x-kubernetes-list-type"], "map");
    assert_eq!(containers["x-kubernetes-list-map-keys"][0], "name");
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["items"]["default"], serde_json::json!({}));
    assert_eq!(
        containers["items"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.api.core.v1.Container"
    );
    assert_eq!(pod["required"], serde_json::json!(["containers"]));
    let strategy = &pod["properties"]["volumes"]["x-kubernetes-patch-strategy"];
    assert_eq!(strategy, "merge,retainKeys");
    let port = &schemas["io.k8s.api.core.v1.ContainerPort"]["properties"];
    assert_eq!(port["protocol"]["enum"], serde_json::json!(["SCTP", "TCP", "UDP"]));
    assert_eq!(port["protocol"]["default"], "TCP");
    assert_eq!(port["containerPort"]["format"], "int32");
    let secret = &schemas["io.k8s.api.core.v1.Secret"]["properties"]["data"];
    assert_eq!(secret["additionalProperties"]["format"], "byte");
    let local = &schemas["io.k8s.api.core.v1.LocalObjectReference"];
    assert_eq!(local.get("required"), None, "{local}");
    assert_eq!(local["properties"]["name"]["default"], "");
    let claim = &schemas["io.k8s.api.core.v1.PersistentVolumeClaimStatus"]["properties"];
    assert!(claim["allocatedResourceStatuses"]["additionalProperties"]["enum"].is_array());
    let reference = &schemas["io.k8s.api.core.v1.ObjectReference"];
    assert_eq!(reference["x-kubernetes-map-type"], "atomic");
    let entry = &schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ManagedFieldsEntry"]["properties"];
    assert_eq!(
        entry["fieldsV1"]["allOf"][0]["$ref"],
        "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"
    );
}

#[test]
fn facts_are_of_types_and_fields_that_there_are() {
    let types = table::types();
    for place in Facts::read().places() {
        let (name, field) = place.split_once('#').unwrap_or((place, ""));
        let object = types.get(name).map(|index| table::object(*index));
        let fields = &object.unwrap_or_else(|| panic!("{place}")).fields;
        assert!(field.is_empty() || fields.iter().any(|known| known.name == field), "{place}");
    }
}

#[test]
fn unions_and_defaults_that_nobody_fills_in_are_told() {
    let schemas = v3("api/v1")["components"]["schemas"].take();
    let of = |name: &str| &schemas[format!("io.k8s.api.core.v1.{name}")];
    let union = &of("SeccompProfile")["x-kubernetes-unions"][0];
    assert_eq!(union["discriminator"], "type");
    assert_eq!(union["fields-to-discriminateBy"]["localhostProfile"], "LocalhostProfile");
    assert_eq!(of("Event")["required"], serde_json::json!(["metadata", "involvedObject"]));
    assert_eq!(of("ReplicationControllerSpec")["properties"]["replicas"]["default"], 1);
    let action = &of("ContainerRestartRule")["properties"]["action"];
    assert_eq!((&action["type"], action.get("default")), (&"string".into(), None));
    let schemas = v3("apis/authentication.k8s.io/v1")["components"]["schemas"].take();
    let extra = &schemas["io.k8s.api.authentication.v1.UserInfo"]["properties"]["extra"];
    assert_eq!(extra["additionalProperties"].get("x-kubernetes-list-type"), None);
    let v2 = json(&contents(Form::V2).v2());
    let union = &v2["definitions"]["io.k8s.api.flowcontrol.v1.Subject"]["x-kubernetes-unions"];
    assert_eq!(union[0]["discriminator"], "kind");
}

#[test]
fn a_deletion_tells_what_it_answers_with() {
    let paths = v3("api/v1")["paths"].take();
    let answer = |path: &str| {
        let content = &paths[path]["delete"]["responses"]["200"]["content"]["application/json"];
        content["schema"]["$ref"].as_str().unwrap().rsplit('.').next().unwrap().to_owned()
    };
    assert_eq!(answer("/api/v1/namespaces/{namespace}/pods/{name}"), "Pod");
    assert_eq!(answer("/api/v1/namespaces/{namespace}/pods"), "Status");
    assert_eq!(answer("/api/v1/namespaces/{namespace}/secrets/{name}"), "Status");
    assert_eq!(answer("/api/v1/namespaces/{name}"), "Status");
    let endpoints = &paths["/api/v1/namespaces/{namespace}/endpoints"]["post"];
    assert_eq!(endpoints["description"], "create Endpoints");
}

#[test]
fn version_two_has_no_defaults_and_keeps_references_beside_descriptions() {
    let document = json(&contents(Form::V2).v2());
    let pod = &document["definitions"]["io.k8s.api.core.v1.Pod"]["properties"];
    assert_eq!(pod["spec"]["$ref"], "#/definitions/io.k8s.api.core.v1.PodSpec");
    assert!(pod["spec"]["description"].is_string());
    assert_eq!(pod["spec"].get("default"), None);
    let quantity = &document["definitions"]["io.k8s.apimachinery.pkg.api.resource.Quantity"];
    assert_eq!(quantity["type"], "string");
}

#[test]
fn what_a_deletion_understands_and_lists_have_is_told_in_the_words_of_kubernetes() {
    let document = json(&contents(Form::V2).v2());
    let options = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";
    let options = &document["definitions"][options]["properties"];
    for name in ["gracePeriodSeconds", "orphanDependents", "propagationPolicy"] {
        let parameter = &document["parameters"][name];
        assert!(parameter["description"].is_string());
        assert_eq!(parameter["description"], options[name]["description"], "{name}");
    }
    let list = &document["definitions"]["io.k8s.api.core.v1.PodList"]["properties"];
    let text = list["metadata"]["description"].as_str().unwrap();
    assert!(text.starts_with("Standard list metadata. More info: https://"), "{text}");
}
