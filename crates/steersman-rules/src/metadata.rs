//! Reading and writing `metadata` of documents, where it needs more than an index.

use std::collections::HashSet;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// The version of `meta.k8s.io` in which a table, or metadata alone, is told. The two differ in
/// name only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MetaVersion {
    /// `v1`
    #[default]
    V1,
    /// `v1beta1`, which old clients ask for.
    V1beta1,
}

impl MetaVersion {
    /// As documents carry it.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// A text field of metadata; empty where it is absent.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or("")
}

/// A number field of metadata.
pub fn number(object: &Value, field: &str) -> Option<i64> {
    object["metadata"][field].as_i64()
}

/// Leaves each owner once, and gives the uids of those that stood again.
pub fn drop_repeated_owners(object: &mut Value) -> Vec<String> {
    let mut again = Vec::new();
    let owners = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
    let Some(owners) = owners else { return again };
    // By their texts in a table, never each against each: there may be tens of thousands.
    let mut seen = HashSet::with_capacity(owners.len());
    owners.retain(|owner| {
        let is_new = seen.insert(owner.to_string());
        if !is_new {
            again.push(owner["uid"].as_str().unwrap_or("").to_owned());
        }
        is_new
    });
    again
}

/// The finalizers.
pub fn finalizers(object: &Value) -> Vec<String> {
    let list = object["metadata"]["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Whether deletion has begun.
pub fn is_deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// The metadata to write to; made where it is absent or not an object.
pub fn of(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = Value::Object(Map::new());
    }
    object["metadata"].as_object_mut().expect("metadata was just made an object")
}

/// Sets a field of metadata, or removes it when there is nothing to set.
pub fn set(object: &mut Value, field: &str, value: Option<Value>) {
    match value {
        Some(value) if !value.is_null() => of(object).insert(field.to_owned(), value),
        _ => of(object).remove(field),
    };
}

/// Writes the finalizers; none at all removes the field.
pub fn set_finalizers(object: &mut Value, finalizers: Vec<String>) {
    let value = if finalizers.is_empty() { None } else { Some(finalizers.into()) };
    set(object, "finalizers", value);
}

/// A time as Kubernetes writes it: RFC 3339 in UTC, whole seconds.
pub fn time(timestamp: Timestamp) -> String {
    let seconds = Timestamp::from_second(timestamp.as_second()).unwrap_or(timestamp);
    seconds.to_string()
}

/// The value at a dotted path; null where there is none.
pub fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(object, |value, key| &value[key])
}

/// Sets the value at a dotted path, making objects on the way.
pub fn set_at(object: &mut Value, path: &str, value: Value) {
    let mut target = object;
    for key in path.split('.') {
        if !target.is_object() {
            *target = Value::Object(Map::new());
        }
        target = &mut target[key];
    }
    *target = value;
}

#[cfg(test)]
mod tests {
    use super::{set_at, time};
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn times_have_whole_seconds_and_a_z() {
        let moment = Timestamp::from_millisecond(1_700_000_000_987).unwrap();
        assert_eq!(time(moment), "2023-11-14T22:13:20Z");
    }

    #[test]
    fn a_path_is_made_on_the_way() {
        let mut object = json!({"spec": null});
        set_at(&mut object, "spec.a.b", json!(1));
        assert_eq!(object, json!({"spec": {"a": {"b": 1}}}));
    }
}
