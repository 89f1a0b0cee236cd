//! The `scale` subresource: how many, wanted and observed, of any kind that can be scaled.

use http::StatusCode;
use serde_json::{Value, json};
use steersman_rules::apply::check_configuration;
use steersman_rules::field::FieldError;
use steersman_rules::metadata;
use steersman_rules::resource::Named;
use steersman_rules::resource::{Resource, ScalePaths, Verb};
use steersman_rules::schema::Schema;

use super::language::Language;
use super::{apply, decode, identity, options};
use crate::call::Call;
use crate::document::Stored;
use crate::reply::Reply;
use crate::status::{Result, Status};
use crate::write::scale::scale_of;
use crate::write::{OTHER_NAMESPACE, Tracking, Writer, change, prepare};

const SCALE: (&str, &str) = ("autoscaling/v1", "Scale");

/// The number of a Scale whose custom resource has none: a patch must put another in its place.
const NONE: i64 = -2_147_483_648;

/// Answers with the scale of an object.
pub(crate) async fn get(call: &Call) -> Result<Reply> {
    let object = call.stored().await?.decode(&call.api_version)?;
    let paths = paths(call)?;
    let path = &paths.spec_replicas;
    if call.resource.is_custom() && metadata::at(&object, path).is_null() {
        let why = format!("the spec replicas field {:?} does not exist", format!(".{path}"));
        return Err(Status::internal(&why));
    }
    Ok(Reply::Document { code: StatusCode::OK, value: scale_of(&object, paths) })
}

/// Sets the wanted number from a Scale.
pub(crate) async fn update(call: &Call) -> Result<Reply> {
    let scale = decode::other(call, SCALE.0, SCALE.1)?;
    identity::has_name(call, &scale)?;
    write(call, |_| Ok(scale.clone())).await
}

/// Patches the Scale.
pub(crate) async fn patch(call: &Call) -> Result<Reply> {
    let language = Language::of(call)?;
    options::check(call)?;
    if language == Language::Apply {
        return apply(call).await;
    }
    write(call, |scale| {
        // A Scale has no lists, so its strategic patch is a merge patch.
        let merged = if language == Language::Strategic { Language::Merge } else { language };
        let mut patched = merged.run(call, scale)?;
        let shown = || language.shown(call, scale);
        decode::patched_part(call, schema(), SCALE, language, &mut patched, shown)?;
        Ok(patched)
    })
    .await
}

async fn write(
    call: &Call,
    decide: impl Fn(&Value) -> Result<Value> + Send + Sync,
) -> Result<Reply> {
    let paths = paths(call)?;
    let writer = Writer { scale: Some(paths), ..call.writer()? };
    let object = change::write(&writer, call.place(), |old| {
        let mut scale = scale_of(old, paths);
        if lacks_number(call, old, paths) {
            scale["spec"]["replicas"] = NONE.into();
        }
        let scale = decide(&scale)?;
        check_name(call, &scale)?;
        check_uid(call, old, &scale)?;
        let replicas = replicas(call, paths, &scale)?;
        let mut new = old.clone();
        metadata::set_at(&mut new, &paths.spec_replicas, replicas.into());
        take_version(&mut new, &scale);
        prepare::prepare(&writer, old, new, Tracking::Record)
    })
    .await?;
    answer(call, &object)
}

/// Applies a Scale: it owns the one field of the object that its replicas stand for.
async fn apply(call: &Call) -> Result<Reply> {
    let paths = paths(call)?;
    let mut scale = apply::read(call, "autoscaling/v1", "Scale")?;
    if let Some(schema) = schema() {
        check_configuration(&schema, "autoscaling/v1", &scale)?;
    }
    decode::part(call, schema(), "Scale", &mut scale)?;
    check_name(call, &scale)?;
    let wanted = scale["spec"].get("replicas").filter(|number| !number.is_null());
    let wanted = wanted.map(|_| replicas(call, paths, &scale)).transpose()?;
    let mut applied = json!({"apiVersion": call.api_version, "kind": call.resource.kind});
    if let Some(wanted) = wanted {
        metadata::set_at(&mut applied, &paths.spec_replicas, wanted.into());
    }
    let writer = Writer { scale: Some(paths), ..call.writer()? };
    let object = change::write(&writer, call.place(), |old| {
        check_uid(call, old, &scale)?;
        let mut merged = apply::merged(&writer, Some(old), &applied, apply::is_forced(call))?;
        if metadata::at(&merged, &paths.spec_replicas).is_null() {
            if lacks_number(call, old, paths) {
                return Err(no_number(paths));
            }
            // Who gives the number up leaves none, and none is zero.
            metadata::set_at(&mut merged, &paths.spec_replicas, 0.into());
        }
        take_version(&mut merged, &scale);
        prepare::prepare(&writer, old, merged, Tracking::Recorded)
    })
    .await?;
    answer(call, &object)
}

/// A Scale that names a uid is for that object; nobody looks in a patch of a custom resource's.
fn check_uid(call: &Call, object: &Value, scale: &Value) -> Result<()> {
    let [is, wants] = [object, scale].map(|document| metadata::text(document, "uid"));
    if wants.is_empty() || wants == is {
        return Ok(());
    }
    let why =
        format!("Precondition failed: UID in precondition: {wants}, UID in object meta: {is}");
    let Resource { group, plural, .. } = &*call.resource;
    let place = call.place();
    if call.resource.is_custom() && call.info.verb == Verb::Patch {
        return Ok(());
    }
    if call.resource.is_custom() || call.info.verb == Verb::Update {
        // Here the error of the storage comes through as it is.
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, \
             AdditionalErrorMsg: {why}",
            prepare::shown_key(&call.resource, place)
        );
        return Err(Status::conflict(Named { group, resource: plural, name: place.name }, &why));
    }
    let resource = format!("{plural}/scale");
    Err(Status::conflict(Named { group, resource: &resource, name: place.name }, &why))
}

/// A Scale that names a version is for that version of its object.
fn take_version(object: &mut Value, scale: &Value) {
    let version = metadata::text(scale, "resourceVersion");
    if !version.is_empty() {
        metadata::set(object, "resourceVersion", Some(version.into()));
    }
}

fn schema() -> Option<Schema> {
    Schema::builtin("autoscaling", "v1", "Scale")
}

fn check_name(call: &Call, scale: &Value) -> Result<()> {
    let namespace = metadata::text(scale, "namespace");
    if !namespace.is_empty() && namespace != call.namespace() {
        return Err(Status::bad_request(OTHER_NAMESPACE));
    }
    if metadata::text(scale, "name").is_empty() { Ok(()) } else { identity::has_name(call, scale) }
}

fn answer(call: &Call, object: &Stored) -> Result<Reply> {
    let object = object.decode(&call.api_version)?;
    let value = scale_of(&object, paths(call)?);
    Ok(Reply::Document { code: StatusCode::OK, value })
}

fn paths(call: &Call) -> Result<&ScalePaths> {
    let subresource = call.resource.subresource("scale").and_then(|sub| sub.scale.as_ref());
    subresource.ok_or_else(Status::no_such_resource)
}

/// How many are wanted. Of a custom resource, the field that the number goes to is checked instead.
fn replicas(call: &Call, paths: &ScalePaths, scale: &Value) -> Result<i64> {
    let number = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if number == NONE && call.resource.is_custom() {
        return Err(no_number(paths));
    }
    if number < 0 && !call.resource.is_custom() {
        let why = "must be greater than or equal to 0";
        let error = FieldError::invalid("spec.replicas", &number.into(), why);
        let what = Named { group: "autoscaling", resource: "Scale", name: call.place().name };
        return Err(Status::invalid(what, &[error]));
    }
    Ok(number)
}

/// Whether a custom resource has no number where its Scale shows one.
fn lacks_number(call: &Call, object: &Value, paths: &ScalePaths) -> bool {
    call.resource.is_custom() && metadata::at(object, &paths.spec_replicas).is_null()
}

fn no_number(paths: &ScalePaths) -> Status {
    let path = format!(".{}", paths.spec_replicas);
    Status::bad_request(format!("the spec replicas field {path:?} cannot be empty"))
}
