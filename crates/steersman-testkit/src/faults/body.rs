//! The bodies of answers, as they come or spoiled.

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tower::BoxError;

/// The body of an answer that may break.
pub type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// A body as it comes.
pub(super) fn boxed<B>(body: B) -> AnswerBody
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    body.map_err(Into::into).boxed_unsync()
}
