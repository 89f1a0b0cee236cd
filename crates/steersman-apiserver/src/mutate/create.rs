//! POST: a new object.

use http::StatusCode;

use super::decode;
use crate::call::Call;
use crate::reply::Reply;
use crate::status::Result;
use crate::write::Tracking;
use crate::write::create::create_object;

/// Creates the object of the body.
pub(crate) async fn create(call: &Call) -> Result<Reply> {
    let object = decode::object(call)?;
    let object = create_object(&call.writer()?, call.namespace(), object, Tracking::Record).await?;
    Ok(Reply::Object { code: StatusCode::CREATED, object })
}
