//! Patches and applies: whatever they say, the object is changed by rule or not at all.

use proptest::collection::vec;
use proptest::prelude::Strategy;
use proptest::sample::select;
use serde_json::{Value, json};
use steersman_rules::apply::{Apply, Sole, apply};
use steersman_rules::patch::{json_patch, merge_patch, strategic_merge_patch};
use steersman_rules::schema::Schema;

use super::{FIELDS, json, object, run, text};
use crate::api::deployment;

const POINTERS: &[&str] = &[
    "/",
    "metadata",
    "spec",
    "template",
    "containers",
    "0",
    "1",
    "-",
    "~0",
    "~1",
    "~",
    "name",
    "01",
    "labels",
    "odd",
];

#[test]
fn any_json_patch_is_applied_or_refused() {
    let operation = (
        select(&["add", "remove", "replace", "move", "copy", "test", "odd"][..]),
        text(POINTERS),
        text(POINTERS),
        json(FIELDS),
    );
    let operation = operation.prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
    );
    run((object(FIELDS), vec(operation, 0..8)), |(object, operations)| {
        let _ = json_patch(&object, Value::from(operations).to_string().as_bytes());
    });
}

fn drop_nulls_in_lists(value: &mut Value, in_list: bool) {
    match value {
        Value::Array(items) => {
            items.retain(|item| !item.is_null());
            items.iter_mut().for_each(|item| drop_nulls_in_lists(item, true));
        }
        Value::Object(fields) => {
            fields.retain(|_, value| !(in_list && value.is_null()));
            fields.values_mut().for_each(|value| drop_nulls_in_lists(value, in_list));
        }
        _ => {}
    }
}

#[test]
fn a_merge_patch_twice_is_a_merge_patch_once() {
    run((object(FIELDS), object(FIELDS)), |(object, mut patch)| {
        // Kubernetes drops nulls in a list that is new, and keeps them in one that is replaced.
        drop_nulls_in_lists(&mut patch, false);
        let patch = patch.to_string();
        let once = merge_patch(&object, patch.as_bytes()).unwrap();
        assert_eq!(merge_patch(&once, patch.as_bytes()).unwrap(), once);
    });
}

#[test]
fn any_strategic_merge_patch_is_applied_or_refused() {
    let schema = Schema::builtin("apps", "v1", "Deployment").unwrap();
    run((object(FIELDS), object(FIELDS)), |(object, patch)| {
        let patch = patch.to_string();
        let _ = strategic_merge_patch(&schema, &object, patch.as_bytes());
        let _ = strategic_merge_patch(&schema, &deployment("web", 1), patch.as_bytes());
    });
}

#[test]
fn any_configuration_is_applied_or_refused() {
    let schema = Schema::builtin("apps", "v1", "Deployment").unwrap();
    run((object(FIELDS), object(FIELDS)), |(mut live, mut applied)| {
        // Metadata of another type is refused before.
        live["metadata"] = json!({"name": "web"});
        applied["metadata"] = json!({"name": "web"});
        let whole = deployment("web", 1);
        for live in [None, Some(&live), Some(&whole)] {
            let _ = apply(Apply {
                live,
                applied: &applied,
                manager: "me",
                force: false,
                subresource: "",
                api_version: "apps/v1",
                now: "2025-01-01T00:00:00Z",
                schema: &schema,
                versions: &Sole,
                resets: &[],
            });
        }
    });
}
