//! What a field selector reads of an object.

use serde_json::Value;

/// What a field selector compares with: the field as text, empty where it is absent.
///
/// A few names of old do not name the field they read, and numbers and switches that are absent
/// read as their zero, as they do in Kubernetes.
pub fn value(object: &Value, field: &str) -> String {
    match field {
        "spec.unschedulable" | "spec.hostNetwork" => or(at(object, field), "false"),
        "status.replicas" => or(at(object, field), "0"),
        "status.successful" => or(at(object, "status.succeeded"), "0"),
        "source" => or(
            at(object, "source.component"),
            object["reportingComponent"].as_str().unwrap_or_default(),
        ),
        "status.podIPs" => {
            let ips = object["status"]["podIPs"].as_array().map_or(&[][..], Vec::as_slice);
            ips.iter().filter_map(|ip| ip["ip"].as_str()).collect::<Vec<_>>().join(",")
        }
        _ => at(object, field),
    }
}

fn at(object: &Value, path: &str) -> String {
    match path.split('.').fold(object, |value, key| &value[key]) {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn or(found: String, fallback: &str) -> String {
    if found.is_empty() { fallback.to_owned() } else { found }
}
