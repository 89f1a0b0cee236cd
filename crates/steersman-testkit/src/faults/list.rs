//! Spoils the pages of lists.

use bytes::Bytes;
use futures::stream;
use http::{Response, header};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};
use tower::BoxError;

use super::body::AnswerBody;
use super::{Fault, Faults};

/// Gives the page with some objects malformed, or only its first part, or as it is.
pub(super) async fn spoil<B>(
    answer: Response<B>,
    faults: &Faults,
) -> Result<Response<AnswerBody>, BoxError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (mut head, body) = answer.into_parts();
    let whole = body.collect().await.map_err(Into::into)?.to_bytes();
    let page = malform_items(&whole, faults).map_or(whole, Bytes::from);
    head.headers.remove(header::CONTENT_LENGTH); // it may be another now
    Ok(Response::from_parts(head, breakable(page, faults)))
}

fn breakable(mut page: Bytes, faults: &Faults) -> AnswerBody {
    if !faults.strikes(Fault::ConnectionReset) {
        return Full::new(page).map_err(|never| match never {}).boxed_unsync();
    }
    page.truncate(faults.pick(0..=page.len()));
    let frames = [Ok(Frame::data(page)), Err(BoxError::from("connection reset"))];
    StreamBody::new(stream::iter(frames)).boxed_unsync()
}

/// The page with some objects malformed; `None` if all stay as they are.
fn malform_items(page: &[u8], faults: &Faults) -> Option<Vec<u8>> {
    let mut page: Value = serde_json::from_slice(page).ok()?;
    let mut malformed = false;
    for item in page["items"].as_array_mut()? {
        if faults.strikes(Fault::Malformed) {
            malform(item, faults);
            malformed = true;
        }
    }
    if malformed { serde_json::to_vec(&page).ok() } else { None }
}

/// Gives one field of the object a form that no kind allows it; its identity stays readable.
pub(super) fn malform(object: &mut Value, faults: &Faults) {
    let own = object.as_object().and_then(|fields| {
        let mut names = fields.keys();
        names.find(|name| !["apiVersion", "kind", "metadata"].contains(&name.as_str())).cloned()
    });
    match own {
        Some(field) if faults.pick(0..=1) == 0 => object[field] = json!(7),
        _ => object["metadata"]["annotations"] = json!("malformed"),
    }
}
