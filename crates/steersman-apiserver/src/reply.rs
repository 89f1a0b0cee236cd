//! The way out: what a verb answered, in the form the client accepts.
//!
//! JSON objects and lists are assembled from stored bytes; tables and YAML are the forms that
//! decode.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::stream::BoxStream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use serde_json::{Value, json};
use steersman_store::Revision;

use crate::call::Call;
use crate::document::{Stored, write_json};
use crate::negotiate::{Encoding, Shape};
use crate::status::{Result, Status};
use crate::table::{self, IncludeObject};

/// What a verb answers.
pub(crate) enum Reply {
    /// One stored object.
    Object {
        /// The HTTP status code.
        code: StatusCode,
        /// The object.
        object: Stored,
    },
    /// A document that is not stored: a Status, a Scale, a review.
    Document {
        /// The HTTP status code.
        code: StatusCode,
        /// The document.
        value: Value,
    },
    /// Several stored objects.
    List(Page),
    /// Events, one JSON document a line.
    Watch(BoxStream<'static, Bytes>),
}

/// A list, or a part of it.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// The objects, in the order of their keys.
    pub(crate) objects: Vec<Stored>,
    /// The revision whose state this is.
    pub(crate) revision: Revision,
    /// How to go on.
    pub(crate) continue_token: Option<String>,
    /// How many objects are left, where that is known.
    pub(crate) remaining: Option<usize>,
}

impl Page {
    /// The list's metadata.
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if let Some(token) = &self.continue_token {
            metadata["continue"] = token.as_str().into();
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = remaining.into();
        }
        metadata
    }
}

/// Writes the answer to a call.
pub(crate) fn render(call: &Call, reply: Reply) -> Result<Response<ResponseBody>> {
    let mut response = match reply {
        Reply::Object { code, object } => {
            respond(code, call.output.encoding, object_bytes(call, &object)?)
        }
        Reply::Document { code, value } => document(code, call.output.encoding, &value),
        Reply::List(page) => {
            respond(StatusCode::OK, call.output.encoding, list_bytes(call, &page)?)
        }
        Reply::Watch(events) => {
            respond(StatusCode::OK, Encoding::Json, ResponseBody::stream(events))
        }
    };
    for warning in call.warnings() {
        let text = format!("299 - {warning:?}");
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    Ok(response)
}

/// Writes a failure.
pub(crate) fn failure(status: &Status) -> Response<ResponseBody> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = document(code, Encoding::Json, &status.to_value());
    if let Some(details) = status.details.as_ref().filter(|d| d.retry_after_seconds > 0) {
        response.headers_mut().insert(header::RETRY_AFTER, details.retry_after_seconds.into());
    }
    response
}

/// Writes a document.
pub(crate) fn document(
    code: StatusCode,
    encoding: Encoding,
    value: &Value,
) -> Response<ResponseBody> {
    let mut out = Vec::new();
    write_json(&mut out, value);
    respond(code, encoding, encoded(encoding, out))
}

fn respond(
    code: StatusCode,
    encoding: Encoding,
    body: impl Into<ResponseBody>,
) -> Response<ResponseBody> {
    let mut response = Response::new(body.into());
    *response.status_mut() = code;
    let content_type = HeaderValue::from_static(encoding.media_type());
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

fn object_bytes(call: &Call, object: &Stored) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match call.output.shape {
        Shape::Table => {
            let metadata = json!({"resourceVersion": object.revision.to_string()});
            let objects = [object.decode(&call.api_version)?];
            write_json(&mut out, &table_of(call, &objects, metadata)?);
        }
        Shape::Metadata => object.write_metadata_to(&mut out),
        Shape::Object | Shape::Discovery => object.write_to(&mut out, &call.api_version),
    }
    Ok(encoded(call.output.encoding, out))
}

fn list_bytes(call: &Call, page: &Page) -> Result<Vec<u8>> {
    let metadata = page.metadata();
    let mut out = Vec::with_capacity(page.objects.iter().map(|o| o.bytes.len() + 40).sum());
    if call.output.shape == Shape::Table {
        let objects: Result<Vec<Value>> =
            page.objects.iter().map(|object| object.decode(&call.api_version)).collect();
        write_json(&mut out, &table_of(call, &objects?, metadata)?);
        return Ok(encoded(call.output.encoding, out));
    }
    let partial = call.output.shape == Shape::Metadata;
    let (kind, api_version) = if partial {
        ("PartialObjectMetadataList", "meta.k8s.io/v1")
    } else {
        (call.resource.list_kind.as_ref(), call.api_version.as_str())
    };
    out.extend_from_slice(
        format!(
            r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"items":["#
        )
        .as_bytes(),
    );
    for (index, object) in page.objects.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        if partial {
            object.write_metadata_to(&mut out);
        } else {
            object.write_to(&mut out, &call.api_version);
        }
    }
    out.extend_from_slice(b"]}");
    Ok(encoded(call.output.encoding, out))
}

/// Objects as a table, with what the query wants to come along.
pub(crate) fn table_of(call: &Call, objects: &[Value], metadata: Value) -> Result<Value> {
    let include = call.include_object()?;
    Ok(table::render(&call.resource, objects, metadata, include, (call.server.clock)()))
}

impl Call {
    /// What a table carries of its objects.
    pub(crate) fn include_object(&self) -> Result<IncludeObject> {
        let Some(text) = self.info.query.text("includeObject") else {
            return Ok(IncludeObject::default());
        };
        IncludeObject::parse(text).ok_or_else(|| {
            Status::bad_request(format!("unrecognized includeObject value: {text:?}"))
        })
    }
}

fn encoded(encoding: Encoding, json: Vec<u8>) -> Vec<u8> {
    match encoding {
        Encoding::Json => json,
        Encoding::Yaml => {
            let value: Value = serde_json::from_slice(&json).unwrap_or_default();
            serde_saphyr::to_string(&value).unwrap_or_default().into_bytes()
        }
    }
}

/// The body of an answer: all at once, or the events of a watch as they happen.
pub struct ResponseBody(Content);

enum Content {
    Whole(Bytes),
    Stream(BoxStream<'static, Bytes>),
}

impl ResponseBody {
    fn stream(events: BoxStream<'static, Bytes>) -> Self {
        Self(Content::Stream(events))
    }
}

impl std::fmt::Debug for ResponseBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResponseBody").finish_non_exhaustive()
    }
}

impl From<Vec<u8>> for ResponseBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Content::Whole(bytes.into()))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.0 {
            Content::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Content::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Content::Stream(events) => {
                events.as_mut().poll_next(context).map(|item| item.map(|b| Ok(Frame::data(b))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.0, Content::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Content::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Content::Stream(_) => SizeHint::default(),
        }
    }
}
