//! Why something is not admitted, in the words of Kubernetes' own validation.
//!
//! Errors of fields become a Status 422 with one cause each, as the API server's validation
//! does it, so that clients show them alike; a plain reason becomes a 403.

use std::error::Error as StdError;
use std::fmt;

use kube::core::response::{StatusCause, StatusDetails, reason};
use kube::core::{GroupVersionKind, Status};
use serde::Serialize;

use crate::error::Error;

/// One field of an object that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    field: String,
    reason: &'static str,
    body: String,
}

impl FieldError {
    /// The field has a value that it must not have.
    pub fn invalid(
        field: impl Into<String>,
        value: impl Serialize,
        detail: impl fmt::Display,
    ) -> Self {
        let value = show_value(&value);
        let body = with_detail(format!("Invalid value: {value}"), &detail);
        Self::new(field, "FieldValueInvalid", body)
    }

    /// The field is absent or empty and must not be.
    pub fn required(field: impl Into<String>, detail: impl fmt::Display) -> Self {
        Self::new(field, "FieldValueRequired", with_detail("Required value".to_owned(), &detail))
    }

    /// The field must not be set, or not be changed.
    pub fn forbidden(field: impl Into<String>, detail: impl fmt::Display) -> Self {
        Self::new(field, "FieldValueForbidden", with_detail("Forbidden".to_owned(), &detail))
    }

    /// The field's value is there already and must be unique.
    pub fn duplicate(field: impl Into<String>, value: impl Serialize) -> Self {
        let value = show_value(&value);
        Self::new(field, "FieldValueDuplicate", format!("Duplicate value: {value}"))
    }

    /// The field's value is none of those that are known.
    pub fn not_supported(
        field: impl Into<String>,
        value: impl Serialize,
        supported: &[&str],
    ) -> Self {
        let supported: Vec<String> = supported.iter().map(show_value).collect();
        let value = show_value(&value);
        let supported = supported.join(", ");
        let body = format!("Unsupported value: {value}: supported values: {supported}");
        Self::new(field, "FieldValueNotSupported", body)
    }

    fn new(field: impl Into<String>, reason: &'static str, body: String) -> Self {
        Self { field: field.into(), reason, body }
    }

    fn into_cause(self) -> StatusCause {
        StatusCause { reason: self.reason.to_owned(), message: self.body, field: self.field }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body)
    }
}

/// What is wrong, and in which way if there is more to say.
fn with_detail(what: String, detail: &impl fmt::Display) -> String {
    let detail = detail.to_string();
    if detail.is_empty() { what } else { format!("{what}: {detail}") }
}

fn show_value(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// The answer of a webhook that does not admit something.
///
/// Every error becomes one by `?`: what the API server said is passed on, everything else is an
/// internal error (500) and says nothing against the object.
#[derive(Clone, Debug)]
pub struct Denied {
    why: Why,
    pub(super) warnings: Vec<String>,
}

#[derive(Clone, Debug)]
enum Why {
    Fields(Vec<FieldError>),
    Status(Box<Status>),
}

impl Denied {
    /// The operation is forbidden, for this reason (403).
    pub fn because(reason: impl fmt::Display) -> Self {
        Self::status(Status::failure(&reason.to_string(), reason::FORBIDDEN).with_code(403))
    }

    /// A field is wrong, and why (422). For more than one, see [`Denied::if_any`].
    pub fn field(field: impl Into<String>, detail: impl fmt::Display) -> Self {
        let body = format!("Invalid value: {detail}");
        FieldError::new(field, "FieldValueInvalid", body).into()
    }

    /// Denies if there is any error of a field, with all of them.
    pub fn if_any(errors: Vec<FieldError>) -> Result<(), Self> {
        if errors.is_empty() { Ok(()) } else { Err(Self::fields(errors)) }
    }

    /// These fields are wrong (422).
    pub fn fields(errors: Vec<FieldError>) -> Self {
        Self { why: Why::Fields(errors), warnings: Vec::new() }
    }

    /// Denies with exactly this status.
    pub fn status(status: Status) -> Self {
        Self { why: Why::Status(Box::new(status)), warnings: Vec::new() }
    }

    /// The request itself makes no sense (400).
    pub fn bad_request(message: impl fmt::Display) -> Self {
        Self::status(Status::failure(&message.to_string(), "BadRequest").with_code(400))
    }

    /// The webhook has failed (500), which says nothing against the object.
    pub fn internal(message: impl fmt::Display) -> Self {
        Self::status(Status::failure(&message.to_string(), "InternalError").with_code(500))
    }

    /// Warns the user as well.
    #[must_use]
    pub fn with_warning(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// The status to answer with, about an object of this kind and name.
    pub(super) fn into_status(self, kind: &GroupVersionKind, name: &str) -> Status {
        match self.why {
            Why::Status(status) => *status,
            Why::Fields(errors) => invalid(errors, kind, name),
        }
    }
}

/// What `apierrors.NewInvalid` makes.
fn invalid(errors: Vec<FieldError>, kind: &GroupVersionKind, name: &str) -> Status {
    let qualified = match kind.group.as_str() {
        "" => kind.kind.clone(),
        group => format!("{}.{group}", kind.kind),
    };
    let shown: Vec<String> = errors.iter().map(ToString::to_string).collect();
    let shown = match shown.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let message = format!("{qualified} {name:?} is invalid: {shown}");
    let details = StatusDetails {
        name: name.to_owned(),
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        uid: String::new(),
        causes: errors.into_iter().map(FieldError::into_cause).collect(),
        retry_after_seconds: 0,
    };
    Status::failure(&message, reason::INVALID).with_code(422).with_details(details)
}

impl From<FieldError> for Denied {
    fn from(error: FieldError) -> Self {
        Self::fields(vec![error])
    }
}

impl From<Error> for Denied {
    fn from(error: Error) -> Self {
        match error.status() {
            Some(status) => Self::status(status.clone()),
            None => Self::internal(error),
        }
    }
}

impl<E: StdError + Send + Sync + 'static> From<E> for Denied {
    fn from(error: E) -> Self {
        Self::from(Error::from(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_field_reads_as_the_api_servers_with_a_detail_or_without() {
        let unsupported = r#"spec.a: Unsupported value: "x": supported values: "y", "z""#;
        let table = [
            (FieldError::invalid("spec.a", 1, "too small"), "spec.a: Invalid value: 1: too small"),
            (FieldError::invalid("spec.a", "x", ""), r#"spec.a: Invalid value: "x""#),
            (FieldError::required("spec.a", "say it"), "spec.a: Required value: say it"),
            (FieldError::required("spec.a", ""), "spec.a: Required value"),
            (FieldError::forbidden("spec.a", "not now"), "spec.a: Forbidden: not now"),
            (FieldError::forbidden("spec.a", ""), "spec.a: Forbidden"),
            (FieldError::duplicate("spec.a", "x"), r#"spec.a: Duplicate value: "x""#),
            (FieldError::not_supported("spec.a", "x", &["y", "z"]), unsupported),
        ];
        for (error, text) in table {
            assert_eq!(error.to_string(), text);
        }
    }
}
