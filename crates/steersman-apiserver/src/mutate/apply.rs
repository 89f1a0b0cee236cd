//! PATCH as server-side apply: what one manager wants, merged with what others want.

use http::StatusCode;
use serde_json::{Map, Value};
use steersman_rules::apply::{Apply, ApplyError, apply as merge, check_configuration};
use steersman_rules::apply::{FieldConflict, conflict_message};
use steersman_rules::metadata;

use super::{decode, identity};
use crate::call::Call;
use crate::reply::Reply;
use crate::status::{Cause, Result, Status};
use crate::write::create::create_object;
use crate::write::versions::Served;
use crate::write::{Tracking, Writer, change, prepare};

/// How often an object may come and go under an apply before the client is told.
const ATTEMPTS: usize = 4;

/// Applies the configuration of the body; creates the object if there is none.
pub(crate) async fn apply(call: &Call) -> Result<Reply> {
    let Configuration { object: applied, is_named } = configuration(call)?;
    let writer = call.writer()?;
    let force = is_forced(call);
    let named = call.resource.named(call.place().name);
    // Webhooks may refuse with these reasons, too, but not with these answers.
    let absent = Status::not_found(named);
    for _ in 0..ATTEMPTS {
        match update_applied(&writer, call, &applied, force).await {
            Err(status) if status == absent && writer.subresource.is_empty() => {}
            answer => return answer,
        }
        if !is_named {
            return Err(identity::undeterminable(call));
        }
        match create_applied(&writer, call, &applied, force).await {
            // Someone was faster; then this is an update.
            Err(status) if status.says_taken(named) => {}
            answer => return answer,
        }
    }
    Err(Status::already_exists(named))
}

async fn update_applied(
    writer: &Writer<'_>,
    call: &Call,
    applied: &Value,
    force: bool,
) -> Result<Reply> {
    let object = change::write(writer, call.place(), |old| {
        let mut merged = merged(writer, Some(old), applied, force)?;
        // A configuration that names no version is for whichever there is.
        let named = applied["metadata"].get("resourceVersion");
        let version = named.or(old["metadata"].get("resourceVersion"));
        metadata::set(&mut merged, "resourceVersion", version.cloned());
        prepare::prepare(writer, old, merged, Tracking::Recorded)
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
    let mut object = merged(writer, None, applied, force)?;
    // A version of what is not there means nothing, but it must be one.
    prepare::resource_version(&object)?;
    metadata::set(&mut object, "resourceVersion", None);
    call.may_create()?;
    let object = create_object(writer, place.namespace, object, Tracking::Recorded).await?;
    Ok(Reply::Object { code: StatusCode::CREATED, object })
}

/// The live object with the configuration, and with the ownership that follows.
pub(super) fn merged(
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
        versions: &Served::of(writer),
        resets: writer.resets(),
    });
    merged.map_err(Status::from)
}

impl From<ApplyError> for Status {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Conflict(conflicts) => conflict(&conflicts),
            ApplyError::Managed => Self::bad_request(error.to_string()),
            ApplyError::Invalid(why) => Self::failure(why),
        }
    }
}

fn conflict(conflicts: &[FieldConflict]) -> Status {
    let (message, causes) = conflict_message(conflicts);
    let causes = causes.into_iter().map(|cause| Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: cause.message,
        field: cause.field,
    });
    Status::apply_conflict(message, causes.collect())
}

/// What is applied.
struct Configuration {
    /// The body, without what this path does not write.
    object: Value,
    /// Whether it says its name itself, without which nothing is created.
    is_named: bool,
}

/// Reads the configuration.
fn configuration(call: &Call) -> Result<Configuration> {
    let api_version = call.api_version.as_str();
    let kind = call.resource.kind.as_ref();
    let mut body = read(call, api_version, kind)?;
    // To Kubernetes it is YAML, in which `3.0` is `3`.
    call.resource.schema.shorten_numbers(&mut body);
    check_configuration(&call.resource.schema, api_version, &body)?;
    let is_named = !metadata::text(&body, "name").is_empty();
    let mut object = decode::configured(call, with_name(call, body))?;
    identity::follow_path(call, &mut object)?;
    let Some(fields) = object.as_object_mut() else {
        return Ok(Configuration { object, is_named });
    };
    match call.subresource() {
        "status" | "approval" => {
            let written = call.resource.subresource(call.subresource());
            keep_status(fields, written.map_or(&[], |subresource| subresource.metadata));
        }
        part if prepare::OWNED_AS_SENT.contains(&part) => {}
        _ if call.resource.has_status() => {
            fields.remove("status");
        }
        _ => {}
    }
    Ok(Configuration { object, is_named })
}

/// Reads a configuration, which must be of the path's kind.
pub(super) fn read(call: &Call, api_version: &str, kind: &str) -> Result<Value> {
    let body = decode::configuration(call)?;
    let text = |field: &str| body.get(field).and_then(Value::as_str).unwrap_or("");
    if (text("apiVersion"), text("kind")) == (api_version, kind) {
        return Ok(body);
    }
    let (group, version) = text("apiVersion").split_once('/').unwrap_or(("", text("apiVersion")));
    let sent = match version.contains('/') {
        // What has no version has no kind either.
        true => "/, Kind=".to_owned(),
        false => format!("{group}/{version}, Kind={}", text("kind")),
    };
    Err(Status::bad_request(format!("invalid object type: {sent}")))
}

/// A configuration may leave its name to the path.
fn with_name(call: &Call, mut body: Value) -> Value {
    let typed = body["metadata"].is_object() || body["metadata"].is_null();
    if typed && metadata::text(&body, "name").is_empty() {
        metadata::set(&mut body, "name", Some(call.place().name.into()));
    }
    body
}

/// Leaves of a configuration what says which object it is about, its status, and what of
/// metadata is written with that.
fn keep_status(fields: &mut Map<String, Value>, written: &[&str]) {
    fields
        .retain(|field, _| matches!(field.as_str(), "apiVersion" | "kind" | "metadata" | "status"));
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        metadata.retain(|field, _| {
            matches!(field.as_str(), "name" | "namespace" | "uid" | "resourceVersion")
                || written.contains(&field.as_str())
        });
    }
}

/// Whether conflicts are to be won.
pub(super) fn is_forced(call: &Call) -> bool {
    call.info.query.flag("force").unwrap_or(false)
}
