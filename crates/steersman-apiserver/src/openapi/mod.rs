//! `/openapi/v3` and `/openapi/v2`: what every kind looks like and what can be done with it.
//!
//! Documents are made from the schemas that also drive apply and validation, with Kubernetes'
//! own descriptions. They are put together from compressed parts ([`part`]) that are made when
//! first asked for and kept ([`catalog`], [`contents`]); a document that was never asked for costs
//! nothing.

mod catalog;
mod contents;
mod custom;
mod definitions;
mod descriptions;
mod facts;
mod gnostic;
mod names;
mod operation;
mod parameters;
mod part;
mod paths;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::reply::ResponseBody;
use crate::request::Query;
use crate::state::Server;
use crate::status::{Result, Status};
use part::Document;

pub(crate) use catalog::Published;

const JSON: &str = "application/json";

/// The names that clients ask for protobuf with. The first contains an `@`, which is not allowed
/// in a media type; servers answer with the second.
const PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];

/// How long a document may be kept whose address names its content.
const FOREVER: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The version of the specification that a document follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    V2,
    V3,
}

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    V3,
    V2,
    V2Protobuf,
}

impl Form {
    fn dialect(self) -> Dialect {
        match self {
            Self::V3 => Dialect::V3,
            Self::V2 | Self::V2Protobuf => Dialect::V2,
        }
    }

    fn media_type(self) -> &'static str {
        if self == Self::V2Protobuf { PROTOBUF[1] } else { JSON }
    }
}

/// A request for a document, and what documents are made from.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) server: &'a Server,
    pub(crate) published: &'a Published,
    pub(crate) query: &'a Query,
    pub(crate) headers: &'a HeaderMap,
}

/// Answers an OpenAPI path.
pub(crate) async fn answer(asked: Asked<'_>, path: &[&str]) -> Result<Response<ResponseBody>> {
    match path {
        ["openapi", "v2"] => v2(asked).await,
        ["openapi", "v3"] => index(asked).await,
        ["openapi", "v3", name @ ..] => v3(asked, &name.join("/")).await,
        _ => Err(Status::no_such_resource()),
    }
}

/// The documents of version 3, with addresses that change with their content.
async fn index(asked: Asked<'_>) -> Result<Response<ResponseBody>> {
    let contents = asked.contents(Form::V3).await?;
    let paths: BTreeMap<String, Value> = contents
        .names()
        .into_iter()
        .map(|name| {
            let url = relative_url(&name, &contents.v3(&name).etag());
            (name, json!({"serverRelativeURL": url}))
        })
        .collect();
    let mut document = Document::default();
    document.plain(json!({"paths": paths}).to_string().into_bytes());
    Ok(respond(&document, JSON, asked.headers))
}

fn relative_url(name: &str, etag: &str) -> String {
    format!("/openapi/v3/{name}?hash={etag}")
}

/// The document of a group-version. With a hash in the address it may be kept forever; with a
/// hash of the past the client is sent to the present.
async fn v3(asked: Asked<'_>, name: &str) -> Result<Response<ResponseBody>> {
    accepted(asked.headers, &[(JSON, Form::V3)])?;
    let contents = asked.contents_for(Form::V3, Some(name)).await?;
    if !contents.names().contains(name) {
        return Err(Status::no_such_resource());
    }
    let document = contents.v3(name);
    let hash = asked.query.text("hash");
    let etag = document.etag();
    if hash.is_some_and(|hash| hash != etag) {
        return Ok(redirect(&relative_url(name, &etag)));
    }
    let mut response = respond(&document, JSON, asked.headers);
    if hash.is_some() {
        let expires = expiry((asked.server.clock)());
        response
            .headers_mut()
            .insert(header::CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        response.headers_mut().extend(expires.map(|expires| (header::EXPIRES, expires)));
    }
    Ok(response)
}

async fn v2(asked: Asked<'_>) -> Result<Response<ResponseBody>> {
    let forms =
        [(JSON, Form::V2), (PROTOBUF[0], Form::V2Protobuf), (PROTOBUF[1], Form::V2Protobuf)];
    let form = accepted(asked.headers, &forms)?;
    let contents = asked.contents(form).await?;
    let document = if form == Form::V2 { contents.v2() } else { contents.v2_protobuf() };
    Ok(respond(&document, form.media_type(), asked.headers))
}

/// The first form that the client likes; none is a 406.
fn accepted(headers: &HeaderMap, offered: &[(&str, Form)]) -> Result<Form> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    let accept = accept.filter(|text| !text.trim().is_empty()).unwrap_or("*/*");
    let mut clauses: Vec<(f32, &str)> = accept.split(',').map(clause).collect();
    clauses.sort_by(|a, b| b.0.total_cmp(&a.0));
    let wanted = clauses.into_iter().filter(|(quality, _)| *quality > 0.0);
    let mut forms = wanted.filter_map(|(_, wanted)| match wanted {
        "*/*" | "application/*" => offered.first().map(|(_, form)| *form),
        _ => offered.iter().find(|(name, _)| *name == wanted).map(|(_, form)| *form),
    });
    forms.next().ok_or_else(|| {
        let names: Vec<&str> = offered.iter().map(|(name, _)| *name).collect();
        Status::not_acceptable(&names)
    })
}

/// An alternative of an `Accept` header: its quality and media type.
fn clause(text: &str) -> (f32, &str) {
    let mut parts = text.split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default();
    let quality = parts.find_map(|part| part.strip_prefix("q="));
    (quality.map_or(1.0, |quality| quality.parse().unwrap_or(0.0)), media_type)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let clauses = values.filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
    clauses.map(clause).any(|(quality, name)| quality > 0.0 && ["gzip", "*"].contains(&name))
}

fn redirect(to: &str) -> Response<ResponseBody> {
    let mut response = Response::new(Vec::new().into());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let location = HeaderValue::from_str(to).ok().map(|to| (header::LOCATION, to));
    response.headers_mut().extend(location);
    response
}

/// One year from now, as HTTP writes times.
fn expiry(now: Timestamp) -> Option<HeaderValue> {
    let then = now.checked_add(FOREVER).ok()?;
    HeaderValue::from_str(&then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()).ok()
}

fn respond(
    document: &Document<'_>,
    media_type: &'static str,
    headers: &HeaderMap,
) -> Response<ResponseBody> {
    let etag = format!("\"{}\"", document.etag());
    let known = headers.get(header::IF_NONE_MATCH).is_some_and(|value| value == etag.as_str());
    let gzip = accepts_gzip(headers);
    let body = match (known, gzip) {
        (true, _) => Vec::new(),
        (false, true) => document.gzip(),
        (false, false) => part::inflate(&document.gzip()).unwrap_or_default(),
    };
    let mut response = Response::new(body.into());
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let out = response.headers_mut();
    out.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    for what in ["Accept-Encoding", "Accept"] {
        out.append(header::VARY, HeaderValue::from_static(what));
    }
    out.extend(HeaderValue::from_str(&etag).ok().map(|etag| (header::ETAG, etag)));
    if gzip && !known {
        out.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}
