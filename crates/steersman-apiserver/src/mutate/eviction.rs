//! Evicting a pod: a deletion that others may have a say in.

use http::StatusCode;

use super::delete::{DeleteOptions, delete_object};
use super::success;
use crate::call::Call;
use crate::reply::Reply;
use crate::status::Result;

/// Deletes the pod of the path as the Eviction says.
pub(crate) async fn evict(call: &Call) -> Result<Reply> {
    let eviction = call.document()?;
    let mut options = DeleteOptions::of_document(&eviction["deleteOptions"])?;
    options.dry_run |= call.info.dry_run()?;
    delete_object(&call.writer()?, call.place(), &options).await?;
    Ok(Reply::Document { code: StatusCode::CREATED, value: success(201, None) })
}
