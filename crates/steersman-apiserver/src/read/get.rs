//! GET of one object.

use http::StatusCode;

use crate::call::Call;
use crate::reply::Reply;
use crate::status::Result;

/// Answers with the stored object.
pub(crate) async fn get(call: &Call) -> Result<Reply> {
    Ok(Reply::Object { code: StatusCode::OK, object: call.stored().await? })
}
