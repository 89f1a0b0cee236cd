//! What of a definition only the server says: whether its names are accepted, whether it is being
//! deleted, in which versions its instances were ever stored.

use serde_json::{Value, json};
use steersman_rules::kinds::custom_resource_definition::{self as definitions, complete};
use steersman_rules::metadata;

use super::{CLEANUP, names};
use crate::state::Server;

/// The conditions that the server sets, and nobody else.
const OWN_CONDITIONS: [&str; 3] = ["NamesAccepted", "Established", "Terminating"];

/// Completes a definition that is about to be written: names and status.
pub(super) fn prepare(server: &Server, definition: &mut Value, now: &str) {
    complete(definition);
    let conflict = names::conflict(&server.registry.table(), definition);
    let accepted = definition["spec"]["names"].clone();
    match conflict {
        None => {
            let accepted_names = Condition {
                kind: "NamesAccepted",
                status: "True",
                reason: "NoConflicts",
                message: "no conflicts found",
            };
            let established = Condition {
                kind: "Established",
                status: "True",
                reason: "InitialNamesAccepted",
                message: "the initial names have been accepted",
            };
            set_condition(definition, accepted_names, now);
            set_condition(definition, established, now);
            definition["status"]["acceptedNames"] = accepted;
        }
        Some((reason, message)) => {
            let message = &message;
            let refused = Condition { kind: "NamesAccepted", status: "False", reason, message };
            set_condition(definition, refused, now);
            if !is_established(definition) {
                let unestablished = Condition {
                    kind: "Established",
                    status: "False",
                    reason: "NotAccepted",
                    message: "not all names are accepted",
                };
                set_condition(definition, unestablished, now);
                definition["status"]["acceptedNames"] = json!({"plural": "", "kind": ""});
            }
        }
    }
    remember_stored_version(definition);
}

/// Says of a definition whose deletion begins that it does, and holds it until its instances are
/// gone. Nothing else of it changes.
pub(super) fn begin_deletion(old: &Value, definition: &mut Value) {
    let mut finalizers = metadata::finalizers(old);
    if !finalizers.iter().any(|finalizer| finalizer == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    metadata::set_finalizers(definition, finalizers);
    metadata::set(definition, "generation", old["metadata"].get("generation").cloned());
    metadata::set(definition, "deletionGracePeriodSeconds", None);
    let now = metadata::text(definition, "deletionTimestamp").to_owned();
    let terminating = Condition {
        kind: "Terminating",
        status: "True",
        reason: "InstanceDeletionPending",
        message: "CustomResourceDefinition marked for deletion; CustomResource deletion will \
                  begin soon",
    };
    set_condition(definition, terminating, &now);
}

/// Puts back what of a definition's status only the server sets.
pub(super) fn keep_own_status(old: &Value, new: &mut Value) {
    let own = |condition: &&Value| OWN_CONDITIONS.iter().any(|own| condition["type"] == *own);
    let conditions =
        |object: &Value| object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let kept = conditions(old);
    let added = conditions(new);
    let all: Vec<&Value> =
        kept.iter().filter(own).chain(added.iter().filter(|other| !own(other))).collect();
    metadata::set_at(new, "status.conditions", json!(all));
    metadata::set_at(new, "status.acceptedNames", old["status"]["acceptedNames"].clone());
    remember_stored_version(new);
}

/// A version that was once stored stays listed until someone migrates and says so.
fn remember_stored_version(definition: &mut Value) {
    let Some(version) = definitions::storage_version(definition).map(str::to_owned) else { return };
    let stored = definition["status"]["storedVersions"].as_array().cloned();
    let mut stored = stored.unwrap_or_default();
    if !stored.iter().any(|known| *known == version) {
        stored.push(version.into());
    }
    definition["status"]["storedVersions"] = stored.into();
}

pub(super) fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// What a condition says.
#[derive(Clone, Copy)]
struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

/// Sets a condition. The time of the last transition stays if its status does.
fn set_condition(definition: &mut Value, condition: Condition<'_>, now: &str) {
    let Condition { kind, status, reason, message } = condition;
    if !definition["status"]["conditions"].is_array() {
        metadata::set_at(definition, "status.conditions", json!([]));
    }
    let Some(conditions) = definition["status"]["conditions"].as_array_mut() else { return };
    let old = conditions.iter().position(|condition| condition["type"] == kind);
    let mut new = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now,
    });
    match old {
        Some(index) => {
            if conditions[index]["status"] == status {
                new["lastTransitionTime"] = conditions[index]["lastTransitionTime"].clone();
            }
            conditions[index] = new;
        }
        None => conditions.push(new),
    }
}
