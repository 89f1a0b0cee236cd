//! From a request over HTTP to an AdmissionReview and back.
//!
//! Whatever is wrong is said in an AdmissionReview with the uid of the question, as far as it
//! can be read, because that is what the API server shows to its user.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::handler::{ErasedHandler, in_sequence};
use super::request::AdmissionRequest;
use super::response::{API_VERSION, AdmissionResponse, KIND};
use crate::serve;

/// What an AdmissionReview may weigh; controller-runtime's limit. etcd holds objects of 1.5 MiB,
/// an update brings two of them.
pub(super) const REVIEW_MAX: usize = 7 * 1024 * 1024;

/// What is wrong with a question, and which question it was.
struct Unreadable {
    uid: String,
    status: Box<Status>,
}

impl Unreadable {
    fn new(uid: String, code: StatusCode, message: &str) -> Self {
        let reason = match code {
            StatusCode::PAYLOAD_TOO_LARGE => "RequestEntityTooLarge",
            StatusCode::UNSUPPORTED_MEDIA_TYPE => "UnsupportedMediaType",
            _ => "BadRequest",
        };
        let status = Status::failure(message, reason).with_code(code.as_u16());
        Self { uid, status: status.boxed() }
    }
}

/// The envelope of a question.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    #[serde(borrow, default)]
    request: Option<&'a RawValue>,
}

/// As much of a question as can be read of most broken ones.
#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    uid: String,
}

/// Answers one AdmissionReview.
pub(super) async fn admit(
    handlers: &[ErasedHandler],
    http: &Request<Bytes>,
    panicked: &(dyn Fn() + Send + Sync),
) -> Response<Bytes> {
    let request = match read(http) {
        Ok(request) => request,
        Err(Unreadable { uid, status }) => {
            tracing::warn!(uid, status = status.message, "invalid AdmissionReview");
            return reply(&uid, refusal(*status));
        }
    };
    let uid = request.uid.clone();
    let answered = in_sequence(handlers, request, panicked);
    let response = match time_left(http) {
        None => answered.await,
        Some(left) => match tokio::time::timeout(left, answered).await {
            Ok(response) => response,
            Err(_) => return too_late(left),
        },
    };
    reply(&uid, response)
}

fn read(http: &Request<Bytes>) -> Result<AdmissionRequest, Unreadable> {
    let body = http.body();
    if body.is_empty() {
        let message = "the request has no body";
        return Err(Unreadable::new(String::new(), StatusCode::BAD_REQUEST, message));
    }
    if body.len() > REVIEW_MAX {
        let message = format!("the request is larger than {REVIEW_MAX} bytes");
        return Err(Unreadable::new(String::new(), StatusCode::PAYLOAD_TOO_LARGE, &message));
    }
    let envelope: Envelope<'_> = serde_json::from_slice(body).map_err(|error| {
        let message = format!("cannot decode the AdmissionReview: {error}");
        Unreadable::new(String::new(), StatusCode::BAD_REQUEST, &message)
    })?;
    let uid = envelope.request.map(uid_of).unwrap_or_default();
    let refuse = |code, message: String| Unreadable::new(uid.clone(), code, &message);
    check_content_type(http)
        .map_err(|error| refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, error.to_string()))?;
    check_version(&envelope).map_err(|error| refuse(StatusCode::BAD_REQUEST, error.to_string()))?;
    let Some(request) = envelope.request else {
        return Err(refuse(StatusCode::BAD_REQUEST, "the AdmissionReview has no request".into()));
    };
    serde_json::from_str(request.get()).map_err(|error| {
        let message = format!("cannot decode the request of the AdmissionReview: {error}");
        refuse(StatusCode::BAD_REQUEST, message)
    })
}

fn uid_of(request: &RawValue) -> String {
    serde_json::from_str::<Named>(request.get()).unwrap_or_default().uid
}

/// Why a review cannot be answered.
#[derive(Debug, thiserror::Error)]
pub(super) enum InvalidReview {
    /// It does not call itself JSON.
    #[error("the content type is {0:?}, expected application/json")]
    ContentType(String),
    /// It is of another kind or version.
    #[error("expected {expected}, got {kind:?} of {api_version:?}; {setting} must be [\"v1\"]")]
    Version {
        /// What is answered here.
        expected: String,
        /// The kind that was sent.
        kind: String,
        /// The version that was sent.
        api_version: String,
        /// Where the API server is told which versions to send.
        setting: &'static str,
    },
}

/// Whether what was sent calls itself JSON.
pub(super) fn check_content_type(http: &Request<Bytes>) -> Result<(), InvalidReview> {
    let value = http.headers().get(header::CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = value.split(';').next().unwrap_or_default().trim();
    if media_type.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(InvalidReview::ContentType(value.to_owned()))
}

fn check_version(envelope: &Envelope<'_>) -> Result<(), InvalidReview> {
    let Envelope { api_version, kind, .. } = envelope;
    if api_version == API_VERSION && kind == KIND {
        return Ok(());
    }
    Err(InvalidReview::Version {
        expected: format!("an AdmissionReview of {API_VERSION}"),
        kind: kind.clone(),
        api_version: api_version.clone(),
        setting: "admissionReviewVersions of the webhook configuration",
    })
}

/// How long the API server waits: it says so in the query.
fn time_left(http: &Request<Bytes>) -> Option<Duration> {
    let mut parameters = http.uri().query()?.split('&');
    let seconds = parameters.find_map(|p| p.strip_prefix("timeout=")?.strip_suffix('s'))?;
    Some(Duration::from_secs(seconds.parse().ok()?))
}

/// Not a refusal: the failure policy says what becomes of what nobody has decided about.
fn too_late(left: Duration) -> Response<Bytes> {
    let message = format!("the webhook took longer than {left:?}");
    serve::text(StatusCode::GATEWAY_TIMEOUT, message)
}

fn refusal(status: Status) -> AdmissionResponse {
    AdmissionResponse { allowed: false, status: Some(status), ..AdmissionResponse::allowed() }
}

fn reply(uid: &str, response: AdmissionResponse) -> Response<Bytes> {
    match serde_json::to_vec(&response.into_review(uid)) {
        Ok(body) => serve::answer(StatusCode::OK, "application/json", body),
        Err(error) => serve::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}
