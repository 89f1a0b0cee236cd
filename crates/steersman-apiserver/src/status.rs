//! The one error of the wire: `metav1.Status`, worded as Kubernetes words it.
//!
//! Clients branch on `reason`, tools grep `message`, so both are fixed here and nowhere else.
//! [`From<StoreError>`] is the only place where a failure of the store becomes an answer.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use steersman_store::StoreError;

use steersman_rules::field::FieldError;
pub use steersman_rules::resource::Named;
use steersman_rules::schema::DefaultsTooLarge;
use steersman_rules::selector::InvalidSelector;

/// The result of anything that can be answered with a [`Status`].
pub type Result<T, E = Status> = std::result::Result<T, E>;

/// The text of a conflict between two writers.
pub const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

/// How many mistakes of one object an answer tells.
const CAUSES_MAX: usize = 1000;

/// The start of what whoever creates an object is told whose namesake is being deleted.
const GOING: &str = "object is being deleted: ";

/// The end of what whoever creates an object is told whose name was to be generated.
const NOT_GENERATED: &str = ", the server was not able to generate a unique name for the object";

/// The largest request body, in bytes.
pub const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// A failed request, as the client sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The HTTP status code.
    pub code: u16,
    /// The machine-readable reason, such as `NotFound`.
    pub reason: Cow<'static, str>,
    /// The text for people.
    pub message: String,
    /// What it is about.
    pub details: Option<Box<Details>>,
    /// A token to go on with, when a paged list expired.
    pub continue_token: Option<String>,
}

/// What a [`Status`] is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    /// The object's name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The resource, or the kind for [`Status::invalid`].
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// The object's uid.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The single reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<Cause>,
    /// When to try again.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One reason among several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// The machine-readable reason, such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The text for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The field it concerns.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

fn details(what: Named<'_>, causes: Vec<Cause>) -> Details {
    Details {
        name: what.name.to_owned(),
        group: what.group.to_owned(),
        kind: what.resource.to_owned(),
        causes,
        ..Details::default()
    }
}

impl Status {
    /// 404: the object does not exist.
    pub fn not_found(what: Named<'_>) -> Self {
        let message = format!("{} {:?} not found", what.qualified(), what.name);
        Self::about(404, "NotFound", message, details(what, Vec::new()))
    }

    /// 404: the path names nothing that is served.
    pub fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource".to_owned();
        Self::about(404, "NotFound", message, Details::default())
    }

    /// 501: Kubernetes has this, and this server does not yet.
    pub fn not_implemented(resource: &str, subresource: &str) -> Self {
        let message = format!(
            "{resource}/{subresource} is not supported: this server does not connect to nodes"
        );
        Self::plain(501, "NotImplemented", message)
    }

    /// 409: an object of that name exists.
    pub fn already_exists(what: Named<'_>) -> Self {
        let message = format!("{} {:?} already exists", what.qualified(), what.name);
        Self::about(409, "AlreadyExists", message, details(what, Vec::new()))
    }

    /// 409: an object of that name exists, and the client had let the server make up the name, or
    /// has left what it would have begun with in the object.
    pub(crate) fn not_generated(what: Named<'_>) -> Self {
        let mut status = Self::already_exists(what);
        status.message.push_str(NOT_GENERATED);
        if let Some(details) = &mut status.details {
            details.retry_after_seconds = 1;
        }
        status
    }

    /// Whether this says that an object of that name exists, going or not. Webhooks may refuse
    /// with the same reason, but not with the same answer.
    pub(crate) fn says_taken(&self, what: Named<'_>) -> bool {
        let mut taken = self.clone();
        if let Some(text) = self.message.strip_prefix(GOING) {
            taken.message = text.to_owned();
        }
        taken == Self::already_exists(what) || taken == Self::not_generated(what)
    }

    /// The same of an object that exists, but is being deleted.
    pub(crate) fn of_one_going(mut self) -> Self {
        self.message.insert_str(0, GOING);
        self
    }

    /// 409: a precondition of the write does not hold.
    pub fn conflict(what: Named<'_>, why: &str) -> Self {
        Self::conflict_because(what, why, Vec::new())
    }

    /// 409, with causes such as the field managers of an apply conflict.
    pub fn conflict_because(what: Named<'_>, why: &str, causes: Vec<Cause>) -> Self {
        let subject = what.qualified();
        let message = format!("Operation cannot be fulfilled on {subject} {:?}: {why}", what.name);
        Self::about(409, "Conflict", message, details(what, causes))
    }

    /// 409, with a text of its own: an apply that meets other managers' fields.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::about(409, "Conflict", message, Details { causes, ..Details::default() })
    }

    /// 422: fields are wrong. `what.resource` is the kind.
    pub fn invalid(what: Named<'_>, errors: &[FieldError]) -> Self {
        // Whoever has more mistakes is not helped by hearing of them.
        let errors = &errors[..errors.len().min(CAUSES_MAX)];
        let mut known = HashSet::new();
        let texts = errors.iter().map(FieldError::message);
        let texts: Vec<String> = texts.filter(|text| known.insert(text.clone())).collect();
        let all = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes = errors.iter().map(Cause::of_field).collect();
        let message = format!("{} {:?} is invalid: {all}", what.qualified(), what.name);
        Self::about(422, "Invalid", message, details(what, causes))
    }

    /// 500: the object is too large for the store, in the words of etcd.
    pub(crate) fn unstorable() -> Self {
        Self::failure("etcdserver: request is too large")
    }

    /// 422 without fields: the request is well-formed but cannot be done.
    pub fn unprocessable(message: impl Into<String>) -> Self {
        Self::plain(422, "Invalid", message)
    }

    /// 400: the request is malformed.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::plain(400, "BadRequest", message)
    }

    /// 401: who asks is unknown.
    pub fn unauthorized() -> Self {
        Self::plain(401, "Unauthorized", "Unauthorized")
    }

    /// 403: it may not be done, for this reason.
    pub fn forbidden(what: Named<'_>, why: &str, causes: Vec<Cause>) -> Self {
        let subject = what.qualified();
        let message = if subject.is_empty() {
            format!("forbidden: {why}")
        } else if what.name.is_empty() {
            format!("{subject} is forbidden: {why}")
        } else {
            format!("{subject} {:?} is forbidden: {why}", what.name)
        };
        Self::about(403, "Forbidden", message, details(what, causes))
    }

    /// 410: the revision asked for is no longer known.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::plain(410, "Expired", message)
    }

    /// 405: the resource does not know this verb.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::about(405, "MethodNotAllowed", message.to_owned(), Details::default())
    }

    /// 405, of a resource whose handler knows every method.
    pub(crate) fn verb_not_supported(resource: Named<'_>, verb: &str) -> Self {
        let message =
            format!("{verb} is not supported on resources of kind {:?}", resource.qualified());
        let details = Details { name: String::new(), ..details(resource, Vec::new()) };
        Self::about(405, "MethodNotAllowed", message, details)
    }

    /// 406: no representation is acceptable to the client.
    pub fn not_acceptable(accepted: &[&str]) -> Self {
        let accepted = accepted.join(", ");
        let message = format!("only the following media types are accepted: {accepted}");
        Self::plain(406, "NotAcceptable", message)
    }

    /// 406, with a text of its own.
    pub(crate) fn not_acceptable_because(message: String) -> Self {
        Self::plain(406, "NotAcceptable", message)
    }

    /// 406, where not even the media type is one that the path answers in.
    pub(crate) fn no_route_writes(offered: &[&str]) -> Self {
        let offered = offered.join(", ");
        let message = format!("406: Not Acceptable\n\nAvailable representations: {offered}");
        Self::about(406, "NotAcceptable", message, Details::default())
    }

    /// 415, where not even the media type is one that the path reads.
    pub(crate) fn no_route_reads() -> Self {
        let message = "415: Unsupported Media Type".to_owned();
        Self::about(415, "UnsupportedMediaType", message, Details::default())
    }

    /// 422 without a reason that a client would understand.
    pub(crate) fn rejected() -> Self {
        let message = "the server rejected our request due to an error in our request".to_owned();
        Self::about(422, "Invalid", message, Details::default())
    }

    /// 415: the body is in a format this server does not read.
    pub fn unsupported_media_type(accepted: &[&str]) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Self::plain(415, "UnsupportedMediaType", message)
    }

    /// 413: the body is larger than [`BODY_LIMIT`].
    pub fn too_large() -> Self {
        let message = format!("Request entity too large: limit is {BODY_LIMIT}");
        Self::plain(413, "RequestEntityTooLarge", message)
    }

    /// 429: there is no room for the request now.
    pub(crate) fn too_many_requests() -> Self {
        let details = Details { retry_after_seconds: 1, ..Details::default() };
        let message = "too many requests, please try again later.".to_owned();
        Self::about(429, "TooManyRequests", message, details)
    }

    /// 504: the revision asked for did not come in time.
    pub fn future_revision(requested: u64, current: u64) -> Self {
        let message =
            format!("Timeout: Too large resource version: {requested}, current: {current}");
        let cause = Cause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            ..Cause::default()
        };
        let details = Details { causes: vec![cause], retry_after_seconds: 1, ..Details::default() };
        Self::about(504, "Timeout", message, details)
    }

    /// 504: something did not come in time.
    pub fn timeout(why: &str) -> Self {
        Self::plain(504, "Timeout", format!("Timeout: {why}"))
    }

    /// 503: not now, but perhaps soon.
    pub fn unavailable(why: &str) -> Self {
        let details = Details { retry_after_seconds: 1, ..Details::default() };
        Self::about(503, "ServiceUnavailable", why.to_owned(), details)
    }

    /// 500: the server failed.
    pub fn internal(why: &str) -> Self {
        let cause = Cause { message: why.to_owned(), ..Cause::default() };
        let details = Details { causes: vec![cause], ..Details::default() };
        Self::about(500, "InternalError", format!("Internal error occurred: {why}"), details)
    }

    /// 500 with nothing but a text: what Kubernetes answers to mistakes that it has no answer for.
    pub(crate) fn failure(message: impl Into<String>) -> Self {
        Self::plain(500, "", message)
    }

    /// The document on the wire, as a value.
    pub fn to_value(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn plain(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        let reason = reason.into();
        let message = message.into();
        Self { code, reason, message, details: None, continue_token: None }
    }

    fn about(code: u16, reason: &'static str, message: String, details: Details) -> Self {
        let reason = reason.into();
        let details = Some(Box::new(details));
        Self { code, reason, message, details, continue_token: None }
    }
}

/// The document on the wire, its fields in the order in which Kubernetes writes them.
impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let metadata = self.continue_token.as_ref().map(|token| ("continue", token));
        let metadata: BTreeMap<_, _> = metadata.into_iter().collect();
        let mut document = serializer.serialize_map(None)?;
        document.serialize_entry("kind", "Status")?;
        document.serialize_entry("apiVersion", "v1")?;
        document.serialize_entry("metadata", &metadata)?;
        document.serialize_entry("status", "Failure")?;
        document.serialize_entry("message", &self.message)?;
        if !self.reason.is_empty() {
            document.serialize_entry("reason", &self.reason)?;
        }
        if let Some(details) = &self.details {
            document.serialize_entry("details", details)?;
        }
        document.serialize_entry("code", &self.code)?;
        document.end()
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

impl Cause {
    /// What is said of a namespace that takes nothing new.
    pub(crate) fn no_new_content(namespace: &str) -> String {
        format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        )
    }

    /// A namespace takes nothing new.
    pub(crate) fn namespace_terminating(namespace: &str) -> Self {
        Self {
            reason: "NamespaceTerminating".to_owned(),
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        }
    }

    fn of_field(error: &FieldError) -> Self {
        Self {
            reason: error.reason().to_owned(),
            message: error.text.clone(),
            field: error.field.clone(),
        }
    }
}

impl From<DefaultsTooLarge> for Status {
    /// Nothing of that size could be stored.
    fn from(_: DefaultsTooLarge) -> Self {
        Self::unstorable()
    }
}

impl From<StoreError> for Status {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict { .. } => {
                let message = format!("Operation cannot be fulfilled: {MODIFIED}");
                Self::plain(409, "Conflict", message)
            }
            StoreError::Compacted { .. } => {
                Self::expired("The resourceVersion for the provided list is too old.")
            }
            StoreError::Future { requested, current } => {
                Self::future_revision(requested.0, current.0)
            }
            StoreError::Unavailable { .. } => Self::unavailable(&error.to_string()),
            // Without a time to try again after: a client that does so by itself could do twice
            // what it wants once.
            StoreError::Unknown { .. } => Self::timeout(&error.to_string()),
            StoreError::Refused { ref reason } if is_about_size(reason) => {
                Self::plain(413, "RequestEntityTooLarge", error.to_string())
            }
            StoreError::Full { .. }
            | StoreError::Refused { .. }
            | StoreError::Unreadable { .. }
            | StoreError::Failed { .. } => Self::internal(&error.to_string()),
        }
    }
}

/// Whether a store refuses a write for its size, in the words of the stores there are.
fn is_about_size(reason: &str) -> bool {
    ["too large", "larger than"].iter().any(|words| reason.contains(words))
}

impl From<InvalidSelector> for Status {
    fn from(error: InvalidSelector) -> Self {
        Self::bad_request(error.to_string())
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The text of a panic, for the log.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let owned = || panic.downcast_ref::<String>().map(String::as_str);
    panic.downcast_ref::<&str>().copied().or_else(owned).unwrap_or("a panic without a text")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steersman_rules::field::FieldError;
    use steersman_store::StoreError;

    use super::{Named, Status};

    const WEB: Named<'_> = Named { group: "apps", resource: "Deployment", name: "web" };

    #[test]
    fn what_takes_a_connection_to_a_node_says_so_of_any_node() {
        let status = Status::not_implemented("pods", "exec");
        let message = "pods/exec is not supported: this server does not connect to nodes";
        assert_eq!((status.code, status.message.as_str()), (501, message));
    }

    #[test]
    fn whoever_meets_a_namesake_is_told_so_in_four_ways() {
        let (exists, generated) = (Status::already_exists(WEB), Status::not_generated(WEB));
        for (status, message, retry) in [
            (exists.clone(), "Deployment.apps \"web\" already exists", None),
            (
                exists.of_one_going(),
                "object is being deleted: Deployment.apps \"web\" already exists",
                None,
            ),
            (
                generated.clone(),
                "Deployment.apps \"web\" already exists, the server was not able to generate a \
                 unique name for the object",
                Some(1),
            ),
            (
                generated.of_one_going(),
                "object is being deleted: Deployment.apps \"web\" already exists, the server was \
                 not able to generate a unique name for the object",
                Some(1),
            ),
        ] {
            assert!(status.says_taken(WEB), "{status}");
            let told = status.to_value();
            assert_eq!((&told["code"], &told["reason"]), (&json!(409), &json!("AlreadyExists")));
            assert_eq!(status.message, message);
            assert_eq!(told["details"]["retryAfterSeconds"].as_u64(), retry);
        }
        let other = Named { name: "other", ..WEB };
        assert!(!Status::not_generated(other).says_taken(WEB));
        assert!(!Status::conflict(WEB, "why").says_taken(WEB));
    }

    #[test]
    fn one_field_error_stands_alone_and_several_stand_in_brackets() {
        let negative = FieldError::invalid("spec.replicas", &json!(-1), "must be positive");
        let missing = FieldError::required("spec.selector", "");
        let one = Status::invalid(WEB, std::slice::from_ref(&negative));
        assert_eq!(
            one.message,
            "Deployment.apps \"web\" is invalid: spec.replicas: Invalid value: -1: must be positive"
        );
        let two = Status::invalid(WEB, &[negative, missing]);
        assert!(two.message.ends_with(
            "is invalid: [spec.replicas: Invalid value: -1: must be positive, spec.selector: Required value]"
        ));
        assert_eq!(two.to_value()["details"]["causes"][1]["reason"], "FieldValueRequired");
    }

    #[test]
    fn a_failure_of_the_store_says_whether_it_is_safe_to_try_again() {
        let reason = || "the reason".to_owned();
        for (error, code, expected, retry) in [
            (StoreError::Unavailable { reason: reason() }, 503, "ServiceUnavailable", Some(1)),
            (StoreError::Unknown { reason: reason() }, 504, "Timeout", None),
            (StoreError::Full { reason: reason() }, 500, "InternalError", None),
            (StoreError::Failed { reason: reason() }, 500, "InternalError", None),
            (StoreError::Refused { reason: reason() }, 500, "InternalError", None),
            (
                StoreError::Refused { reason: "the reason: request is too large".to_owned() },
                413,
                "RequestEntityTooLarge",
                None,
            ),
        ] {
            let status = Status::from(error).to_value();
            assert_eq!((&status["code"], &status["reason"]), (&json!(code), &json!(expected)));
            assert_eq!(status["details"]["retryAfterSeconds"].as_u64(), retry);
            assert!(status["message"].as_str().unwrap().contains("the reason"), "{status}");
        }
    }

    #[test]
    fn a_revision_of_the_future_is_a_timeout_with_its_cause() {
        let status = Status::future_revision(9, 3).to_value();
        assert_eq!(status["code"], 504);
        assert_eq!(status["message"], "Timeout: Too large resource version: 9, current: 3");
        assert_eq!(status["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
        assert_eq!(status["details"]["retryAfterSeconds"], 1);
    }
}
