//! Custom resource definitions: objects that change what is served.
//!
//! A definition is an object like any other. When it is written its status says whether its
//! names are accepted, and when the write is done, before the client hears of it, the registry
//! serves what it says. When it is deleted, its instances go first, then the definition, then
//! the resource.
//!
//! Other servers over the same store write definitions, too: [`crate::follow`] tells of them, and
//! whoever is about to write one looks at them all first.

mod effects;
mod ending;
mod names;
mod serving;

use serde_json::{Value, json};
use steersman_rules::kinds::custom_resource_definition::{self as definitions, complete};

use crate::state::Server;
use steersman_rules::metadata;

pub(crate) use effects::{Definitions, Instances};
pub(crate) use ending::{needs_care, tend};
pub(crate) use serving::{folder, followed, refresh};

/// Holds a definition until its instances are gone.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The conditions that the server sets, and nobody else.
const OWN_CONDITIONS: [&str; 3] = ["NamesAccepted", "Established", "Terminating"];

const GROUP: &str = "apiextensions.k8s.io";
const PLURAL: &str = "customresourcedefinitions";

/// Completes a definition that is about to be written: names and status.
fn prepare(server: &Server, definition: &mut Value, now: &str) {
    complete(definition);
    let conflict = names::conflict(&server.registry.table(), definition);
    let accepted = definition["spec"]["names"].clone();
    match conflict {
        None => {
            set_condition(
                definition,
                now,
                ["NamesAccepted", "True", "NoConflicts", "no conflicts found"],
            );
            let message = "the initial names have been accepted";
            set_condition(
                definition,
                now,
                ["Established", "True", "InitialNamesAccepted", message],
            );
            definition["status"]["acceptedNames"] = accepted;
        }
        Some((reason, message)) => {
            set_condition(definition, now, ["NamesAccepted", "False", reason, &message]);
            if !is_established(definition) {
                let message = "not all names are accepted";
                set_condition(definition, now, ["Established", "False", "NotAccepted", message]);
                definition["status"]["acceptedNames"] = json!({"plural": "", "kind": ""});
            }
        }
    }
    remember_stored_version(definition);
}

/// Says of a definition whose deletion begins that it does, and holds it until its instances are
/// gone. Nothing else of it changes.
fn begin_deletion(old: &Value, definition: &mut Value) {
    let mut finalizers = metadata::finalizers(old);
    if !finalizers.iter().any(|finalizer| finalizer == CLEANUP) {
        finalizers.push(CLEANUP.to_owned());
    }
    metadata::set_finalizers(definition, finalizers);
    metadata::set(definition, "generation", old["metadata"].get("generation").cloned());
    metadata::set(definition, "deletionGracePeriodSeconds", None);
    let now = metadata::text(definition, "deletionTimestamp").to_owned();
    let message = "CustomResourceDefinition marked for deletion; \
                   CustomResource deletion will begin soon";
    let condition = ["Terminating", "True", "InstanceDeletionPending", message];
    set_condition(definition, &now, condition);
}

/// Puts back what of a definition's status only the server sets.
fn keep_own_status(old: &Value, new: &mut Value) {
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

fn is_established(definition: &Value) -> bool {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().any(|c| c["type"] == "Established" && c["status"] == "True")
}

/// Sets a condition, given as type, status, reason and message.
fn set_condition(definition: &mut Value, now: &str, condition: [&str; 4]) {
    let [kind, status, reason, message] = condition;
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
