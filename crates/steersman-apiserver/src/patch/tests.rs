//! Patches in tables: what was, what was sent, what is.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{PatchError, json_patch, merge_patch, strategic_merge_patch};
use crate::schema::Schema;

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

fn strategic(object: &Value, patch: &Value) -> Result<Value, PatchError> {
    let schema = Schema::builtin("", "v1", "Pod").unwrap();
    strategic_merge_patch(&schema, object, &bytes(patch))
}

/// Patches a Pod's spec.
fn patched(spec: &Value, patch: &Value) -> Value {
    let object = strategic(&json!({"spec": spec}), &json!({"spec": patch})).unwrap();
    object["spec"].clone()
}

#[test]
fn json_patches_apply_in_order() {
    let object = json!({"a": 1, "list": [1, 2]});
    let patch = json!([
        {"op": "test", "path": "/a", "value": 1},
        {"op": "replace", "path": "/a", "value": 2},
        {"op": "add", "path": "/list/-", "value": 3},
        {"op": "remove", "path": "/list/0"},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "move", "from": "/b", "path": "/c"},
        {"op": "test", "path": "/missing", "value": null},
    ]);
    assert_eq!(json_patch(&object, &bytes(&patch)), Ok(json!({"a": 2, "c": 2, "list": [2, 3]})));
}

#[test]
fn a_json_patch_that_does_not_fit_is_unprocessable() {
    let cases = [
        (json!({"op": "test", "path": "/a", "value": 2}), "testing value /a failed: test failed"),
        (json!({"op": "test", "path": "/b", "value": 1}), "testing value /b failed: test failed"),
        (
            json!({"op": "remove", "path": "/b"}),
            "remove operation does not apply: doc is missing path: /b: missing value",
        ),
        (
            json!({"op": "replace", "path": "/b", "value": 1}),
            "replace operation does not apply: doc is missing path: /b: missing value",
        ),
        (
            json!({"op": "add", "path": "/b/c", "value": 1}),
            "add operation does not apply: doc is missing path: /b/c: missing value",
        ),
    ];
    for (operation, expected) in cases {
        let found = json_patch(&json!({"a": 1}), &bytes(&json!([operation])));
        assert_eq!(found, Err(PatchError::Unprocessable(expected.to_owned())));
    }
}

#[test]
fn a_json_patch_has_limits() {
    let operation = json!({"op": "test", "path": "/a", "value": 1});
    let patch = Value::Array(vec![operation; 10_001]);
    let found = json_patch(&json!({"a": 1}), &bytes(&patch));
    let text = "The allowed maximum operations in a JSON patch is 10000, got 10001";
    assert_eq!(found, Err(PatchError::TooLarge(text.to_owned())));

    // Each copies the document into itself, so it doubles.
    let operations: Vec<Value> =
        (0..40).map(|i| json!({"op": "copy", "from": "", "path": format!("/{i}")})).collect();
    let found = json_patch(&json!({"a": "b"}), &bytes(&Value::Array(operations)));
    assert!(matches!(found, Err(PatchError::Unprocessable(_))));
}

#[test]
fn what_is_no_patch_is_malformed() {
    let object = json!({"a": 1});
    assert!(matches!(json_patch(&object, b"{}"), Err(PatchError::Malformed(_))));
    assert!(matches!(
        json_patch(&object, b"[{\"op\": \"explode\"}]"),
        Err(PatchError::Malformed(_))
    ));
    assert!(matches!(merge_patch(&object, b"[]"), Err(PatchError::Malformed(_))));
    assert!(matches!(merge_patch(&object, b"{"), Err(PatchError::Malformed(_))));
    assert!(matches!(strategic(&object, &json!(1)), Err(PatchError::Malformed(_))));
}

#[test]
fn a_merge_patch_replaces_lists_and_removes_nulls() {
    let object = json!({"a": {"b": 1, "c": [1, 2]}, "d": 1});
    let patch = json!({"a": {"c": [3], "e": {"f": null}}, "d": null});
    assert_eq!(merge_patch(&object, &bytes(&patch)), Ok(json!({"a": {"b": 1, "c": [3], "e": {}}})));
}

/// Rules in words: a spec, a patch, and what becomes of them.
fn check(cases: &[(&str, Value, Value, Value)]) {
    for (rule, spec, patch, expected) in cases {
        assert_eq!(&patched(spec, patch), expected, "{rule}");
    }
}

#[test]
fn strategic_merge_of_lists_and_objects_follows_each_rule() {
    let a = json!({"name": "a", "image": "a:1"});
    let b = json!({"name": "b", "image": "b:1"});
    let cases = [
        (
            "items with the key merge, others are appended, in the patch's order",
            json!({"containers": [a, b]}),
            json!({"containers": [{"name": "b", "image": "b:2"}, {"name": "c"}]}),
            json!({"containers": [a, {"name": "b", "image": "b:2"}, {"name": "c"}]}),
        ),
        (
            "an item is deleted by its key",
            json!({"containers": [a, b]}),
            json!({"containers": [{"$patch": "delete", "name": "a"}]}),
            json!({"containers": [b]}),
        ),
        (
            "a list is replaced on demand",
            json!({"containers": [a, b]}),
            json!({"containers": [{"$patch": "replace"}, {"name": "c", "image": null}]}),
            json!({"containers": [{"name": "c"}]}),
        ),
        (
            "an object is replaced on demand",
            json!({"securityContext": {"runAsUser": 1, "fsGroup": 2}}),
            json!({"securityContext": {"$patch": "replace", "runAsUser": 3}}),
            json!({"securityContext": {"runAsUser": 3}}),
        ),
        (
            "an object is emptied on demand",
            json!({"securityContext": {"runAsUser": 1}}),
            json!({"securityContext": {"$patch": "delete"}}),
            json!({"securityContext": {}}),
        ),
    ];
    check(&cases);
}

#[test]
fn strategic_merge_of_fields_and_directives_follows_each_rule() {
    let a = json!({"name": "a", "image": "a:1"});
    let b = json!({"name": "b", "image": "b:1"});
    let cases = [
        (
            "lists without a merge key are replaced",
            json!({"tolerations": [{"key": "a"}]}),
            json!({"tolerations": [{"key": "b"}]}),
            json!({"tolerations": [{"key": "b"}]}),
        ),
        (
            "null removes, also where there is nothing",
            json!({"nodeName": "n", "hostNetwork": true}),
            json!({"nodeName": null, "hostname": null}),
            json!({"hostNetwork": true}),
        ),
        (
            "ports merge by containerPort alone",
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}]}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "http"}]}]}),
            json!({"containers": [{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "http"}]}]}),
        ),
        (
            "$setElementOrder orders, and leaves strangers in their place",
            json!({"containers": [a, {"name": "x"}, b]}),
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}],
                   "containers": [{"name": "c"}]}),
            json!({"containers": [{"name": "x"}, b, {"name": "c"}, a]}),
        ),
        (
            "$retainKeys drops what the patch does not name",
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}),
            json!({"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}),
        ),
        (
            "directives without anything to merge into leave no trace",
            json!({}),
            json!({"$setElementOrder/containers": [{"name": "a"}], "containers": [a, {"$patch": "delete", "name": "b"}]}),
            json!({"containers": [a]}),
        ),
    ];
    check(&cases);
}

#[test]
fn finalizers_merge_as_a_set() {
    let object = json!({"metadata": {"finalizers": ["a", "b"]}});
    let add = json!({"metadata": {"finalizers": ["b", "c"]}});
    let remove = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}});
    assert_eq!(strategic(&object, &add).unwrap()["metadata"]["finalizers"], json!(["a", "b", "c"]));
    assert_eq!(strategic(&object, &remove).unwrap()["metadata"]["finalizers"], json!(["b"]));
}

#[test]
fn owner_references_are_deleted_by_uid() {
    let object =
        json!({"metadata": {"ownerReferences": [{"uid": "1", "name": "x"}, {"uid": "2"}]}});
    let patch =
        json!({"metadata": {"uid": "u", "ownerReferences": [{"$patch": "delete", "uid": "1"}]}});
    let found = strategic(&object, &patch).unwrap();
    assert_eq!(found["metadata"]["ownerReferences"], json!([{"uid": "2"}]));
}

#[test]
fn bad_directives_are_refused() {
    let spec = json!({"spec": {"containers": [{"name": "a"}], "volumes": [{"name": "v"}]}});
    let cases = [
        json!({"$patch": "explode"}),
        json!({"containers": [{"image": "no key"}]}),
        json!({"containers": [{"$patch": "delete"}]}),
        json!({"volumes": [{"name": "v", "$retainKeys": ["name"], "emptyDir": {}}]}),
        json!({"$setElementOrder/containers": 1}),
    ];
    for patch in cases {
        assert!(strategic(&spec, &json!({"spec": patch})).is_err(), "{patch}");
    }
}

/// Pod specs with a few containers, values and nulls.
fn spec(with_nulls: bool) -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just(json!("x")),
        Just(json!("y")),
        Just(if with_nulls { json!(null) } else { json!("z") })
    ];
    let container = ("[a-d]", text.clone(), text.clone())
        .prop_map(|(name, image, dir)| json!({"name": name, "image": image, "workingDir": dir}));
    let containers = proptest::collection::vec(container, 0..4).prop_map(|mut containers| {
        containers.sort_by_key(|c| c["name"].to_string());
        containers.dedup_by_key(|c| c["name"].to_string());
        containers
    });
    (containers, text)
        .prop_map(|(containers, node)| json!({"containers": containers, "nodeName": node}))
}

proptest! {
    #[test]
    fn the_same_strategic_patch_twice_changes_nothing_more(old in spec(false), patch in spec(true)) {
        let once = patched(&old, &patch);
        prop_assert_eq!(patched(&once, &patch), once);
    }

    #[test]
    fn the_same_merge_patch_twice_changes_nothing_more(old in spec(false), patch in spec(true)) {
        let once = merge_patch(&old, &bytes(&patch)).unwrap();
        prop_assert_eq!(merge_patch(&once, &bytes(&patch)), Ok(once));
    }
}
