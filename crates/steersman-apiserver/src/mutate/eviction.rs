//! Evicting a pod: a deletion that others may have a say in.

use http::StatusCode;

use super::delete::{DeleteOptions, delete_object};
use super::{decode, success};
use crate::call::Call;
use crate::metadata;
use crate::reply::Reply;
use crate::schema::Schema;
use crate::status::{Result, Status};

/// Deletes the pod of the path as the Eviction says.
pub(crate) async fn evict(call: &Call) -> Result<Reply> {
    let mut eviction = call.document()?;
    decode::part(Schema::builtin("policy", "v1", "Eviction"), "Eviction", &mut eviction)?;
    let (given, name) = (metadata::text(&eviction, "name"), call.place().name);
    if !given.is_empty() && given != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = DeleteOptions::of_document(&eviction["deleteOptions"])?;
    options.dry_run |= call.info.dry_run()?;
    delete_object(&call.writer()?, call.place(), &options).await?;
    Ok(Reply::Document { code: StatusCode::CREATED, value: success(201, None) })
}
