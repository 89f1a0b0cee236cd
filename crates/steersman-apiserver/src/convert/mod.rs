//! Two versions of one stored kind: how a document of one reads in the other.
//!
//! Only two built-in kinds are stored once and served twice: Event (core and `events.k8s.io`)
//! and `HorizontalPodAutoscaler` (`autoscaling/v1` and `v2`, in [`autoscaler`]). A document is
//! stored as it was written and rewritten for whoever speaks the other version, so nothing may
//! be lost on the way there and back.

mod autoscaler;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

use crate::schema::{builtin_kind, settle};

/// Fields of an Event: the core name, then the name in `events.k8s.io`.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Rewrites a document in the given `apiVersion`; a document already in it stays untouched.
pub(crate) fn to_api_version(object: &mut Value, api_version: &str) {
    if object["apiVersion"] == api_version {
        return;
    }
    match (object["kind"].as_str(), api_version) {
        (Some("Event"), "v1") => {
            rename(object, EVENT_FIELDS.iter().map(|&(core, new)| (new, core)));
        }
        (Some("Event"), "events.k8s.io/v1") => rename(object, EVENT_FIELDS.iter().copied()),
        (Some("HorizontalPodAutoscaler"), "autoscaling/v2") => autoscaler::to_v2(object),
        (Some("HorizontalPodAutoscaler"), "autoscaling/v1") => autoscaler::to_v1(object),
        _ => {}
    }
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), api_version.into());
    }
    // The versions differ in what they write of a field in which nothing is set.
    if let Some(node) = object["kind"].as_str().and_then(|kind| builtin_kind(api_version, kind)) {
        settle(&node, object);
    }
}

fn rename<'a>(object: &mut Value, names: impl Iterator<Item = (&'a str, &'a str)>) {
    let Some(fields) = object.as_object_mut() else { return };
    for (from, to) in names {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

/// Takes a field of a part of an object.
fn take(object: &mut Value, part: &str, field: &str) -> Option<Value> {
    object.get_mut(part)?.as_object_mut()?.remove(field)
}

/// The fields of a part of an object, which is made if it is absent.
fn fields<'a>(object: &'a mut Value, part: &str) -> Option<&'a mut Map<String, Value>> {
    let part = object.as_object_mut()?.entry(part).or_insert_with(|| Map::new().into());
    part.as_object_mut()
}
