//! The condition `Available` of APIServices.

use std::sync::Arc;

use serde_json::{Value, json};
use steersman_rules::metadata;
use steersman_rules::resource::Place;

use super::resource;
use crate::state::Server;
use crate::status::Result;
use crate::write::{Writer, change};

/// What is to be said about an APIService.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Availability {
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

impl Availability {
    pub(super) fn yes(reason: &'static str, message: &str) -> Self {
        Self { status: "True", reason, message: message.to_owned() }
    }

    pub(super) fn no(reason: &'static str, message: String) -> Self {
        Self { status: "False", reason, message }
    }

    pub(super) fn unknown(reason: &'static str, message: String) -> Self {
        Self { status: "Unknown", reason, message }
    }

    pub(super) fn is_yes(&self) -> bool {
        self.status == "True"
    }

    /// Whether an object says so already.
    fn is_told(&self, object: &Value) -> bool {
        available(object).is_some_and(|told| {
            told["status"] == self.status
                && told["reason"] == self.reason
                && told["message"] == self.message.as_str()
        })
    }

    /// Says so. The time is that of the last change of the status.
    fn put_into(&self, object: &mut Value, now: &str) {
        let same = available(object).filter(|told| told["status"] == self.status);
        let since = same.map_or(now.into(), |told| told["lastTransitionTime"].clone());
        let condition = json!({
            "type": "Available", "status": self.status, "lastTransitionTime": since,
            "reason": self.reason, "message": self.message,
        });
        let status = &mut object["status"];
        if !status["conditions"].is_array() {
            status["conditions"] = json!([]);
        }
        let conditions = status["conditions"].as_array_mut().expect("it was just made one");
        match conditions.iter_mut().find(|told| told["type"] == "Available") {
            Some(told) => *told = condition,
            None => conditions.push(condition),
        }
    }
}

fn available(object: &Value) -> Option<&Value> {
    let mut conditions = object["status"]["conditions"].as_array()?.iter();
    conditions.find(|condition| condition["type"] == "Available")
}

/// Whether an APIService says that it is available.
pub(super) fn is_available(object: &Value) -> bool {
    available(object).is_some_and(|condition| condition["status"] == "True")
}

/// What is said of an APIService that leads nowhere else: reason and message.
pub(super) const LOCAL: (&str, &str) = ("Local", "Local APIServices are always available");

/// What is said of one whose server answers.
pub(super) const PASSED: (&str, &str) = ("Passed", "all checks passed");

/// Says of an APIService that it leads nowhere else, and so is available.
pub(super) async fn tell_local(server: &Arc<Server>, object: &Value) {
    tell_always(server, object, LOCAL).await;
}

/// Says of an APIService that its server belongs to this one, and so is available.
pub(super) async fn tell_passed(server: &Arc<Server>, object: &Value) {
    tell_always(server, object, PASSED).await;
}

async fn tell_always(
    server: &Arc<Server>,
    object: &Value,
    (reason, message): (&'static str, &'static str),
) {
    let always = Availability::yes(reason, message);
    if always.is_told(object) {
        return;
    }
    let name = metadata::text(object, "name");
    if let Err(error) = tell(server, name, &always).await {
        tracing::warn!(%error, name, "cannot write the condition of an APIService");
    }
}

/// Says it, where it is not said yet.
pub(super) async fn tell(server: &Arc<Server>, name: &str, said: &Availability) -> Result<()> {
    let resource = resource(server)?;
    let writer =
        Writer { trusted: true, subresource: "status", ..Writer::internal(server, &resource) };
    let told = change::change(&writer, Place { namespace: "", name }, |old| {
        let mut new = old.clone();
        if !said.is_told(old) {
            said.put_into(&mut new, &writer.now);
            writer.track(Some(old), &mut new);
        }
        Ok(new)
    });
    match told.await {
        // Gone this very moment.
        Err(status) if status.code == 404 => Ok(()),
        told => told.map(drop),
    }
}
