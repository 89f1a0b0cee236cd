//! Certificate signing requests: they say who asks for the certificate; who approves does not
//! sign, and who signs does not approve.
//!
//! `approval` writes the conditions and leaves the certificate; `status` writes the certificate
//! and leaves the decision. What holds of a request through either path, its rules check.

use futures::future::{self, BoxFuture};
use serde_json::Value;
use steersman_rules::field::FieldError;

use crate::document::items;
use crate::state::effects::{Effects, Write};
use crate::status::Result;
use crate::user::User;

const DECISIONS: [&str; 2] = ["Approved", "Denied"];

/// What requests for certificates say by themselves.
pub(super) struct SigningRequests;

impl Effects for SigningRequests {
    fn prepare(&self, write: Write<'_>, old: Option<&Value>, new: &mut Value) {
        if let (None, Some(user)) = (old, write.user) {
            sign(new, user);
        }
    }

    fn prepare_part(&self, write: Write<'_>, old: &Value, new: &mut Value) {
        match write.subresource {
            "approval" => stamp(old, new, write.now),
            "status" => keep_decision(old, new, write.now),
            _ => {}
        }
    }

    fn validate<'a>(
        &'a self,
        write: Write<'a>,
        old: Option<&'a Value>,
        new: &'a Value,
    ) -> BoxFuture<'a, Result<Vec<FieldError>>> {
        let old = old.filter(|_| write.subresource == "status");
        let errors = old.map_or_else(Vec::new, |old| added_decisions(old, new));
        Box::pin(future::ready(Ok(errors)))
    }
}

/// Writes into a signing request who asks for the certificate, whatever the client says.
fn sign(request: &mut Value, user: &User) {
    let Some(spec) = request.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    for (field, value) in user.to_fields() {
        spec.insert(field.to_owned(), value);
    }
}

/// Puts the decision back into a request whose status was written, unless one was added or
/// removed, which is refused.
fn keep_decision(old: &Value, new: &mut Value, now: &str) {
    for decision in DECISIONS {
        let kept: Vec<Value> = of_type(old, decision).into_iter().cloned().collect();
        if kept.len() != of_type(new, decision).len() {
            continue;
        }
        let conditions = conditions_mut(new);
        let slots = conditions.filter(|condition| condition["type"] == decision);
        slots.zip(kept).for_each(|(slot, kept)| *slot = kept);
    }
    stamp(old, new, now);
}

/// Who writes the status does not decide.
fn added_decisions(old: &Value, new: &Value) -> Vec<FieldError> {
    let added = |kind: &&str| of_type(new, kind).len() > of_type(old, kind).len();
    let refused = |kind| {
        let why = format!("updates may not add a condition of type {kind:?}");
        FieldError::forbidden("status.conditions", &why)
    };
    DECISIONS.into_iter().filter(added).map(refused).collect()
}

/// Gives conditions the times that the client left out.
fn stamp(old: &Value, new: &mut Value, now: &str) {
    let before = items(&old["status"]["conditions"]);
    let conditions = conditions_mut(new);
    for condition in conditions.filter(|condition| condition.is_object()) {
        if condition["lastUpdateTime"].is_null() {
            condition["lastUpdateTime"] = now.into();
        }
        if condition["lastTransitionTime"].is_null() {
            let same =
                |c: &&Value| c["type"] == condition["type"] && c["status"] == condition["status"];
            let since = before.iter().find(same).map(|c| c["lastTransitionTime"].clone());
            condition["lastTransitionTime"] =
                since.filter(|time| !time.is_null()).unwrap_or_else(|| now.into());
        }
    }
}

/// The conditions to write to; none where there are none.
fn conditions_mut(request: &mut Value) -> impl Iterator<Item = &mut Value> {
    let list = request.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
    list.into_iter().flatten()
}

fn of_type<'a>(request: &'a Value, kind: &str) -> Vec<&'a Value> {
    items(&request["status"]["conditions"]).iter().filter(|c| c["type"] == kind).collect()
}
