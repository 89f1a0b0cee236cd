//! Answers that refuse: Kubernetes' `Status` in its several reasons.

use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use super::body::AnswerBody;

/// 410, in the words of an API server.
pub(super) fn expired() -> Value {
    status(StatusCode::GONE, "Expired", "too old resource version")
}

/// 410, as the answer itself.
pub(super) fn gone() -> Response<AnswerBody> {
    answer(StatusCode::GONE, &expired())
}

/// 429: try again after so many seconds.
pub(super) fn too_many_requests(seconds: usize) -> Response<AnswerBody> {
    let code = StatusCode::TOO_MANY_REQUESTS;
    let mut status = status(code, "TooManyRequests", "too many requests, try again later");
    status["details"] = json!({"retryAfterSeconds": seconds});
    let mut answer = answer(code, &status);
    answer.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    answer
}

/// 500 or 503.
pub(super) fn server_error(unavailable: bool) -> Response<AnswerBody> {
    let (code, reason) = if unavailable {
        (StatusCode::SERVICE_UNAVAILABLE, "ServiceUnavailable")
    } else {
        (StatusCode::INTERNAL_SERVER_ERROR, "InternalError")
    };
    answer(code, &status(code, reason, "the server is in trouble"))
}

/// 403: not allowed.
pub(super) fn forbidden() -> Response<AnswerBody> {
    let code = StatusCode::FORBIDDEN;
    answer(code, &status(code, "Forbidden", "the user may not do this"))
}

/// 422: streaming lists are turned off.
pub(super) fn streaming_refused() -> Response<AnswerBody> {
    let code = StatusCode::UNPROCESSABLE_ENTITY;
    let message = "ListOptions.meta.k8s.io is invalid: sendInitialEvents: Forbidden: \
                   sendInitialEvents is forbidden for watch unless streaming lists are enabled";
    let mut status = status(code, "Invalid", message);
    status["details"] = json!({"group": "meta.k8s.io", "kind": "ListOptions", "causes": [
        {"reason": "FieldValueForbidden", "field": "sendInitialEvents", "message": message},
    ]});
    answer(code, &status)
}

fn status(code: StatusCode, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "code": code.as_u16(), "reason": reason, "message": message,
    })
}

fn answer(code: StatusCode, status: &Value) -> Response<AnswerBody> {
    let body = Full::from(status.to_string()).map_err(|never| match never {}).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = code;
    let json = header::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, json);
    answer
}
