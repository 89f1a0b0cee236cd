//! Type mistakes in objects of built-in kinds, worded as Kubernetes words them where it fills a
//! struct from a document instead of from JSON: in the result of a strategic merge patch.
//!
//! Unlike [`super::decode`], this names the types and not the field. Types that read their own
//! JSON, such as quantities and times, do so here as well.

use serde_json::{Number, Value};

use super::decode::{self, Place};
use super::node::{Node, Scalar, Shape};
use super::normal;

/// The first mistake in a value or below it.
pub(super) fn mistake(node: &Node, value: &Value, place: Option<&Place<'_>>) -> Option<String> {
    // Null is "not set", whatever the type.
    if value.is_null() {
        return None;
    }
    match (&node.shape, value) {
        (Shape::Any | Shape::Raw, _) => None,
        (Shape::Part(_), Value::Object(_)) => {
            let mut errors = Vec::new();
            decode::check(node, value, None, &mut errors);
            errors.into_iter().next()
        }
        (Shape::Part(_), _) => decode::schema_part_error(value, place, None),
        (Shape::Scalar(Scalar::Bytes), Value::Array(bytes)) => bytes.iter().find_map(byte_mistake),
        (Shape::Scalar(scalar), _) => scalar_mistake(*scalar, value, place),
        (Shape::Map(inner), Value::Object(map)) => {
            let place = place.map(Place::deeper);
            map.values().find_map(|value| mistake(inner, value, place.as_ref()))
        }
        (Shape::List(list), Value::Array(items)) => {
            let place = place.map(Place::deeper);
            items.iter().find_map(|item| mistake(&list.item, item, place.as_ref()))
        }
        (Shape::Object(_) | Shape::Named(_), Value::Object(map)) => {
            map.iter().find_map(|(key, value)| {
                mistake(node.child(key), value, Some(&Place::field(place, node, key)))
            })
        }
        (Shape::Map(_), _) => Some(format!("cannot restore map from {}", kind(value))),
        (Shape::List(_), _) => Some(format!("cannot restore slice from {}", kind(value))),
        _ => Some(format!("cannot restore struct from: {}", kind(value))),
    }
}

/// Takes whole numbers for integers, however they are written, and wraps those that do not fit into
/// 32 bits. Go converts them so.
pub(super) fn wrap(node: &Node, value: &mut Value) {
    match (&node.shape, value) {
        (Shape::Scalar(scalar), Value::Number(number)) => wrap_number(*scalar, number),
        (Shape::Map(inner), Value::Object(map)) => {
            map.values_mut().for_each(|value| wrap(inner, value));
        }
        (Shape::List(list), Value::Array(items)) => {
            items.iter_mut().for_each(|item| wrap(&list.item, item));
        }
        (Shape::Object(_) | Shape::Named(_), Value::Object(map)) => {
            map.iter_mut().for_each(|(key, value)| wrap(node.child(key), value));
        }
        _ => {}
    }
}

fn wrap_number(scalar: Scalar, number: &mut Number) {
    let Some(whole) = number.as_i64().or_else(|| normal::whole(number)) else { return };
    match scalar {
        Scalar::Int32 => {
            #[expect(clippy::cast_possible_truncation, reason = "that is what wrapping is")]
            let wrapped = whole as i32;
            *number = wrapped.into();
        }
        Scalar::Int64 | Scalar::Integer | Scalar::IntOrString => *number = whole.into(),
        _ => {}
    }
}

fn scalar_mistake(scalar: Scalar, value: &Value, place: Option<&Place<'_>>) -> Option<String> {
    let read = || decode::scalar_error(scalar, value, None);
    let target = match scalar {
        Scalar::String => "string",
        Scalar::Bool => "bool",
        Scalar::Int32 => "int32",
        Scalar::Int64 | Scalar::Integer => "int64",
        Scalar::Number => "float64",
        Scalar::Bytes if value.is_string() => {
            return read().map(|why| format!("error decoding from json: {why}"));
        }
        Scalar::Bytes => return Some(format!("cannot restore slice from {}", kind(value))),
        Scalar::Time | Scalar::MicroTime | Scalar::Quantity | Scalar::IntOrString => return read(),
    };
    let mistake = read()?;
    Some(match (kind(value), target) {
        // Go makes a text of one letter from a number; that is known and refused.
        ("int64", "string") | ("float64", "int32" | "int64") => {
            format!("cannot convert {} to {}", kind(value), decode::scalar_name(scalar, place))
        }
        // The number is one, but does not fit.
        ("int64", _) if target.starts_with("int") => mistake,
        _ => format!("unrecognized type: {target}"),
    })
}

/// The mistake in one of the numbers that bytes may be given as.
fn byte_mistake(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Number(number) if !number.is_f64() => None,
        Value::Number(_) => Some("cannot convert float64 to uint8".to_owned()),
        _ => Some("unrecognized type: uint8".to_owned()),
    }
}

/// What Go calls what it finds in a document.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::schema::Schema;

    /// One row for each pair of what is wanted and what is found.
    #[test]
    fn a_type_mistake_in_the_result_of_a_strategic_patch_names_the_types() {
        let pod = Schema::builtin("", "v1", "Pod").unwrap();
        let secret = Schema::builtin("", "v1", "Secret").unwrap();
        let scaler = Schema::builtin("autoscaling", "v1", "HorizontalPodAutoscaler").unwrap();
        let container =
            |field: &str, value: Value| json!({"spec": {"containers": [{field: value}]}});
        for (schema, object, expected) in [
            (&pod, json!({"metadata": {"labels": "x"}}), "cannot restore map from string"),
            (&pod, json!({"metadata": {"labels": ["x"]}}), "cannot restore map from slice"),
            (&pod, json!({"metadata": {"labels": {"a": 1}}}), "cannot convert int64 to string"),
            (&pod, json!({"metadata": {"labels": {"a": 1.5}}}), "unrecognized type: string"),
            (&pod, json!({"metadata": {"labels": {"a": true}}}), "unrecognized type: string"),
            (&pod, json!({"metadata": "x"}), "cannot restore struct from: string"),
            (&pod, json!({"spec": "x"}), "cannot restore struct from: string"),
            (&pod, json!({"spec": 1}), "cannot restore struct from: int64"),
            (&pod, json!({"spec": [1]}), "cannot restore struct from: slice"),
            (&pod, json!({"spec": {"containers": "x"}}), "cannot restore slice from string"),
            (&pod, json!({"spec": {"containers": {}}}), "cannot restore slice from map"),
            (&pod, json!({"spec": {"containers": ["x"]}}), "cannot restore struct from: string"),
            (&pod, json!({"spec": {"restartPolicy": ["a"]}}), "unrecognized type: string"),
            (&pod, json!({"spec": {"hostNetwork": "true"}}), "unrecognized type: bool"),
            (&pod, json!({"spec": {"hostNetwork": 1}}), "unrecognized type: bool"),
            (&pod, json!({"spec": {"activeDeadlineSeconds": "abc"}}), "unrecognized type: int64"),
            (
                &pod,
                json!({"spec": {"activeDeadlineSeconds": 1.5}}),
                "cannot convert float64 to int64",
            ),
            (&pod, json!({"spec": {"priority": {}}}), "unrecognized type: int32"),
            (&pod, container("command", json!("x")), "cannot restore slice from string"),
            (
                &pod,
                container("resources", json!({"limits": {"cpu": "x"}})),
                "quantities must match the regular expression \
                 '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            ),
            (
                &pod,
                json!({"spec": {"restartPolicy": 1}}),
                "cannot convert int64 to v1.RestartPolicy",
            ),
            (
                &pod,
                container("securityContext", json!({"capabilities": {"add": [1]}})),
                "cannot convert int64 to v1.Capability",
            ),
            (
                &pod,
                json!({"metadata": {"creationTimestamp": 1}}),
                "json: cannot unmarshal number into Go value of type string",
            ),
            (&secret, json!({"data": {"a": [true]}}), "unrecognized type: uint8"),
            (&secret, json!({"data": {"a": [1.5]}}), "cannot convert float64 to uint8"),
            (&secret, json!({"data": {"a": 1}}), "cannot restore slice from int64"),
            (
                &secret,
                json!({"data": {"a": "!"}}),
                "error decoding from json: illegal base64 data at input byte 0",
            ),
            (&scaler, json!({"spec": {"maxReplicas": "x"}}), "unrecognized type: int32"),
        ] {
            assert_eq!(schema.restore_mistake(&object).as_deref(), Some(expected), "{object}");
        }
        assert_eq!(pod.restore_mistake(&json!({"spec": {"hostNetwork": null}})), None);
    }

    #[test]
    fn a_whole_number_is_an_integer_however_it_is_written() {
        let deployment = Schema::builtin("apps", "v1", "Deployment").unwrap();
        let rolling = |surge: Value| json!({"rollingUpdate": {"maxSurge": surge}});
        let mut object = json!({"spec": {
            "replicas": 3.0, "minReadySeconds": 4_294_967_297_i64, "strategy": rolling(json!(1.0)),
            "paused": 1.0, "revisionHistoryLimit": 1.5,
        }});
        deployment.wrap_integers(&mut object);
        let expected = json!({"spec": {
            "replicas": 3, "minReadySeconds": 1, "strategy": rolling(json!(1)),
            "paused": 1.0, "revisionHistoryLimit": 1.5,
        }});
        assert_eq!(object, expected);
    }
}
