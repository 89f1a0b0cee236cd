//! `/openapi/v2` and `/openapi/v3`: valid documents that describe nothing yet.
//!
//! Clients that validate before they send, as kubectl does, find no schema for a kind and skip
//! the validation; the server validates anyway.

use http::{HeaderMap, HeaderValue, Response, header};

use crate::reply::ResponseBody;
use crate::status::{Result, Status};

const TITLE: &str = "Kubernetes";
const VERSION: &str = "v1.36.0";

/// Answers an OpenAPI path.
pub(crate) fn answer(path: &[&str], headers: &HeaderMap) -> Result<Response<ResponseBody>> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("");
    match path {
        ["openapi", "v2"] if accept.contains("proto-openapi.spec.v2") => {
            Ok(response(v2_protobuf(), PROTOBUF))
        }
        ["openapi", "v2"] => {
            let document = format!(
                r#"{{"swagger":"2.0","info":{{"title":"{TITLE}","version":"{VERSION}"}},"paths":{{}},"definitions":{{}}}}"#
            );
            Ok(response(document.into_bytes(), "application/json"))
        }
        ["openapi", "v3"] => Ok(response(br#"{"paths":{}}"#.to_vec(), "application/json")),
        _ => Err(Status::no_such_resource()),
    }
}

/// The name that clients ask with contains an `@`, which is not allowed in a media type; this
/// is the one that servers answer with.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// The same document as protobuf: `swagger = 1`, `info = 2 {title = 1, version = 2}`,
/// `paths = 8`, `definitions = 9`, all of them length-delimited.
fn v2_protobuf() -> Vec<u8> {
    let info = [field(1, TITLE.as_bytes()), field(2, VERSION.as_bytes())].concat();
    [field(1, b"2.0"), field(2, &info), field(8, b""), field(9, b"")].concat()
}

/// One length-delimited field; everything here is shorter than a varint's first step.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).ok().filter(|length| *length < 0x80);
    let mut out = vec![number << 3 | 2, length.expect("the texts above are short")];
    out.extend_from_slice(content);
    out
}

fn response(body: Vec<u8>, media_type: &'static str) -> Response<ResponseBody> {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}

#[cfg(test)]
mod tests {
    use super::{PROTOBUF, answer, v2_protobuf};
    use http::{HeaderMap, HeaderValue, header};

    #[test]
    fn the_protobuf_form_has_a_name_that_go_can_read_however_it_was_asked_for() {
        for asked in [PROTOBUF, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"] {
            let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(asked))]);
            let response = answer(&["openapi", "v2"], &headers).unwrap();
            assert_eq!(response.headers()[header::CONTENT_TYPE], PROTOBUF);
        }
    }

    #[test]
    fn the_protobuf_form_is_the_wire_format_of_an_empty_swagger_document() {
        let bytes = v2_protobuf();
        assert_eq!(&bytes[..5], b"\x0a\x032.0");
        assert_eq!(&bytes[5..9], [0x12, 21, 0x0a, 10]);
        assert_eq!(&bytes[bytes.len() - 4..], [0x42, 0, 0x4a, 0]);
    }
}
