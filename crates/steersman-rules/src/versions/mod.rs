//! Two versions of one stored kind: how a document of one reads in the other.
//!
//! Only two built-in kinds are stored once and served twice: Event (core and `events.k8s.io`)
//! and `HorizontalPodAutoscaler` (`autoscaling/v1` and `v2`, in [`autoscaler`]). A document is
//! stored as it was written and rewritten for whoever speaks the other version, so nothing may
//! be lost on the way there and back.

pub(crate) mod autoscaler;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

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

/// How an encoded document begins.
const API_VERSION: &[u8] = br#"{"apiVersion":""#;

/// The `apiVersion` of an encoded document that begins with it.
pub fn spoken(document: &[u8]) -> Option<&str> {
    let behind = document.strip_prefix(API_VERSION)?;
    let end = behind.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&behind[..end]).ok()
}

/// Whether an encoded document begins with this `apiVersion`.
pub fn speaks(document: &[u8], api_version: &str) -> bool {
    let behind = document.strip_prefix(API_VERSION);
    let behind = behind.and_then(|bytes| bytes.strip_prefix(api_version.as_bytes()));
    behind.is_some_and(|bytes| bytes.first() == Some(&b'"'))
}

/// Decodes a document into the given `apiVersion`.
pub fn read(document: &[u8], api_version: &str) -> serde_json::Result<Value> {
    let mut object = serde_json::from_slice(document)?;
    to_api_version(&mut object, api_version);
    Ok(object)
}

/// Rewrites a document in the given `apiVersion`; a document already in it stays untouched.
pub fn to_api_version(object: &mut Value, api_version: &str) {
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

/// How versions are preferred, the best one greatest: stable above beta above alpha, then by the
/// number; names of another form are below, and among them the alphabet's first is best.
pub fn order(a: &str, b: &str) -> Ordering {
    priority(a).cmp(&priority(b)).then_with(|| match priority(a) {
        (0, ..) => b.cmp(a),
        _ => Ordering::Equal,
    })
}

fn priority(version: &str) -> (u8, u32, u32) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (major, rest) = rest.split_at(end);
        let major = major.parse().ok()?;
        if rest.is_empty() {
            return Some((3, major, 0));
        }
        let (rank, minor) = match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
            (Some(minor), _) => (2, minor),
            (_, Some(minor)) => (1, minor),
            _ => return None,
        };
        Some((rank, major, minor.parse().ok()?))
    };
    parse().unwrap_or((0, 0, 0))
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
