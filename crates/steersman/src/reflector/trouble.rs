//! What can go wrong between a reflector and a server, sorted by what to do about it.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use kube::core::Status;

use crate::client::names_an_object;

/// No server's wish to be left alone is followed for longer than this.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// The version or continue token is too old, or newer than the server knows.
    Expired,
    /// The server does not know the kind.
    NotServed,
    /// The server does not understand what is asked, and never will.
    Refused(String),
    /// The server cannot answer now; it may have said how long to leave it alone.
    Busy { why: String, after: Option<Duration> },
    /// The server did not answer in time. A client that repeats requests by itself, as kube's
    /// does for minutes, may have hidden an answer that says that the version is unknown.
    NoAnswer,
    /// Anything else.
    Failed(String),
}

impl Trouble {
    pub(super) fn busy(why: impl Into<String>) -> Self {
        Self::Busy { why: why.into(), after: None }
    }

    /// What a request that got no answer means.
    pub(super) fn of_error(error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::of_status(status, None),
            kube::Error::BuildRequest(_) | kube::Error::Auth(_) => Self::Failed(error.to_string()),
            error => Self::busy(error.to_string()),
        }
    }

    /// What an answer other than success means.
    pub(super) fn of_answer(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        // So says a server of a group that it does not know at all.
        if code == StatusCode::NOT_FOUND && body.trim_ascii() == b"404 page not found" {
            return Self::NotServed;
        }
        let mut status: Status = serde_json::from_slice(body).unwrap_or_default();
        status.code = code.as_u16();
        if status.message.is_empty() {
            status.message = code.to_string();
        }
        let after = headers.get(http::header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let after = after.and_then(|seconds| seconds.parse().ok()).map(Duration::from_secs);
        Self::of_status(&status, after)
    }

    /// What a status means, as an answer or as an event.
    pub(super) fn of_status(status: &Status, after: Option<Duration>) -> Self {
        let why = status.message.clone();
        match status.code {
            _ if is_expired(status) || is_too_large(status) => Self::Expired,
            404 if status.reason == "NotFound" && !names_an_object(status) => Self::NotServed,
            400 | 405 | 406 | 415 | 422 | 501 => Self::Refused(why),
            // A 404 that does not speak of the kind comes from something on the way to the server.
            404 | 408 | 429 | 500 | 502 | 503 | 504 => {
                let details = status.details.as_ref().map(|details| details.retry_after_seconds);
                let details = details.filter(|seconds| *seconds > 0);
                let after = after.or(details.map(|seconds| Duration::from_secs(seconds.into())));
                Self::Busy { why, after: after.map(|after| after.min(RETRY_AFTER_MAX)) }
            }
            _ => Self::Failed(why),
        }
    }

    /// The trouble in words.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Expired => "the version has expired",
            Self::NotServed => "the kind is not served",
            Self::NoAnswer => "no answer",
            Self::Refused(why) | Self::Failed(why) | Self::Busy { why, .. } => why,
        }
    }

    /// How long the server wants to be left alone.
    pub(super) fn after(&self) -> Duration {
        match self {
            Self::Busy { after, .. } => after.unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }
}

/// 410, by code or by either of its two reasons.
fn is_expired(status: &Status) -> bool {
    status.code == 410 || status.reason == "Expired" || status.reason == "Gone"
}

/// The server has not reached the version asked for, as after a restore from a backup.
fn is_too_large(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes.into_iter().any(|cause| cause.reason == "ResourceVersionTooLarge")
}
