//! The way out: what a verb answered, in the form the client accepts.
//!
//! [`view`] writes what is stored, [`body`] sends it. What is large is compressed for clients that
//! ask for it, as long as it is not a watch.

mod body;
mod indent;
mod view;

use bytes::Bytes;
use futures::stream::BoxStream;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use serde_json::{Value, json};
use steersman_store::Revision;

pub use body::ResponseBody;
use indent::Indenter;
use steersman_rules::resource::Resource;
use steersman_rules::table::IncludeObject;
pub(crate) use view::View;

use crate::call::Call;
use crate::conversion;
use crate::document::{Growth, Stored};
use crate::negotiate::{Encoding, Output, Shape, Wishes};
use crate::status::{Result, Status};

/// Answers larger than this are compressed for clients that accept it.
const GZIP_THRESHOLD: usize = 128 * 1024;

/// Tells a client that nothing lies between it and the server: `steersman::reflector` knows it, and
/// does not take silence for a broken connection.
const DIRECT: HeaderName = HeaderName::from_static("steersman-direct");

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
    /// A success that shows nothing.
    Nothing(StatusCode),
    /// Several stored objects.
    List(Page),
    /// Events, in frames of the accepted encoding.
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
    /// How much larger than they are stored the objects have become.
    growth: Growth,
}

impl Page {
    /// Adds an object as its resource has it now.
    pub(crate) fn push(&mut self, object: Stored, resource: &Resource) {
        let object = conversion::shown(resource, object, &mut self.growth);
        self.objects.push(object);
    }

    /// The list's metadata.
    pub(crate) fn metadata(&self) -> Value {
        let mut metadata = json!({});
        // What is not stored has none.
        if self.revision != Revision(0) {
            metadata["resourceVersion"] = self.revision.to_string().into();
        }
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
    let encoding = call.output.encoding;
    check_metadata(call, &reply)?;
    let response = match reply {
        Reply::Object { code, object } => {
            sized(call, code, encoding, View::of(call)?.object(&object)?)
        }
        Reply::Document { code, value } => {
            let (encoding, bytes) = view::document(call.output, &view::shaped(call, value)?);
            sized(call, code, encoding, bytes)
        }
        Reply::Nothing(code) => {
            let mut response = Response::new(Bytes::new().into());
            *response.status_mut() = code;
            response
        }
        Reply::List(page) => list(call, page)?,
        Reply::Watch(events) => {
            let body = ResponseBody::stream(events);
            let mut response = respond(StatusCode::OK, encoding.stream_type(), body);
            if call.caller.is_direct() {
                response.headers_mut().insert(DIRECT, HeaderValue::from_static("true"));
            }
            response
        }
    };
    Ok(response)
}

/// What is answered, as JSON, whatever the client reads; `None` if there is no document.
pub(crate) fn plain(call: &Call, reply: &Reply) -> Option<Bytes> {
    match reply {
        Reply::Object { object, .. } => View::plain(call).ok()?.object(object).ok(),
        Reply::List(page) => View::plain(call).ok()?.list(page).ok(),
        Reply::Document { value, .. } => Some(value.to_string().into()),
        Reply::Nothing(_) | Reply::Watch(_) => None,
    }
}

/// Refuses to tell the metadata of one object as that of a list, or the other way round.
fn check_metadata(call: &Call, reply: &Reply) -> Result<()> {
    let is_list = match reply {
        Reply::Object { .. } => false,
        Reply::List(_) => true,
        Reply::Document { .. } | Reply::Nothing(_) | Reply::Watch(_) => return Ok(()),
    };
    if call.output.shape != Shape::Metadata || call.output.of_list == is_list {
        return Ok(());
    }
    if !is_list && call.resource.is_custom() {
        return Err(Status::failure("content is not a list"));
    }
    let (list, asked) = if is_list { ("List", "") } else { ("", "List") };
    let found = match (call.resource.is_custom(), call.resource.group.as_ref()) {
        (true, _) => format!("unstructured.Unstructured{list}"),
        (false, "" | "events.k8s.io") => format!("core.{}{list}", call.resource.kind),
        (false, group) => {
            let package = group.split('.').next().unwrap_or("");
            format!("{package}.{}{list}", call.resource.kind)
        }
    };
    let is = if is_list { "a list" } else { "not a list" };
    Err(Status::not_acceptable_because(format!(
        "you requested PartialObjectMetadata{asked}, but the requested object is {is} (*{found})"
    )))
}

/// Adds what the client is warned of, whether its request succeeded or not.
pub(crate) fn warn(call: &Call, response: &mut Response<ResponseBody>) {
    tell(response, &call.warnings.texts());
}

/// Adds warnings to an answer.
pub(crate) fn tell(response: &mut Response<ResponseBody>, warnings: &[String]) {
    for warning in warnings {
        let text = format!("299 - {warning:?}");
        if let Ok(value) = HeaderValue::from_bytes(text.as_bytes()) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

/// Keeps an answer out of caches that others use, unless it says what may keep it.
pub(crate) fn keep_private(response: &mut Response<ResponseBody>) {
    let caching = response.headers_mut().entry(header::CACHE_CONTROL);
    caching.or_insert(HeaderValue::from_static("no-cache, private"));
}

/// What is answered at a path that is no part of the API.
pub(crate) fn no_such_page() -> Response<ResponseBody> {
    page(StatusCode::NOT_FOUND, "404 page not found\n")
}

/// What is answered to a request for which there is no seat, nor a place to wait for one.
pub(crate) fn too_many_requests(retry_after: u64) -> Response<ResponseBody> {
    let text = "Too many requests, please try again later.\n";
    let mut response = page(StatusCode::TOO_MANY_REQUESTS, text);
    response.headers_mut().insert(header::RETRY_AFTER, retry_after.into());
    response
}

/// A refusal that is no part of the API.
fn page(code: StatusCode, text: &'static str) -> Response<ResponseBody> {
    let mut response = self::text(text.to_owned());
    *response.status_mut() = code;
    response
}

/// Text for people.
pub(crate) fn text(text: String) -> Response<ResponseBody> {
    let body = ResponseBody::from(text.into_bytes());
    as_declared(respond(StatusCode::OK, "text/plain; charset=utf-8", body))
}

/// An answer that browsers are to take for what it says it is: it quotes what it was asked.
pub(crate) fn as_declared(mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Writes a failure in a form that the client accepts.
pub(crate) fn failure(status: &Status, wishes: &Wishes) -> Response<ResponseBody> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = document(code, wishes.choose_failure(), status);
    if let Some(details) = status.details.as_ref().filter(|d| d.retry_after_seconds > 0) {
        response.headers_mut().insert(header::RETRY_AFTER, details.retry_after_seconds.into());
    }
    response
}

/// Writes a document; one that has no protobuf form is JSON.
pub(crate) fn document(
    code: StatusCode,
    output: Output,
    value: &impl Serialize,
) -> Response<ResponseBody> {
    let (encoding, bytes) = view::document(output, value);
    respond(code, encoding.media_type(), bytes.into())
}

/// JSON as people read it.
pub(crate) fn indented(json: &[u8]) -> Bytes {
    Indenter::whole(json)
}

/// Writes a list, and a large one only as fast as it is read.
fn list(call: &Call, page: Page) -> Result<Response<ResponseBody>> {
    let view = View::of(call)?;
    let encoding = call.output.encoding;
    let size: usize = page.objects.iter().map(|object| object.bytes.len()).sum();
    if size <= GZIP_THRESHOLD || !view.comes_in_pieces() {
        return Ok(sized(call, StatusCode::OK, encoding, view.list(&page)?));
    }
    let pretty = call.output.pretty;
    let mut indenter = Indenter::default();
    let pieces = view.pieces(page);
    let pieces = pieces.map(move |piece| if pretty { indenter.piece(&piece) } else { piece });
    Ok(if accepts_gzip(&call.headers) {
        compressed(StatusCode::OK, encoding, ResponseBody::gzip(pieces))
    } else {
        respond(StatusCode::OK, encoding.media_type(), ResponseBody::pieces(pieces))
    })
}

/// Writes an answer that may be large.
fn sized(
    call: &Call,
    code: StatusCode,
    encoding: Encoding,
    bytes: Bytes,
) -> Response<ResponseBody> {
    if bytes.len() <= GZIP_THRESHOLD || !accepts_gzip(&call.headers) {
        return respond(code, encoding.media_type(), bytes.into());
    }
    compressed(code, encoding, ResponseBody::gzip(body::cut(bytes)))
}

fn compressed(code: StatusCode, encoding: Encoding, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = respond(code, encoding.media_type(), body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

/// Whether `Accept-Encoding` names gzip, or anything.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let header = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
    let mut codings = header.unwrap_or("").split(',').map(|coding| {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        (name.trim(), parameters.trim())
    });
    codings.any(|(name, parameters)| {
        matches!(name, "gzip" | "*") && !matches!(parameters, "q=0" | "q=0.0")
    })
}

fn respond(
    code: StatusCode,
    media_type: &'static str,
    body: ResponseBody,
) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let content_type = HeaderValue::from_static(media_type);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

impl Call {
    /// What a table carries of its objects.
    pub(crate) fn include_object(&self) -> Result<IncludeObject> {
        let Some(text) = self.info.query.text("includeObject") else {
            return Ok(IncludeObject::default());
        };
        IncludeObject::parse(text).ok_or_else(|| {
            Status::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {text:?}: \
                 must be 'Metadata', 'Object', 'None', or empty"
            ))
        })
    }
}
