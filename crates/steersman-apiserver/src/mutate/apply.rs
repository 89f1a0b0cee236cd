//! PATCH as server-side apply: what one manager wants, merged with what others want.

use http::StatusCode;
use serde_json::{Map, Value};

use super::{Tracking, Writer, change, create, decode, update};
use crate::apply::{Apply, ApplyError, apply as merge, conflict_message};
use crate::body::yaml;
use crate::call::Call;
use crate::field::FieldError;
use crate::metadata;
use crate::reply::Reply;
use crate::status::{Cause, Named, Result, Status};

/// Applies the configuration of the body; creates the object if there is none.
pub(crate) async fn apply(call: &Call) -> Result<Reply> {
    check_options(call)?;
    let applied = configuration(call)?;
    let writer = call.writer()?;
    let force = call.info.query.flag("force").unwrap_or(false);
    let place = call.place();
    let exists = call.server.get(&call.resource.key(place)).await?.is_some();
    if !exists && writer.subresource.is_empty() {
        let object = create_applied(&writer, call, &applied, force).await;
        match object {
            Err(status) if status.reason == "AlreadyExists" => {}
            object => return object,
        }
    }
    let object = change::change(&writer, place, |old| {
        change::check_preconditions(&writer, old, &applied)?;
        let mut merged = merged(&writer, Some(old), &applied, force)?;
        // The configuration's own resourceVersion was a condition, not a wish.
        metadata::set(&mut merged, "resourceVersion", None);
        change::prepare(&writer, old, merged, Tracking::Recorded)
    })
    .await?;
    Ok(Reply::Object { code: StatusCode::OK, object })
}

async fn create_applied(
    writer: &Writer<'_>,
    call: &Call,
    applied: &Value,
    force: bool,
) -> Result<Reply> {
    let place = call.place();
    let uid = metadata::text(applied, "uid");
    if !uid.is_empty() {
        let why = format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        );
        return Err(Status::conflict(call.resource.named(place.name), &why));
    }
    if !metadata::text(applied, "resourceVersion").is_empty() {
        return Err(Status::not_found(call.resource.named(place.name)));
    }
    let object = merged(writer, None, applied, force)?;
    let object = create::create_object(writer, place.namespace, object, Tracking::Recorded).await?;
    Ok(Reply::Object { code: StatusCode::CREATED, object })
}

fn merged(
    writer: &Writer<'_>,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
) -> Result<Value> {
    let merged = merge(Apply {
        live,
        applied,
        manager: &writer.manager,
        force,
        subresource: writer.subresource,
        api_version: &writer.api_version,
        now: &writer.now,
        schema: &writer.resource.schema,
    });
    merged.map_err(|error| match error {
        ApplyError::Conflict(conflicts) => {
            let (message, causes) = conflict_message(&conflicts);
            let causes = causes.into_iter().map(|cause| Cause {
                reason: "FieldManagerConflict".to_owned(),
                message: cause.message,
                field: cause.field,
            });
            Status::apply_conflict(message, causes.collect())
        }
        ApplyError::Invalid(why) => Status::bad_request(why),
    })
}

/// The configuration: the body, without what this path does not write.
fn configuration(call: &Call) -> Result<Value> {
    let body = yaml::read(&call.body)
        .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
    decode::report_repeated_keys(call)?;
    if !body.is_object() {
        return Err(Status::bad_request("the configuration is not an object"));
    }
    if body["apiVersion"].as_str().unwrap_or("").is_empty() {
        return Err(Status::bad_request("apiVersion must be set in apply patch"));
    }
    if body["metadata"]["managedFields"].as_array().is_some_and(|list| !list.is_empty()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let mut object = decode::checked(call, with_name(call, body))?;
    object = update::named(call, object)?;
    let Some(fields) = object.as_object_mut() else { return Ok(object) };
    match call.subresource() {
        "status" | "approval" => keep(fields, "status"),
        _ if call.resource.has_status() => {
            fields.remove("status");
        }
        _ => {}
    }
    Ok(object)
}

/// A configuration may leave its name to the path.
fn with_name(call: &Call, mut body: Value) -> Value {
    let typed = body["metadata"].is_object() || body["metadata"].is_null();
    if typed && metadata::text(&body, "name").is_empty() {
        metadata::set(&mut body, "name", Some(call.place().name.into()));
    }
    body
}

fn keep(fields: &mut Map<String, Value>, part: &str) {
    fields.retain(|field, _| {
        matches!(field.as_str(), "apiVersion" | "kind" | "metadata") || field == part
    });
}

fn check_options(call: &Call) -> Result<()> {
    if call.info.query.text("fieldManager").is_some() {
        return Ok(());
    }
    let error = FieldError::required("fieldManager", "is required for apply patch");
    let what = Named { group: "meta.k8s.io", resource: "PatchOptions", name: "" };
    Err(Status::invalid(what, &[error]))
}
