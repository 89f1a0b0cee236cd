//! Which object a request is about: the one of its path, and no body may say otherwise.

use serde_json::Value;
use steersman_rules::metadata;

use crate::call::Call;
use crate::status::{Result, Status};
use crate::write::OTHER_NAMESPACE;

/// Refuses a request for a whole collection.
pub(super) fn names_one(call: &Call) -> Result<()> {
    match call.info.name {
        Some(_) => Ok(()),
        None => Err(Status::bad_request("name must be provided")),
    }
}

/// Refuses an object that is another one than the path's. What it does not say about its place, the
/// path says.
pub(super) fn follow_path(call: &Call, object: &mut Value) -> Result<()> {
    let place = call.place();
    let namespace = metadata::text(object, "namespace");
    if call.resource.namespaced && !namespace.is_empty() && namespace != place.namespace {
        return Err(Status::bad_request(OTHER_NAMESPACE));
    }
    let namespace = call.resource.namespaced.then(|| place.namespace.into());
    metadata::set(object, "namespace", namespace);
    has_name(call, object)
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

/// The object does not say its name where it must.
pub(super) fn undeterminable(call: &Call) -> Status {
    let wanted = call.place().name;
    Status::bad_request(format!(
        "the name of the object ({wanted} based on URL) was undeterminable: name must be provided"
    ))
}
