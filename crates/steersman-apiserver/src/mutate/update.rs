//! PUT: the whole object, its status, or another part with a path of its own.

use http::StatusCode;
use serde_json::Value;
use steersman_rules::metadata;

use super::decode;
use crate::call::Call;
use crate::reply::Reply;
use crate::status::{Result, Status};
use crate::write::create::create_object;
use crate::write::{OTHER_NAMESPACE, Tracking, Writer, change, prepare};

/// Replaces the object of the path by the one of the body.
pub(crate) async fn update(call: &Call) -> Result<Reply> {
    names_one(call)?;
    let object = named(call, decode::object(call)?)?;
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

/// Refuses a body that is about another object than the path.
pub(super) fn named(call: &Call, mut object: Value) -> Result<Value> {
    let place = call.place();
    let namespace = metadata::text(&object, "namespace");
    if call.resource.namespaced && !namespace.is_empty() && namespace != place.namespace {
        return Err(Status::bad_request(OTHER_NAMESPACE));
    }
    has_name(call, &object)?;
    let namespace = call.resource.namespaced.then(|| place.namespace.into());
    metadata::set(&mut object, "namespace", namespace);
    Ok(object)
}

/// Refuses a request for a whole collection.
pub(super) fn names_one(call: &Call) -> Result<()> {
    match call.info.name {
        Some(_) => Ok(()),
        None => Err(Status::bad_request("name must be provided")),
    }
}

/// The object does not say its name where it must.
pub(super) fn undeterminable(call: &Call) -> Status {
    let wanted = call.place().name;
    Status::bad_request(format!(
        "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
    ))
}

/// Refuses an object that has another name than the path, or none.
pub(super) fn has_name(call: &Call, object: &Value) -> Result<()> {
    let name = metadata::text(object, "name");
    let wanted = call.place().name;
    let why = match name {
        _ if name == wanted => return Ok(()),
        "" => return Err(undeterminable(call)),
        _ => {
            format!("the name of the object ({name}) does not match the name on the URL ({wanted})")
        }
    };
    Err(Status::bad_request(why))
}
