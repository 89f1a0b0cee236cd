//! Patches in tables: what was, what was sent, what is.

mod random;

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

#[test]
fn every_case_ends_as_it_says() {
    let cases: Value = serde_saphyr::from_str(include_str!("tests/cases.yaml")).unwrap();
    for (language, cases) in cases.as_object().unwrap() {
        for case in cases.as_array().unwrap() {
            let from = &case["from"];
            let patch = &case["patch"];
            let found = match language.as_str() {
                "strategic" => strategic(from, patch),
                "merge" => merge_patch(from, &bytes(patch)),
                _ => json_patch(from, &bytes(patch)),
            };
            let expected = match case.get("fails") {
                Some(text) => Err(text.as_str().unwrap().to_owned()),
                None => Ok(case["gives"].clone()),
            };
            let found = found.map_err(|error| error.to_string());
            assert_eq!(found, expected, "{language}: {}", case["rule"]);
        }
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
    assert!(matches!(json_patch(&object, b"[1]"), Err(PatchError::Malformed(_))));
    assert!(matches!(merge_patch(&object, b"[]"), Err(PatchError::Malformed(_))));
    assert!(matches!(merge_patch(&object, b"{"), Err(PatchError::Malformed(_))));
    assert!(matches!(strategic(&object, &json!(1)), Err(PatchError::Malformed(_))));
}

/// However the path to what is moved is written: by an index from the end, with a sign, or with
/// something before its first slash.
#[test]
fn no_json_patch_nests_an_object_without_end() {
    for from in ["/x/1", "/x/-1", "/x/+1", "/x/01", "y/x/1"] {
        let step = [
            json!({"op": "add", "path": "/x/0", "value": {}}),
            json!({"op": "move", "from": from, "path": "/x/0/a"}),
        ];
        let start = json!({"op": "add", "path": "/x", "value": [{}]});
        let operations = |steps: usize| {
            let steps = std::iter::repeat_n(&step, steps).flatten();
            bytes(&std::iter::once(&start).chain(steps).cloned().collect())
        };
        assert!(json_patch(&json!({}), &operations(100)).is_ok(), "{from}");
        let deep = json_patch(&json!({}), &operations(200));
        assert!(matches!(deep, Err(PatchError::Unprocessable(_))), "{from}");
    }
}

proptest! {
    #[test]
    fn the_same_merge_patch_twice_changes_nothing_more(old in random::pod(false), patch in random::pod(true)) {
        let once = merge_patch(&old, &bytes(&patch)).unwrap();
        prop_assert_eq!(merge_patch(&once, &bytes(&patch)), Ok(once));
    }

    #[test]
    fn a_strategic_patch_without_directives_gives_every_value_it_names(
        old in random::pod(false),
        new in random::pod(false),
    ) {
        let patched = strategic(&old, &new).unwrap();
        prop_assert!(contains(&patched, &new), "{} in {}", new, patched);
        prop_assert_eq!(strategic(&patched, &new), Ok(patched));
    }

    #[test]
    fn no_patch_makes_anything_panic(
        old in random::pod(false),
        odd in random::pod(true),
        any in random::anything(),
        small in random::small(),
        operations in random::operations(),
    ) {
        for patch in [&odd, &any] {
            let _ = strategic(&old, patch);
            let _ = strategic(&any, patch);
            let _ = merge_patch(&any, &bytes(patch));
        }
        let _ = json_patch(&small, &bytes(&operations));
        let _ = json_patch(&small, &bytes(&any));
    }
}

/// Whether a document has all that another has; items of lists in any order.
fn contains(all: &Value, part: &Value) -> bool {
    match (all, part) {
        (Value::Object(all), Value::Object(part)) => {
            part.iter().all(|(key, value)| all.get(key).is_some_and(|found| contains(found, value)))
        }
        (Value::Array(all), Value::Array(part)) => {
            part.iter().all(|item| all.iter().any(|found| contains(found, item)))
        }
        (all, part) => all == part,
    }
}
