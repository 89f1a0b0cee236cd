//! What a defaulter changed, as a change of the document that was sent.
//!
//! A document seldom survives the way through a Rust type unchanged: fields that the type does
//! not know are lost, values that it leaves out when empty appear or vanish. The difference
//! between what was sent and what the type now says would therefore also remove what nobody
//! meant to remove. Instead the type is written out before and after the defaulter ran, and only
//! the difference between these two is carried over to the document.

use json_patch::Patch;
use serde_json::{Map, Value};

/// Fields by which Kubernetes tells the items of a list apart, the usual ones first.
const KEYS: [&str; 9] =
    ["name", "key", "type", "containerPort", "port", "mountPath", "ip", "topologyKey", "uid"];
/// Items are compared with each other only up to this many pairs, otherwise place by place.
const PAIRS_MAX: usize = 250_000;

/// The patch of `sent` that does what happened between `before` and `after`.
pub(super) fn carried_over(sent: &Value, before: &Value, after: &Value) -> Patch {
    if before == after {
        return Patch::default();
    }
    json_patch::diff(sent, &merged(sent, before, after))
}

/// `sent` with the changes between `before` and `after`.
fn merged(sent: &Value, before: &Value, after: &Value) -> Value {
    if before == after {
        return sent.clone();
    }
    match (sent, before, after) {
        (Value::Object(sent), Value::Object(before), Value::Object(after)) => {
            Value::Object(merged_object(sent, before, after))
        }
        (Value::Array(sent), Value::Array(before), Value::Array(after))
            if sent.len() == before.len() =>
        {
            Value::Array(merged_array(sent, before, after))
        }
        _ => after.clone(),
    }
}

fn merged_object(
    sent: &Map<String, Value>,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged = sent.clone();
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        merged.remove(key);
    }
    for (key, after) in after {
        let before = before.get(key);
        if before != Some(after) {
            let value = merged_field(sent.get(key), before, after);
            merged.insert(key.clone(), value);
        }
    }
    merged
}

fn merged_field(sent: Option<&Value>, before: Option<&Value>, after: &Value) -> Value {
    match (sent, before) {
        (Some(sent), Some(before)) => merged(sent, before, after),
        // The type leaves the field out while it is empty; what was sent may still be in it.
        (Some(sent @ Value::Object(_)), None) => merged(sent, &Value::Object(Map::new()), after),
        _ => after.clone(),
    }
}

fn merged_array(sent: &[Value], before: &[Value], after: &[Value]) -> Vec<Value> {
    let origins = origins(before, after);
    let merge = |(after, origin): (&Value, Option<usize>)| match origin {
        Some(origin) => merged(&sent[origin], &before[origin], after),
        None => after.clone(),
    };
    after.iter().zip(origins).map(merge).collect()
}

/// Which item of `before` each item of `after` was.
fn origins(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let prefix = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let before = &before[prefix..];
    let after = &after[prefix..];
    let suffix = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    let gone = before.len() - suffix;
    let middle = matched(&before[..gone], &after[..after.len() - suffix]);

    let mut origins: Vec<Option<usize>> = (0..prefix).map(Some).collect();
    origins.extend(middle.into_iter().map(|origin| origin.map(|origin| prefix + origin)));
    origins.extend((0..suffix).map(|place| Some(prefix + gone + place)));
    origins
}

/// Items are the same if they are equal, else if they have the same name, else if they are in
/// the same place of lists of the same length.
fn matched(before: &[Value], after: &[Value]) -> Vec<Option<usize>> {
    let mut origins = vec![None; after.len()];
    let mut taken = vec![false; before.len()];
    let mut pass = |same: &dyn Fn(usize, usize) -> bool| {
        for (place, origin) in origins.iter_mut().enumerate().filter(|(_, o)| o.is_none()) {
            *origin = (0..before.len()).find(|&other| !taken[other] && same(other, place));
            if let Some(origin) = *origin {
                taken[origin] = true;
            }
        }
    };
    if before.len().saturating_mul(after.len()) <= PAIRS_MAX {
        pass(&|other, place| before[other] == after[place]);
        pass(&|other, place| same_key(&before[other], &after[place]));
    }
    if before.len() == after.len() {
        for (place, origin) in origins.iter_mut().enumerate() {
            if origin.is_none() && !taken[place] && !differ_by_key(&before[place], &after[place]) {
                *origin = Some(place);
            }
        }
    }
    origins
}

fn keys<'a>(before: &'a Value, after: &'a Value) -> Option<(&'a Value, &'a Value)> {
    KEYS.iter().find_map(|key| Some((before.get(key)?, after.get(key)?)))
}

fn same_key(before: &Value, after: &Value) -> bool {
    keys(before, after).is_some_and(|(before, after)| before == after)
}

/// Two items with different names, one of which took the place of the other.
fn differ_by_key(before: &Value, after: &Value) -> bool {
    keys(before, after).is_some_and(|(before, after)| before != after)
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What becomes of `sent`.
    fn apply(sent: &Value, before: &Value, after: &Value) -> Value {
        let mut document = sent.clone();
        json_patch::patch(&mut document, &carried_over(sent, before, after)).unwrap();
        document
    }

    /// Documents with few names, so that they often have fields in common. A type knows all but
    /// those that begin with `x`.
    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), (0..3).prop_map(|number| json!(number))];
        leaf.prop_recursive(4, 30, 4, |inner| {
            let name = prop_oneof![Just("a"), Just("name"), Just("x"), Just("xx")];
            let name = name.prop_map(str::to_owned);
            prop_oneof![
                vec(inner.clone(), 0..4).prop_map(Value::Array),
                btree_map(name, inner, 0..4).prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    /// The document as a type writes it that has read it.
    fn typed(document: &Value) -> Value {
        match document {
            Value::Object(fields) => {
                let known = fields.iter().filter(|(name, _)| !name.starts_with('x'));
                known.map(|(name, value)| (name.clone(), typed(value))).collect()
            }
            Value::Array(items) => items.iter().map(typed).collect(),
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn read_again_the_document_is_what_the_defaulter_made(
            sent in document(),
            made in document(),
        ) {
            let before = typed(&sent);
            let after = typed(&made);
            let patched = apply(&sent, &before, &after);
            prop_assert_eq!(typed(&patched), after);
            prop_assert_eq!(apply(&sent, &before, &before), sent.clone());
            if let (Value::Object(sent), Value::Object(patched)) = (&sent, &patched) {
                prop_assert_eq!(sent.get("x"), patched.get("x"));
            }
        }
    }

    #[test]
    fn what_the_type_does_not_know_is_kept() {
        let sent = json!({"spec": {"replicas": 1, "new": {"a": 1}}, "extra": true});
        let before = json!({"spec": {"replicas": 1}});
        let after = json!({"spec": {"replicas": 2}});
        let wanted = json!({"spec": {"replicas": 2, "new": {"a": 1}}, "extra": true});
        assert_eq!(apply(&sent, &before, &after), wanted);
    }

    #[test]
    fn zero_values_that_the_type_adds_or_omits_are_no_changes() {
        let sent = json!({"spec": {"labels": {}, "paused": false, "note": null}});
        let before = json!({"spec": {"replicas": 0}, "status": {}});
        assert!(carried_over(&sent, &before, &before.clone()).0.is_empty());
        let after = json!({"spec": {"replicas": 0, "image": "web"}, "status": {}});
        let wanted = json!({"spec": {"labels": {}, "paused": false, "note": null, "image": "web"}});
        assert_eq!(apply(&sent, &before, &after), wanted);
    }

    #[test]
    fn a_field_that_was_empty_keeps_what_was_sent_in_it() {
        let sent = json!({"meta": {"unknown": 1}});
        let after = json!({"meta": {"labels": {"a": "b"}}});
        let wanted = json!({"meta": {"unknown": 1, "labels": {"a": "b"}}});
        assert_eq!(apply(&sent, &json!({}), &after), wanted);
        let null = json!({"meta": null});
        assert_eq!(apply(&null, &json!({}), &after), after);
    }

    #[test]
    fn what_the_defaulter_removed_is_removed() {
        let sent = json!({"spec": {"a": 1, "b": 2, "unknown": 3}});
        let before = json!({"spec": {"a": 1, "b": 2}});
        let after = json!({"spec": {"a": 1}});
        assert_eq!(apply(&sent, &before, &after), json!({"spec": {"a": 1, "unknown": 3}}));
    }

    #[test]
    fn items_of_lists_keep_their_unknown_fields_wherever_they_move() {
        let sent = json!([{"name": "a", "x": 1}, {"name": "b", "x": 2}, {"name": "c", "x": 3}]);
        let before = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
        let cases = [
            // A sidecar in front, and one changed.
            (
                json!([{"name": "s"}, {"name": "a"}, {"name": "b", "image": "i"}, {"name": "c"}]),
                json!([{"name": "s"}, {"name": "a", "x": 1}, {"name": "b", "image": "i", "x": 2},
                       {"name": "c", "x": 3}]),
            ),
            // One in the middle removed.
            (
                json!([{"name": "a"}, {"name": "c"}]),
                json!([{"name": "a", "x": 1}, {"name": "c", "x": 3}]),
            ),
            // Turned around.
            (
                json!([{"name": "c"}, {"name": "b"}, {"name": "a"}]),
                json!([{"name": "c", "x": 3}, {"name": "b", "x": 2}, {"name": "a", "x": 1}]),
            ),
            // One replaced by another, which must not inherit.
            (
                json!([{"name": "a"}, {"name": "z"}, {"name": "c"}]),
                json!([{"name": "a", "x": 1}, {"name": "z"}, {"name": "c", "x": 3}]),
            ),
            (json!([]), json!([])),
        ];
        for (after, wanted) in cases {
            assert_eq!(apply(&sent, &before, &after), wanted, "{after}");
        }
    }

    #[test]
    fn items_without_a_name_are_the_same_in_the_same_place() {
        let sent = json!([{"weight": 1, "x": 1}, {"weight": 2, "x": 2}]);
        let (before, after) =
            (json!([{"weight": 1}, {"weight": 2}]), json!([{"weight": 1}, {"weight": 5}]));
        let wanted = json!([{"weight": 1, "x": 1}, {"weight": 5, "x": 2}]);
        assert_eq!(apply(&sent, &before, &after), wanted);
    }

    #[test]
    fn long_lists_are_compared_place_by_place() {
        let numbers: Vec<u32> = (0..20_000).collect();
        let shifted: Vec<u32> = numbers.iter().map(|number| number + 1).collect();
        let before = json!(numbers);
        let after = json!(shifted);
        assert_eq!(apply(&before, &before, &after), after);
    }
}
