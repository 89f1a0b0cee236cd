//! The form in which an object of one cluster can be compared with that of the other: without what
//! chance and the clock make of it, which are uids, times, addresses, the ends of generated names, hashes
//! of templates, and the node of a Pod.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use crate::mask::{Masks, Words};

/// What an object is called, in both clusters, and what it says. Objects of generated names share one.
pub(super) struct Canonical {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) content: Value,
}

/// Who tells Events in both clusters alike.
const SHARED: [&str; 2] = ["default-scheduler", "kubelet"];

/// Texts that chance makes, and what stands for them.
static TEXTS: LazyLock<Words> = LazyLock::new(|| {
    Words::of(&[
        // Endings of names and hashes, in the letters that Kubernetes uses for both.
        (r"-[bcdfghjklmnpqrstvwxz2456789]{5,10}(\b|_)", "-~$1"),
        // Jobs of CronJobs are called after their minute.
        (r"-\d{8}\b", "-~"),
        (r"\bnode-\d+\b", "NODE"),
        (r"\b(?:10\.\d+|172\.18)\.\d+\.\d+\b", "ADDRESS"),
        (r"\b[0-9a-f]{32,64}\b", "HASH"),
    ])
});

/// Labels and fields whose values are hashes or uids.
const HASHES: [&str; 6] = [
    "pod-template-hash",
    "controller-revision-hash",
    "controller-uid",
    "batch.kubernetes.io/controller-uid",
    "endpoints.kubernetes.io/last-change-trigger-time",
    "ca.crt",
];

/// Lists whose order is chance.
const SETS: [&str; 4] = ["endpoints", "addresses", "notReadyAddresses", "subsets"];

/// An object in its canonical form; nothing for Events that both clusters tell by the same program.
pub(super) fn canonical(object: &Value, managed_fields: bool) -> Option<Canonical> {
    let mut content = object.clone();
    let kind = content["kind"].as_str().unwrap_or_default().to_owned();
    if let Some(metadata) = content["metadata"].as_object_mut() {
        for field in ["resourceVersion", "uid", "creationTimestamp", "selfLink"] {
            metadata.remove(field);
        }
        let managers = metadata.remove("managedFields");
        if let Some(Value::Array(managers)) = managers.filter(|_| managed_fields) {
            metadata.insert("managedFields".to_owned(), by_manager(managers));
        }
    }
    let is_owned = content.pointer("/metadata/ownerReferences").is_some();
    if is_owned && ["ReplicaSet", "EndpointSlice"].contains(&kind.as_str()) {
        // In how many steps its owner has changed it is chance.
        for generation in ["/metadata/generation", "/status/observedGeneration"] {
            content.pointer_mut(generation).map(Value::take);
        }
    }
    mask(&mut content);
    if kind == "Event" {
        return event(&content);
    }
    let name = content["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    Some(Canonical { kind, name, content })
}

/// What an Event says of whom. How often is chance.
fn event(event: &Value) -> Option<Canonical> {
    let component = &event["source"]["component"];
    let tellers = [component, &event["reportingComponent"]].map(Value::as_str);
    if tellers.into_iter().flatten().any(|teller| SHARED.contains(&teller)) {
        return None;
    }
    let about = &event["involvedObject"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let about_whom = format!("{} {}", word(&about["kind"]), word(&about["name"]));
    let reason = word(&event["reason"]);
    let message = word(&event["message"]);
    let content = json!({
        "type": event["type"], "source": component, "fieldPath": about["fieldPath"],
        "apiVersion": about["apiVersion"], "reportingComponent": event["reportingComponent"],
        "action": event["action"],
    });
    let name = format!("{about_whom}: {reason}: {message}");
    Some(Canonical { kind: "Event".to_owned(), name, content })
}

/// Managers by what they are called, since their order is that of time.
fn by_manager(managers: Vec<Value>) -> Value {
    let mut by_name = Map::new();
    for manager in managers {
        let word = |field: &str| manager[field].as_str().unwrap_or_default().to_owned();
        let words = ["manager", "operation", "apiVersion", "subresource"].map(word);
        by_name.insert(words.join(" ").trim_end().to_owned(), manager["fieldsV1"].clone());
    }
    Value::Object(by_name)
}

fn mask(content: &mut Value) {
    Masks { run: String::new(), address: String::new() }.document(content);
    rename(content);
}

fn rename(value: &mut Value) {
    match value {
        Value::String(text) => *text = TEXTS.mask(text),
        Value::Array(items) => items.iter_mut().for_each(rename),
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if HASHES.contains(&name.as_str()) && value.is_string() {
                    *value = "HASH".into();
                }
                rename(value);
                if let Some(items) = value.as_array_mut().filter(|_| SETS.contains(&name.as_str()))
                {
                    items.sort_by_key(Value::to_string);
                }
            }
            let fields_before = std::mem::take(fields).into_iter();
            *fields = fields_before.map(|(name, value)| (TEXTS.mask(&name), value)).collect();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_makes_is_left_out_and_nothing_else() {
        let pod = json!({
            "kind": "Pod",
            "metadata": {
                "name": "web-7d4b9c6f5-x2kbp", "generateName": "web-7d4b9c6f5-", "uid": "u", "generation": 2,
                "labels": {"pod-template-hash": "7d4b9c6f5", "app": "web-front"},
                "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:spec": {}}}],
            },
            "spec": {"nodeName": "node-3"},
            "status": {"podIP": "10.244.3.17", "startTime": "2026-11-19T10:00:00Z"},
        });
        let found = canonical(&pod, true).unwrap();
        assert_eq!((found.kind.as_str(), found.name.as_str()), ("Pod", "web-~-~"));
        let expected = json!({
            "kind": "Pod",
            "metadata": {
                "name": "web-~-~", "generateName": "web-~-", "generation": 2,
                "labels": {"pod-template-hash": "HASH", "app": "web-front"},
                "managedFields": {"m Update v1": {"f:spec": {}}},
            },
            "spec": {"nodeName": "NODE"},
            "status": {"podIP": "ADDRESS", "startTime": "TIME"},
        });
        assert_eq!(found.content, expected);
    }

    #[test]
    fn events_are_called_after_what_they_say() {
        let mut event = json!({
            "kind": "Event", "metadata": {"name": "web.187"}, "reason": "SuccessfulCreate",
            "message": "Created pod: web-7d4b9c6f5-x2kbp", "type": "Normal", "count": 3,
            "involvedObject": {"kind": "ReplicaSet", "name": "web-7d4b9c6f5"},
            "source": {"component": "replicaset-controller"},
        });
        let found = canonical(&event, false).unwrap();
        assert_eq!(found.name, "ReplicaSet web-~: SuccessfulCreate: Created pod: web-~-~");
        event["source"]["component"] = "kubelet".into();
        assert!(canonical(&event, false).is_none());
    }
}
