//! What of a definition only the server says: whether its names are accepted, whether it is being
//! deleted, in which versions its instances were ever stored.

use serde_json::{Value, json};
use steersman_rules::apply::{Sole, Track, track};
use steersman_rules::kinds::custom_resource_definition::{
    self as definitions, approval, bundle_mistake, complete, is_established,
};
use steersman_rules::metadata;

use super::{CLEANUP, names};
use crate::state::Server;
use crate::state::effects::Write;

/// The conditions that the server sets, and nobody else.
const OWN_CONDITIONS: [&str; 5] = [
    "KubernetesAPIApprovalPolicyConformant",
    "NamesAccepted",
    "Established",
    "NonStructuralSchema",
    "Terminating",
];

/// Completes a definition that is about to be written: names and status.
pub(super) fn prepare(server: &Server, definition: &mut Value, now: &str) {
    complete(definition);
    tell_approval(definition, now);
    let naming = names::negotiate(&server.registry.table(), definition);
    let (reason, message) =
        naming.conflict.unwrap_or(("NoConflicts", "no conflicts found".to_owned()));
    let is_free = reason == "NoConflicts";
    let status = if is_free { "True" } else { "False" };
    let accepted = Condition { kind: "NamesAccepted", status, reason, message: &message };
    set_condition(definition, accepted, now);
    if let Some(established) = established(definition, is_free) {
        set_condition(definition, established, now);
    }
    metadata::set_at(definition, "status.acceptedNames", naming.accepted);
    remember_stored_version(definition);
}

/// Notes that the server owns what it now says in the status. In Kubernetes it writes that a moment after
/// the client, by the same name; whoever applies something else conflicts with it.
pub(super) fn note_owner(write: Write<'_>, mut before: Value, definition: &mut Value) {
    let after = definition["status"].clone();
    // What was stored in which versions is said without any owner.
    before["storedVersions"] = after["storedVersions"].clone();
    if before == after {
        return;
    }
    let managers = definition["metadata"]["managedFields"].clone();
    let owned = |status: Value| json!({"metadata": {"managedFields": managers}, "status": status});
    let live = owned(before);
    let mut new = owned(after);
    track(Track {
        live: Some(&live),
        new: &mut new,
        manager: "kube-apiserver",
        subresource: "status",
        api_version: &write.resource.api_version(),
        now: write.now,
        schema: &write.resource.schema,
        versions: &Sole,
        resets: &[],
    });
    if let Some(managers) = new["metadata"].get_mut("managedFields").map(Value::take) {
        definition["metadata"]["managedFields"] = managers;
    }
}

/// Whether a definition is served now; `None` if that is as it was. What is served once stays so.
fn established(definition: &Value, is_free: bool) -> Option<Condition<'static>> {
    let not = |reason, message| Condition { kind: "Established", status: "False", reason, message };
    if is_established(definition) {
        None
    } else if !is_free {
        let is_told = condition(definition, "Established").is_some();
        (!is_told).then(|| not("NotAccepted", "not all names are accepted"))
    } else if bundle_mistake(definition).is_some() {
        Some(not("InvalidCABundle", "The conversion webhook CABundle is invalid"))
    } else {
        Some(Condition {
            kind: "Established",
            status: "True",
            reason: "InitialNamesAccepted",
            message: "the initial names have been accepted",
        })
    }
}

fn tell_approval(definition: &mut Value, now: &str) {
    let Some(approval) = approval(definition) else { return };
    let (status, reason) = approval.condition();
    let message = approval.message(definition);
    let kind = "KubernetesAPIApprovalPolicyConformant";
    set_condition(definition, Condition { kind, status, reason, message: &message }, now);
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
    set_condition(definition, Termination::Pending.condition(), &now);
}

/// How far the end of a definition is.
#[derive(Debug)]
pub(super) enum Termination {
    /// Nothing was done yet.
    Pending,
    /// Its instances are being deleted.
    InProgress,
    /// They could not all be deleted, and why.
    Failed(String),
    /// They are deleted, but not gone, and why that is not known.
    Check(String),
    /// They are gone.
    Completed,
    /// There can be none.
    NeverEstablished,
}

impl Termination {
    pub(super) fn condition(&self) -> Condition<'_> {
        let (status, reason, message) = match self {
            Self::Pending => (
                "True",
                "InstanceDeletionPending",
                "CustomResourceDefinition marked for deletion; CustomResource deletion will begin \
                 soon",
            ),
            Self::InProgress => {
                ("True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
            }
            Self::Failed(why) => ("True", "InstanceDeletionFailed", why.as_str()),
            Self::Check(why) => ("True", "InstanceDeletionCheck", why.as_str()),
            Self::Completed => ("False", "InstanceDeletionCompleted", "removed all instances"),
            Self::NeverEstablished => {
                ("False", "NeverEstablished", "resource was never established")
            }
        };
        Condition { kind: "Terminating", status, reason, message }
    }
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
    // Whoever says which versions are stored is believed; something is.
    if new["status"]["storedVersions"].as_array().is_none_or(Vec::is_empty) {
        remember_stored_version(new);
    }
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

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = definition["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == kind)
}

/// What a condition says.
#[derive(Clone, Copy)]
pub(super) struct Condition<'a> {
    kind: &'a str,
    status: &'a str,
    reason: &'a str,
    message: &'a str,
}

/// Sets a condition. The time of the last transition stays if its status does.
pub(super) fn set_condition(definition: &mut Value, condition: Condition<'_>, now: &str) {
    let Condition { kind, status, reason, message } = condition;
    if !definition["status"]["conditions"].is_array() {
        metadata::set_at(definition, "status.conditions", json!([]));
    }
    let Some(conditions) = definition["status"]["conditions"].as_array_mut() else { return };
    let Some(old) = conditions.iter_mut().find(|condition| condition["type"] == kind) else {
        return conditions.push(json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastTransitionTime": now,
        }));
    };
    if old["status"] != status {
        old["lastTransitionTime"] = now.into();
    }
    for (field, text) in [("status", status), ("reason", reason), ("message", message)] {
        old[field] = text.into();
    }
}
