//! Amounts that are written in another way and are the same: `1Gi` and `1073741824`.
//!
//! Kubernetes compares quantities by what they are worth. Whoever compares two versions of an object
//! here compares texts; so what is old is first written as the new version writes it.

use std::borrow::Cow;

use serde_json::Value;
use steersman_rules::schema::{Node, Scalar, Shape, builtin_kind};
use steersman_values::quantity::Quantity;

use crate::write::Writer;

/// The old version of an object, with amounts written as the new one writes the same.
pub(in crate::write) fn as_written_in<'a>(
    writer: &Writer<'_>,
    old: &'a Value,
    new: &Value,
) -> Cow<'a, Value> {
    // A custom resource has no amounts, only texts that somebody takes for some.
    let Some(kind) = builtin_kind(&writer.api_version, &writer.resource.kind) else {
        return Cow::Borrowed(old);
    };
    rewritten_but(&kind, old, new, "metadata").map_or(Cow::Borrowed(old), Cow::Owned)
}

/// A value with the amounts of another, where they are the same; `None` if that is the same text.
fn rewritten(node: &Node, old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    match (&node.shape, old, new) {
        (Shape::Scalar(Scalar::Quantity), _, _) => {
            let [was, is] = [old, new].map(Quantity::of);
            (was.is_some() && was == is).then(|| new.clone())
        }
        (Shape::List(list), Value::Array(old), Value::Array(new)) => {
            let pairs = old.iter().zip(new).enumerate();
            let changed = pairs.filter_map(|(i, (old, new))| {
                let item = rewritten(&list.item, old, new)?;
                Some((i, item))
            });
            let changed: Vec<_> = changed.collect();
            (!changed.is_empty()).then(|| {
                let mut items = old.clone();
                changed.into_iter().for_each(|(i, item)| items[i] = item);
                Value::Array(items)
            })
        }
        _ => rewritten_but(node, old, new, ""),
    }
}

/// The same of the fields of an object, all but one.
fn rewritten_but(node: &Node, old: &Value, new: &Value, passed_over: &str) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return None };
    let changed = old.iter().filter(|(field, _)| *field != passed_over);
    let changed = changed.filter_map(|(field, old)| {
        let value = rewritten(node.child(field), old, new.get(field)?)?;
        Some((field.clone(), value))
    });
    let changed: Vec<_> = changed.collect();
    (!changed.is_empty()).then(|| {
        let mut fields = old.clone();
        fields.extend(changed);
        Value::Object(fields)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use steersman_rules::schema::builtin_kind;

    use super::rewritten_but;

    #[test]
    fn amounts_that_are_the_same_are_written_as_in_the_new_version() {
        let pod = |memory: &str, variable: &str, image: &str| {
            json!({"spec": {"containers": [{
                "image": image,
                "resources": {"limits": {"memory": memory, "cpu": "1"}},
                "env": [{"name": "MEMORY", "value": variable}],
            }]}})
        };
        let old = pod("1Gi", "1Gi", "a");
        for (new, expected) in [
            (old.clone(), None),
            (pod("2Gi", "1Gi", "a"), None),
            // Only what is an amount by its place.
            (pod("1Gi", "1073741824", "a"), None),
            (pod("1073741824", "1073741824", "b"), Some(pod("1073741824", "1Gi", "a"))),
            (json!({"spec": {"containers": []}}), None),
            (Value::Null, None),
        ] {
            let kind = builtin_kind("v1", "Pod").unwrap();
            assert_eq!(rewritten_but(&kind, &old, &new, "metadata"), expected, "{new}");
        }
    }
}
