//! What is known of one audited request, from its first stage to its last.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::event::{
    AuthenticationMetadata, Event, Json, ObjectReference, ResponseStatus, UserInfo,
};
use super::policy::{Level, Stage, Verdict};
use super::{Audit, source};
use crate::authz::{Attributes, Decision, Target};
use crate::request::{Query, Segment, decode, is_long_running, segments};
use crate::status::Status;
use crate::user::User;

/// What is there of a request before anybody has looked at it.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    /// Who has sent it.
    pub(crate) peer: Option<IpAddr>,
    /// Whom it comes from; nobody if its credentials are not good.
    pub(crate) user: Option<&'a User>,
}

/// How a request ended that nobody was found behind.
#[derive(Clone, Copy)]
pub(crate) struct Refused {
    /// Whether its connection had shown a certificate.
    pub(crate) certificate: bool,
    pub(crate) code: u16,
}

/// What is known of one audited request.
pub(crate) struct Trail {
    audit: Arc<Audit>,
    verdict: Verdict,
    /// Whether the request goes on until one side ends it.
    is_long: bool,
    event: Mutex<Event>,
}

/// What objects say of themselves.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
}

impl Audit {
    /// A request has come, and is told of if the policy wants that.
    pub(crate) fn begin(self: &Arc<Self>, head: Head<'_>, id: &HeaderValue) -> Option<Audited> {
        let trail = self.trail(head, id)?;
        trail.reach(Stage::RequestReceived);
        Some(Audited(Some(trail)))
    }

    /// A request has come that nobody was found behind, and was refused.
    pub(crate) fn refused(self: &Arc<Self>, head: Head<'_>, id: &HeaderValue, refused: Refused) {
        let Some(trail) = self.trail(head, id) else { return };
        let Refused { certificate, code } = refused;
        let message = source::attempted(head.headers, head.uri, certificate);
        let status = ResponseStatus { message, code, ..ResponseStatus::default() };
        trail.event().response_status = Some(status);
        trail.reach(Stage::ResponseStarted);
    }

    fn trail(self: &Arc<Self>, head: Head<'_>, id: &HeaderValue) -> Option<Arc<Trail>> {
        let Head { method, uri, headers, peer, user } = head;
        let whole = decode(uri.path()).unwrap_or(Cow::Borrowed(uri.path()));
        let path = segments(uri.path()).unwrap_or_default();
        let query = Query::parse(uri.query().unwrap_or(""));
        let nobody = User::default();
        let asked = Attributes::of_request(user.unwrap_or(&nobody), method, &whole, &path, &query);
        let verdict = self.policy.judge(user, &asked);
        self.numbers.levels[verdict.level as usize].increment();
        if verdict.level == Level::None {
            return None;
        }
        let event = Event {
            level: verdict.level,
            audit_id: id.to_str().unwrap_or_default().into(),
            request_uri: source::request_uri(uri),
            verb: asked.verb.to_owned(),
            user: user.map(UserInfo::from).unwrap_or_default(),
            source_ips: source::addresses(headers, peer),
            user_agent: source::user_agent(headers),
            object_ref: reference(&asked, &path),
            request_received_timestamp: told((self.clock)()),
            ..Event::default()
        };
        let is_long = is_long_running(&path, &query);
        let audit = Arc::clone(self);
        Some(Arc::new(Trail { audit, verdict, is_long, event: Mutex::new(event) }))
    }
}

/// What the path of a request names.
fn reference(asked: &Attributes<'_>, path: &[Segment<'_>]) -> Option<ObjectReference> {
    let Target::Resource { group, resource, subresource, namespace, name } = asked.target else {
        return None;
    };
    let version = path.get(if path.first()? == "api" { 1 } else { 2 })?;
    Some(ObjectReference {
        resource: resource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        api_group: group.to_owned(),
        api_version: version.to_string(),
        subresource: subresource.to_owned(),
        ..ObjectReference::default()
    })
}

/// A moment, as events tell it.
fn told(moment: Timestamp) -> String {
    moment.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

impl Trail {
    fn event(&self) -> MutexGuard<'_, Event> {
        self.event.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the body of the request is told.
    pub(crate) fn wants_request(&self) -> bool {
        self.verdict.level >= Level::Request
    }

    /// Whether that of the answer is.
    pub(crate) fn wants_response(&self) -> bool {
        self.verdict.level >= Level::RequestResponse
    }

    /// Adds what somebody has to say who has a say in the request. What was said first stays.
    pub(crate) fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        self.event().annotations.entry(key.into()).or_insert_with(|| value.into());
    }

    /// Whether the request was allowed, and why.
    pub(crate) fn decided(&self, decision: &Decision) {
        let word = if decision.allowed { "allow" } else { "forbid" };
        self.annotate("authorization.k8s.io/decision", word);
        self.annotate("authorization.k8s.io/reason", decision.reason.as_str());
    }

    /// The user acts as another, by a constrained verb or by the one that allows everything.
    pub(crate) fn acts_as(&self, user: &User, constraint: Option<String>) {
        let mut event = self.event();
        event.impersonated_user = Some(UserInfo::from(user));
        let known = constraint
            .map(|constraint| AuthenticationMetadata { impersonation_constraint: constraint });
        event.authentication_metadata = known;
    }

    /// What an object that was sent says of itself: names and versions, nothing else.
    pub(crate) fn sent_named(&self, body: &[u8]) {
        let Ok(Named { metadata }) = serde_json::from_slice(body) else { return };
        let mut event = self.event();
        let Some(known) = &mut event.object_ref else { return };
        let fields = [
            (&mut known.name, metadata.name),
            (&mut known.namespace, metadata.namespace),
            (&mut known.uid, metadata.uid),
            (&mut known.resource_version, metadata.resource_version),
        ];
        for (field, given) in fields {
            if field.is_empty() {
                *field = given.unwrap_or_default();
            }
        }
    }

    /// An object was sent.
    pub(crate) fn sent(&self, mut object: Value) {
        self.sent_named(object.to_string().as_bytes());
        if self.wants_request() {
            self.without_managers(&mut object);
            self.event().request_object = Json::of(object.to_string().as_bytes());
        }
    }

    /// A patch was sent, in JSON.
    pub(crate) fn sent_patch(&self, patch: &[u8]) {
        if self.wants_request() {
            self.event().request_object = Json::of(patch);
        }
    }

    /// A document is answered.
    pub(crate) fn answers(&self, json: &[u8]) {
        if !self.wants_response() {
            return;
        }
        let object = if self.verdict.omit_managed_fields {
            let mut object: Value = serde_json::from_slice(json).unwrap_or_default();
            self.without_managers(&mut object);
            Json::of(object.to_string().as_bytes())
        } else {
            Json::of(json)
        };
        self.event().response_object = object;
    }

    /// A Status is answered, which is not a failure.
    pub(crate) fn answers_status(&self, document: &Value) {
        if let Some(status) = ResponseStatus::of_document(document) {
            self.event().response_status = Some(status);
        }
    }

    /// The request failed.
    pub(crate) fn fails(&self, status: &Status) {
        self.event().response_status = Some(status.into());
        if self.wants_response() {
            self.answers(status.to_value().to_string().as_bytes());
        }
    }

    /// Takes out who owns which fields, if nobody wants to know.
    fn without_managers(&self, object: &mut Value) {
        if !self.verdict.omit_managed_fields {
            return;
        }
        forget_managers(object);
        for item in object["items"].as_array_mut().into_iter().flatten() {
            forget_managers(item);
        }
        for row in object["rows"].as_array_mut().into_iter().flatten() {
            forget_managers(&mut row["object"]);
        }
    }

    /// Tells of a stage, unless nobody wants to know of it.
    fn reach(&self, stage: Stage) {
        if self.verdict.omitted.contain(stage) {
            return;
        }
        let mut event = self.event();
        event.stage = stage;
        event.stage_timestamp = match stage {
            Stage::RequestReceived => event.request_received_timestamp.clone(),
            _ => told((self.audit.clock)()),
        };
        self.audit.tell(&event);
    }
}

fn forget_managers(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}

/// A request whose last stage is yet to be told. When it is dropped, that is the end of it.
pub(crate) struct Audited(Option<Arc<Trail>>);

impl Audited {
    /// The trail, for those who add to it.
    pub(crate) fn trail(&self) -> Option<&Arc<Trail>> {
        self.0.as_ref()
    }

    /// The answer begins. Says whether it then goes on until one side ends it.
    pub(crate) fn answered(&self, code: StatusCode) -> bool {
        let Some(trail) = &self.0 else { return false };
        trail.event().response_status.get_or_insert_default().code = code.as_u16();
        if trail.is_long {
            trail.reach(Stage::ResponseStarted);
        }
        trail.is_long
    }

    /// The server has failed over it.
    pub(crate) fn panicked(mut self, why: &str) {
        let Some(trail) = self.0.take() else { return };
        let mut status = ResponseStatus::from(&Status::internal(""));
        status.message = format!("APIServer panic'd: {why}");
        status.details = None;
        trail.event().response_status = Some(status);
        trail.reach(Stage::Panic);
    }
}

impl Drop for Audited {
    fn drop(&mut self) {
        let Some(trail) = self.0.take() else { return };
        let is_answered = trail.event().response_status.is_some();
        if !is_answered {
            let status = ResponseStatus {
                status: "Success".to_owned(),
                message: "Connection closed early".to_owned(),
                code: 200,
                ..ResponseStatus::default()
            };
            trail.event().response_status = Some(status);
            if trail.is_long {
                trail.reach(Stage::ResponseStarted);
            }
        }
        trail.reach(Stage::ResponseComplete);
    }
}
