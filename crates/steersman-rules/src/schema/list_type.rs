//! Lists that are sets or maps (`x-kubernetes-list-type`): nothing is in them twice.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::node::{ListKind, Node, Shape, Text};
use super::way::Way;
use crate::field::{Errors, FieldError};

/// Adds what is twice in the lists of a value. What is there more often is told once.
pub(super) fn validate(node: &Node, value: &Value, way: &Way<'_>, errors: &mut Errors) {
    match (&node.shape, value) {
        (Shape::Object(object), Value::Object(map)) => {
            for (key, value) in map {
                if let Some(field) = object.field(key) {
                    validate(&field.node, value, &way.field(key), errors);
                }
            }
        }
        (Shape::Map(below), Value::Object(map)) => {
            map.iter().for_each(|(key, value)| validate(below, value, &way.entry(key), errors));
        }
        (Shape::List(list), Value::Array(items)) => {
            match &list.kind {
                ListKind::Atomic => {}
                ListKind::Set => repeated(items.iter().cloned(), way, errors),
                ListKind::Map(keys) => map_items(items, keys, way, errors),
            }
            for (index, item) in items.iter().enumerate() {
                validate(&list.item, item, &way.index(index), errors);
            }
        }
        _ => {}
    }
}

fn map_items(items: &[Value], keys: &[Text], way: &Way<'_>, errors: &mut Errors) {
    let odd = items.iter().position(|item| !item.is_object() && !item.is_null());
    if let Some(index) = odd {
        let why = "must be an object for an array of list-type map";
        return errors.push(FieldError::invalid(way.index(index).text(), &items[index], why));
    }
    let keys_of = |item: &Value| -> Value {
        let given = keys.iter().filter_map(|key| Some((key.to_string(), item.get(key.as_ref())?)));
        let given: serde_json::Map<String, Value> =
            given.map(|(key, value)| (key, value.clone())).collect();
        json!(given)
    };
    repeated(items.iter().map(keys_of), way, errors);
}

fn repeated(identities: impl Iterator<Item = Value>, way: &Way<'_>, errors: &mut Errors) {
    let mut times: HashMap<String, usize> = HashMap::new();
    for (index, identity) in identities.enumerate() {
        let seen = times.entry(identity.to_string()).or_default();
        *seen += 1;
        if *seen == 2 {
            errors.push(FieldError::duplicate(way.index(index).text(), &identity));
        }
    }
}
