//! GET of one object.
//!
//! Without a resourceVersion it is the latest; with one, any that is not older, so that what this
//! server has heard of is enough.

use http::StatusCode;

use super::{list, options};
use crate::call::Call;
use crate::conversion;
use crate::document::Stored;
use crate::reply::Reply;
use crate::status::{Result, Status};

/// What is told to one who wants an object without what belongs to one cluster.
const EXPORT: &str = "the export parameter, deprecated since v1.14, is no longer supported";

/// Answers with the stored object.
pub(crate) async fn get(call: &Call) -> Result<Reply> {
    if call.info.query.flag("export") == Some(true) {
        return Err(Status::bad_request(EXPORT));
    }
    let revision = call.info.query.text("resourceVersion").map(options::parse_revision);
    let odd = |why: String| {
        // Events are not cached upstream, so there it is the store that refuses.
        if call.resource.storage_prefix == "events" {
            Status::bad_request(format!("invalid resource version: {why}"))
        } else {
            Status::failure(why)
        }
    };
    let object = match revision.transpose().map_err(odd)? {
        None => call.stored().await?,
        Some(revision) => {
            list::reach(&call.server, revision).await?;
            known(call).await?
        }
    };
    Ok(Reply::Object { code: StatusCode::OK, object })
}

async fn known(call: &Call) -> Result<Stored> {
    let place = call.place();
    let entry = call.server.known(&call.resource.key(place)).await?;
    let entry = entry.ok_or_else(|| Status::not_found(call.resource.named(place.name)))?;
    conversion::read(&call.server, &call.resource, Stored::from(&entry)).await
}
