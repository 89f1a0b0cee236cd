//! Every kind, with every field set, there and back.

use serde_json::{Value, json};

use super::super::{Format, ListFields, Sealed, decode, encode, table};
use super::generate::{document, kinds};

/// A stored document as a body.
fn encode_stored(document: &Value, resource_version: &str) -> Vec<u8> {
    let sealed = Sealed::of(document).unwrap();
    let format = Format::of(sealed.api_version, sealed.kind).unwrap();
    let json = document.to_string();
    let write = |out: &mut Vec<u8>| format.write(out, json.as_bytes(), Some(resource_version));
    sealed.bytes(0, write).unwrap().to_vec()
}

/// The paths at which two documents differ.
fn differences(path: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let below = format!("{path}.{key}");
                differences(
                    &below,
                    a.get(key).unwrap_or(&json!(null)),
                    b.get(key).unwrap_or(&json!(null)),
                    found,
                );
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{index}]"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(format!("{path}: {a} became {b}")),
    }
}

#[test]
fn every_kind_with_every_field_comes_back_as_it_was() {
    for seed in 0..6 {
        for (api_version, kind) in kinds() {
            let document = document(seed, api_version, kind);
            let read = decode(&encode(&document).unwrap()).unwrap();
            let mut found = Vec::new();
            differences("", &document, &read, &mut found);
            assert_eq!(found, Vec::<String>::new(), "seed {seed}: {api_version} {kind}");
        }
    }
}

#[test]
fn a_generated_document_leaves_no_field_out() {
    let unset = |api_version: &str, kind: &str| {
        let document = document(1, api_version, kind);
        let message = table::kind(api_version, kind).unwrap();
        message.slots().filter(|slot| document.get(slot.name).is_none()).count()
    };
    for (api_version, kind) in kinds() {
        assert_eq!(unset(api_version, kind), 0, "{api_version} {kind}");
    }
    let pod = document(1, "v1", "Pod");
    let set = |pointer: &str| pod.pointer(pointer).is_some_and(|value| !value.is_null());
    assert!(set("/spec/containers/0/livenessProbe/httpGet/httpHeaders/0/name"));
    assert!(set("/spec/volumes/0/projected/sources/0/configMap/items/0/mode"));
    assert!(set(
        "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/topologyKey"
    ));
}

#[test]
fn a_stored_object_gets_its_version_in_its_metadata() {
    for (api_version, kind) in kinds() {
        let mut document = document(3, api_version, kind);
        let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) else {
            continue;
        };
        metadata.remove("resourceVersion");
        let read = decode(&encode_stored(&document, "42")).unwrap();
        document["metadata"]["resourceVersion"] = json!("42");
        assert_eq!(read, document, "{api_version} {kind}");
    }
}

#[test]
fn metadata_alone_is_written_of_any_kind() {
    let mut custom = document(4, "v1", "ConfigMap");
    custom["kind"] = json!("Widget");
    custom["metadata"]["resourceVersion"] = json!(null);
    let sealed = Sealed { api_version: "meta.k8s.io/v1", kind: "PartialObjectMetadata" };
    let json = custom.to_string();
    let format = Format::metadata().unwrap();
    let bytes = sealed.bytes(0, |out| format.write(out, json.as_bytes(), Some("7"))).unwrap();
    custom["metadata"]["resourceVersion"] = json!("7");
    let expected = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
        "metadata": custom["metadata"],
    });
    assert_eq!(decode(&bytes).unwrap(), expected);
}

#[test]
fn a_list_has_its_metadata_and_its_items_in_order() {
    let pods: Vec<_> = (0..3).map(|seed| document(seed, "v1", "Pod")).collect();
    let metadata = json!({"resourceVersion": "9", "continue": "x", "remainingItemCount": 0});
    let sealed = Sealed { api_version: "v1", kind: "PodList" };
    let format = Format::of("v1", "Pod").unwrap();
    let list = sealed.bytes(0, |out| {
        let fields = ListFields::STANDARD;
        fields.write_metadata(out, metadata.to_string().as_bytes())?;
        let write = |pod: &Value| fields.write_item(out, format, pod.to_string().as_bytes(), None);
        pods.iter().try_for_each(write)
    });
    let read = decode(&list.unwrap()).unwrap();
    let items: Vec<_> = pods
        .iter()
        .map(|pod| {
            json!({
                "metadata": pod["metadata"], "spec": pod["spec"], "status": pod["status"],
            })
        })
        .collect();
    let expected =
        json!({"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": items});
    assert_eq!(read, expected);
}

#[test]
fn the_beta_list_of_metadata_has_its_items_under_the_first_number() {
    let mut out = Vec::new();
    ListFields::ITEMS_FIRST.write_metadata(&mut out, b"{}").unwrap();
    let format = Format::metadata().unwrap();
    ListFields::ITEMS_FIRST.write_item(&mut out, format, br#"{"metadata":{}}"#, None).unwrap();
    assert_eq!((out[0] >> 3, out[2 + usize::from(out[1])] >> 3), (2, 1));
}

#[test]
fn what_only_travels_is_written_and_read_as_well() {
    let documents = [
        json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": "m", "reason": "NotFound", "code": 404,
            "details": {
                "name": "a", "group": "g", "kind": "pods", "uid": "u", "retryAfterSeconds": 1,
                "causes": [{"reason": "r", "message": "m", "field": "f"}],
            },
        }),
        json!({
            "apiVersion": "apps/v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "preconditions": {"uid": "u", "resourceVersion": "1"}, "dryRun": ["All"],
        }),
        json!({"apiVersion": "v1", "kind": "CreateOptions", "dryRun": ["All"], "fieldManager": "m"}),
        json!({"apiVersion": "v1", "kind": "UpdateOptions", "fieldValidation": "Strict"}),
        json!({"apiVersion": "v1", "kind": "PatchOptions", "force": false, "fieldManager": "m"}),
        json!({"apiVersion": "v1", "kind": "ListOptions", "limit": 5, "sendInitialEvents": false}),
        json!({
            "apiVersion": "v1", "kind": "APIResourceList", "groupVersion": "v1",
            "resources": [{
                "name": "pods", "singularName": "pod", "namespaced": true, "kind": "Pod",
                "verbs": ["get", "list"], "shortNames": ["po"],
            }],
        }),
    ];
    for document in documents {
        assert_eq!(decode(&encode(&document).unwrap()).unwrap(), document);
    }
}

#[test]
fn nulls_and_unknown_fields_are_left_out_and_null_elements_are_zeros() {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "creationTimestamp": null, "annotations": {"k": null}},
        "spec": {"containers": [null], "what": {"is": ["this"]}, "nodeSelector": null},
    });
    let expected = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "annotations": {"k": ""}},
        "spec": {"containers": [{}]},
    });
    assert_eq!(decode(&encode(&pod).unwrap()).unwrap(), expected);
}

#[test]
fn a_value_of_another_type_is_an_error_that_names_its_field() {
    let format = Format::of("v1", "Pod").unwrap();
    let written = |json: &str| format.write(&mut Vec::new(), json.as_bytes(), None);
    let cases = [
        (r#"{"metadata":{"name":1}}"#, "name"),
        (r#"{"spec":{"containers":{}}}"#, "containers"),
        (r#"{"spec":{"nodeSelector":[]}}"#, "nodeSelector"),
        (r#"{"spec":{"hostNetwork":"yes"}}"#, "hostNetwork"),
        (r#"{"metadata":{"creationTimestamp":"noon"}}"#, "creationTimestamp"),
        (r#"{"spec":{"priority":1.5}}"#, "priority"),
        (r#"{"spec":[]}"#, "spec"),
    ];
    for (json, field) in cases {
        let error = written(json).unwrap_err().to_string();
        assert!(error.starts_with(&format!("field {field:?}")), "{json}: {error}");
    }
    assert!(written(r#"{"spec":{"priority":1e3}}"#).is_ok());
    assert!(written("{").is_err());
}
