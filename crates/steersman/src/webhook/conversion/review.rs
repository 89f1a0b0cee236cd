//! From a request over HTTP to a ConversionReview and back.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use kube::core::conversion::{ConversionRequest, ConversionResponse, ConversionReview};
use kube::core::response::StatusSummary;
use kube::core::{Status, TypeMeta};
use serde_json::Value;

use super::{Conversion, PANICKED};
use crate::serve;
use crate::webhook::review::{InvalidReview, check_content_type};

const API_VERSION: &str = "apiextensions.k8s.io/v1";
const KIND: &str = "ConversionReview";

/// Answers one ConversionReview. All objects are converted, or the first that cannot be is named.
pub(in crate::webhook) fn convert_review(
    conversions: &[Conversion],
    http: &Request<Bytes>,
    panicked: &dyn Fn(),
) -> Response<Bytes> {
    let response = match read(http) {
        Err((uid, message)) => {
            tracing::warn!(uid, message, "invalid ConversionReview");
            let status = Status::failure(&message, "BadRequest").with_code(400);
            ConversionResponse { uid, ..ConversionResponse::invalid(status) }
        }
        Ok(request) => {
            let converted = convert_all(conversions, &request);
            let response = ConversionResponse::for_request(request);
            match converted {
                Ok(objects) => response.success(objects),
                Err(status) => {
                    if status.reason == PANICKED {
                        panicked();
                    }
                    response.failure(*status)
                }
            }
        }
    };
    // Answered with 200 in any case: the API server reads what failed from the review itself.
    match serde_json::to_vec(&response.into_review()) {
        Ok(body) => serve::answer(StatusCode::OK, "application/json", body),
        Err(error) => serve::text(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

/// The question, or which one it was and what is wrong with it.
fn read(http: &Request<Bytes>) -> Result<ConversionRequest, (String, String)> {
    let review: ConversionReview = serde_json::from_slice(http.body())
        .map_err(|error| (String::new(), format!("cannot decode the ConversionReview: {error}")))?;
    let uid = review.request.as_ref().map(|request| request.uid.clone()).unwrap_or_default();
    if let Err(error) = check_content_type(http).and_then(|()| check_version(&review.types)) {
        return Err((uid, error.to_string()));
    }
    ConversionRequest::from_review(review).map_err(|error| (uid, error.to_string()))
}

fn check_version(types: &TypeMeta) -> Result<(), InvalidReview> {
    let TypeMeta { api_version, kind } = types;
    if api_version == API_VERSION && kind == KIND {
        return Ok(());
    }
    Err(InvalidReview::Version {
        expected: format!("a ConversionReview of {API_VERSION}"),
        kind: kind.clone(),
        api_version: api_version.clone(),
        setting: "conversionReviewVersions of the CustomResourceDefinition",
    })
}

fn convert_all(
    conversions: &[Conversion],
    request: &ConversionRequest,
) -> Result<Vec<Value>, Box<Status>> {
    let convert = |object: &Value| {
        let desired = &request.desired_api_version;
        let converted = conversion_of(conversions, object)
            .and_then(|conversion| conversion.convert(object, desired));
        converted.map_err(|status| named(status, object, desired))
    };
    request.objects.iter().map(convert).collect()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn conversion_of<'a>(
    conversions: &'a [Conversion],
    object: &Value,
) -> Result<&'a Conversion, Box<Status>> {
    let api_version = text(object, "/apiVersion");
    let kind = text(object, "/kind");
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let found = conversions.iter().find(|c| c.resource.group == group && c.resource.kind == kind);
    found.ok_or_else(|| {
        let message = format!("nobody converts the kind {kind:?} of the group {group:?}");
        Status::failure(&message, "BadRequest").with_code(400).boxed()
    })
}

/// The status with the name of the object that it is about.
fn named(status: Box<Status>, object: &Value, desired: &str) -> Box<Status> {
    let kind = text(object, "/kind");
    let version = text(object, "/apiVersion");
    let namespace = text(object, "/metadata/namespace");
    let name = text(object, "/metadata/name");
    let key = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
    let message =
        format!("cannot convert {kind} {key} from {version} to {desired}: {}", status.message);
    Box::new(Status { status: Some(StatusSummary::Failure), message, ..*status })
}
