//! `Event` of `audit.k8s.io/v1`: what is told of one stage of one request.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::policy::{Level, Stage};
use crate::status::{Details, Status};
use crate::user::User;

/// What is told of one stage of one request.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// How much is told.
    pub level: Level,
    /// What all events of the request have in common.
    #[serde(rename = "auditID")]
    pub audit_id: String,
    /// How far the request is.
    pub stage: Stage,
    /// Path and query. What a query says of tokens is left out.
    #[serde(rename = "requestURI")]
    pub request_uri: String,
    /// The verb, as rules name it.
    pub verb: String,
    /// Whom the request comes from.
    pub user: UserInfo,
    /// Whom that one acts as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impersonated_user: Option<UserInfo>,
    /// What else is known of how the user was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication_metadata: Option<AuthenticationMetadata>,
    /// Where the request comes from, and which proxies it has passed.
    #[serde(rename = "sourceIPs", skip_serializing_if = "Vec::is_empty")]
    pub source_ips: Vec<String>,
    /// The client, as it names itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user_agent: String,
    /// What the request is about, if that is an object or several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object_ref: Option<ObjectReference>,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_status: Option<ResponseStatus>,
    /// What was sent, from [`Level::Request`] on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_object: Option<Json>,
    /// What was answered, from [`Level::RequestResponse`] on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_object: Option<Json>,
    /// When the request came.
    pub request_received_timestamp: String,
    /// When it reached the stage.
    pub stage_timestamp: String,
    /// What those have to say who had a say in the request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// A user.
#[derive(Clone, Debug, Default, Serialize)]
pub struct UserInfo {
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// What else is unique about the user.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// What else is known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

impl From<&User> for UserInfo {
    fn from(user: &User) -> Self {
        let User { name, groups, uid, extra } = user.clone();
        Self { username: name, uid, groups, extra }
    }
}

/// What else is known of how the user was found.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticationMetadata {
    /// The verb that allowed to act as another user, if it is one of the constrained ones.
    pub impersonation_constraint: String,
}

/// What a request is about.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    /// The plural name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource: String,
    /// The namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The uid that the body names.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The API group; empty for core.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_group: String,
    /// The version.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// The resource version that the body names.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// What stands behind the name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
}

/// What came of a request: of an answer that is no `Status`, the code alone.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ResponseStatus {
    pub(super) metadata: Nothing,
    /// `Success` or `Failure`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub status: String,
    /// The text for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The reason for programs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Details>>,
    /// The HTTP status code.
    pub code: u16,
}

/// An object without fields.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Nothing {}

impl From<&Status> for ResponseStatus {
    fn from(status: &Status) -> Self {
        Self {
            status: "Failure".to_owned(),
            message: status.message.clone(),
            reason: status.reason.to_string(),
            details: status.details.clone(),
            code: status.code,
            ..Self::default()
        }
    }
}

impl ResponseStatus {
    /// Reads a document that is a Status.
    pub(super) fn of_document(document: &Value) -> Option<Self> {
        let text = |field: &str| document[field].as_str().unwrap_or_default().to_owned();
        let details = document.get("details").cloned();
        (document["kind"] == "Status").then(|| Self {
            status: text("status"),
            message: text("message"),
            reason: text("reason"),
            details: details.and_then(|details| serde_json::from_value(details).ok()),
            ..Self::default()
        })
    }
}

/// A body, as JSON.
#[derive(Clone, Debug)]
pub struct Json(Arc<RawValue>);

impl Json {
    /// The body of these bytes, if they are JSON.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Box<RawValue>>(bytes).ok().map(|raw| Self(raw.into()))
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        (*self.0).serialize(serializer)
    }
}

/// An event as it stands by itself.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole<'a> {
    kind: &'static str,
    api_version: &'static str,
    #[serde(flatten)]
    event: &'a Event,
}

impl Event {
    /// The event as a line of a log, without its end.
    pub fn to_json(&self) -> String {
        let whole = Whole { kind: "Event", api_version: "audit.k8s.io/v1", event: self };
        serde_json::to_string(&whole).unwrap_or_default()
    }

    /// About how much memory it takes.
    pub(super) fn size(&self) -> usize {
        let bodies = [&self.request_object, &self.response_object].into_iter().flatten();
        let bodies: usize = bodies.map(|body| body.text().len()).sum();
        let notes: usize =
            self.annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
        1024 + self.request_uri.len() + self.audit_id.len() + notes + bodies
    }
}

/// Events as a webhook gets them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventList<'a> {
    kind: &'static str,
    api_version: &'static str,
    metadata: Nothing,
    items: Vec<&'a Event>,
}

impl<'a> EventList<'a> {
    pub(super) fn of(events: &'a [Arc<Event>]) -> Self {
        let items = events.iter().map(|event| &**event).collect();
        Self { kind: "EventList", api_version: "audit.k8s.io/v1", metadata: Nothing {}, items }
    }
}
