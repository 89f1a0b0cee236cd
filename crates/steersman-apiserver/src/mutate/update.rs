//! PUT: the whole object, its status, or another part with a path of its own.

use http::StatusCode;
use serde_json::Value;
use steersman_rules::metadata;

use super::{decode, identity};
use crate::call::Call;
use crate::reply::Reply;
use crate::status::{Result, Status};
use crate::write::create::create_object;
use crate::write::{Tracking, Writer, change, prepare};

/// Replaces the object of the path by the one of the body.
pub(crate) async fn update(call: &Call) -> Result<Reply> {
    identity::names_one(call)?;
    let mut object = decode::object(call)?;
    identity::follow_path(call, &mut object)?;
    let writer = call.writer()?;
    let place = call.place();
    // Also by its status, which in Kubernetes is written by the same rules.
    let creates = call.resource.create_on_update && matches!(writer.subresource, "" | "status");
    if creates && !exists(call).await? {
        match create(call, &writer, &object).await {
            // Someone was faster; then this is an update.
            Err(status) if status.says_taken(call.resource.named(place.name)) => {}
            created => return created,
        }
    }
    let written = change::write(&writer, place, |old| {
        prepare::check_uid(&writer, place, metadata::text(old, "uid"), &object)?;
        prepare::prepare(&writer, old, object.clone(), Tracking::Record)
    });
    match written.await {
        // It is gone, as this server had not heard.
        Err(status) if creates && status == Status::not_found(call.resource.named(place.name)) => {
            create(call, &writer, &object).await
        }
        written => Ok(Reply::Object { code: StatusCode::OK, object: written? }),
    }
}

/// Creates what an update finds missing.
async fn create(call: &Call, writer: &Writer<'_>, object: &Value) -> Result<Reply> {
    prepare::check_uid(writer, call.place(), "", object)?;
    call.may_create()?;
    let mut new = object.clone();
    metadata::set(&mut new, "resourceVersion", None);
    let namespace = call.place().namespace;
    let object = create_object(writer, namespace, new, Tracking::Record).await?;
    Ok(Reply::Object { code: StatusCode::CREATED, object })
}

/// Whether the object of the path is there, or was as far as this server has heard.
async fn exists(call: &Call) -> Result<bool> {
    let key = call.resource.key(call.place());
    let known = call.server.known(&key).await?.is_some();
    Ok(known || call.server.get(&key).await?.is_some())
}
