//! POST: a new object.

use http::StatusCode;
use serde_json::Value;
use steersman_store::{Entry, Expected, Revision, StoreError};

use super::{Held, Tracking, Writer, change, decode, lifecycle, part, validate};
use crate::admission::{Operation, Request};
use crate::allocate;
use crate::authn::User;
use crate::call::Call;
use crate::crd;
use crate::document::Stored;
use crate::reply::Reply;
use crate::status::{Result, Status};
use steersman_rules::metadata;
use steersman_rules::resource::Place;

/// How often a generated name may be taken before the client is told.
const GENERATE_ATTEMPTS: usize = 8;

/// The longest name there is room for before the generated part.
const GENERATE_BASE_MAX: usize = 58;

/// Creates the object of the body.
pub(crate) async fn create(call: &Call) -> Result<Reply> {
    let object = decode::object(call)?;
    let object = create_object(&call.writer()?, call.namespace(), object, Tracking::Record).await?;
    Ok(Reply::Object { code: StatusCode::CREATED, object })
}

/// Creates an object in a namespace (empty for cluster-scoped kinds).
pub(crate) async fn create_object(
    writer: &Writer<'_>,
    namespace: &str,
    mut object: Value,
    tracking: Tracking,
) -> Result<Stored> {
    place(writer, namespace, &mut object)?;
    name_nameless(writer, &mut object);
    let name = metadata::text(&object, "name").to_owned();
    let seen = lifecycle::accepts(writer, namespace, &name).await?;
    crd::accepts_instances(writer)?;
    let mut object = admitted(writer, Place { namespace, name: &name }, object, tracking).await?;
    let base = metadata::text(&object, "generateName").to_owned();
    // Without a name or the beginning of one there are mistakes to tell, this among them.
    let generate = metadata::text(&object, "name").is_empty() && !base.is_empty();
    if !generate {
        let name = metadata::text(&object, "name").to_owned();
        let stored = insert(writer, namespace, object, seen).await?;
        let Some(stored) = stored else { return Err(taken(writer, namespace, &name).await) };
        return Ok(stored);
    }
    for _ in 0..GENERATE_ATTEMPTS {
        let name = generated_name(&base, &writer.server.random.suffix());
        metadata::set(&mut object, "name", Some(name.into()));
        if let Some(stored) = insert(writer, namespace, object.clone(), seen).await? {
            return Ok(stored);
        }
    }
    Err(Status::already_exists(writer.resource.named(metadata::text(&object, "name"))))
}

/// Why an object could not be created: one of its name is there, or going.
async fn taken(writer: &Writer<'_>, namespace: &str, name: &str) -> Status {
    let key = writer.resource.key(Place { namespace, name });
    let going = |entry: Entry| metadata::is_deleting(&decoded(&entry));
    let is_going = writer.server.get(&key).await.ok().flatten().is_some_and(going);
    let named = writer.resource.named(name);
    if is_going { Status::still_exists(named) } else { Status::already_exists(named) }
}

/// Limit ranges, and nothing else, are named by the server where nobody names them.
fn name_nameless(writer: &Writer<'_>, object: &mut Value) {
    let given = |field: &str| !metadata::text(object, field).is_empty();
    if writer.resource.is("", "limitranges") && !given("name") && !given("generateName") {
        let name = writer.server.random.uid();
        metadata::set(object, "name", Some(name.into()));
    }
}

/// The object with its defaults and its owners, and with what webhooks make of it.
async fn admitted(
    writer: &Writer<'_>,
    place: Place<'_>,
    mut object: Value,
    tracking: Tracking,
) -> Result<Value> {
    complete(writer, &mut object);
    if tracking == Tracking::Record {
        writer.track(None, &mut object);
    }
    let Some(request) = Request::of(writer, Operation::Create, place) else { return Ok(object) };
    if request.mutate(&mut object, None).await? {
        self::place(writer, place.namespace, &mut object)?;
        complete(writer, &mut object);
    }
    Ok(object)
}

/// Refuses what its namespace or its definition did not take any more when it was written.
async fn accepted(
    writer: &Writer<'_>,
    place: Place<'_>,
    seen: Option<Revision>,
    written: Revision,
) -> Result<()> {
    lifecycle::accepted(writer, place.namespace, place.name, seen, written).await?;
    crd::accepted_instance(writer, written).await
}

/// Removes an object that was written while its namespace or definition went away: whoever
/// empties those may have looked before it was there.
async fn take_back(
    writer: &Writer<'_>,
    place: Place<'_>,
    object: &Value,
    mut revision: Revision,
) -> Result<()> {
    loop {
        match writer.commit(place, None, object, Expected::Modified(revision)).await {
            Ok(_) => return Ok(()),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        // Someone has changed it, or has been so kind as to remove it.
        let entry = writer.server.get(&writer.resource.key(place)).await?;
        let uid = |entry: &Entry| metadata::text(&decoded(entry), "uid").to_owned();
        match entry.filter(|entry| uid(entry) == metadata::text(object, "uid")) {
            Some(entry) => revision = entry.modified,
            None => return Ok(()),
        }
    }
}

fn decoded(entry: &Entry) -> Value {
    serde_json::from_slice(&entry.value).unwrap_or_default()
}

/// Completes, checks and writes the object; `None` if its name is taken.
async fn insert(
    writer: &Writer<'_>,
    namespace: &str,
    mut object: Value,
    seen: Option<Revision>,
) -> Result<Option<Stored>> {
    identify(writer, &mut object);
    // What the server generates from here on, nobody owns.
    prepare(writer, &mut object);
    if !writer.trusted {
        validate::new_object(writer, &object)?;
        writer.warn(&object, None);
    }
    let reservation = allocate::reserve(writer, None, &mut object).await?;
    let place = Place { namespace, name: metadata::text(&object, "name") };
    if let Some(request) = Request::of(writer, Operation::Create, place) {
        request.validate(Some(&object), None).await?;
    }
    let held = Held { reservation, turn: crd::turn(writer).await };
    crd::prepare_in_turn(writer, None, &mut object);
    let has_version = change::resource_version(&object).is_ok_and(|version| version != 0);
    let bytes = writer.encode(&mut object)?;
    let place = Place { namespace, name: metadata::text(&object, "name") };
    if writer.dry_run {
        let taken = writer.server.get(&writer.resource.key(place)).await?.is_some();
        return if taken { Ok(None) } else { Ok(Some(Stored::unwritten(&object)?)) };
    }
    if has_version {
        return Err(Status::failure("resourceVersion should not be set on objects to be created"));
    }
    let written = Some(writer.to_storage(&object, &bytes).await?);
    match writer.commit_holding(place, written.clone(), &object, Expected::Absent, held).await {
        Ok(revision) => {
            if let Err(status) = accepted(writer, place, seen, revision).await {
                take_back(writer, place, &object, revision).await?;
                return Err(status);
            }
            Ok(Some(writer.written(written, bytes, revision).await))
        }
        Err(StoreError::Conflict { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Puts the object where the path says, and refuses one that says otherwise.
fn place(writer: &Writer<'_>, namespace: &str, object: &mut Value) -> Result<()> {
    let given = metadata::text(object, "namespace");
    if !given.is_empty() && given != namespace && writer.resource.namespaced {
        return Err(Status::bad_request(super::OTHER_NAMESPACE));
    }
    let namespace = writer.resource.namespaced.then(|| namespace.into());
    metadata::set(object, "namespace", namespace);
    Ok(())
}

/// What only the server says about an object.
const OURS: [&str; 5] =
    ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid"];

/// Takes out what the client may not say, and fills in what it left out.
fn complete(writer: &Writer<'_>, object: &mut Value) {
    let resource = writer.resource;
    for field in OURS {
        metadata::set(object, field, None);
    }
    if resource.has_status()
        && !resource.strategy.keeps_status()
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    resource.schema.apply_defaults(object);
    resource.strategy.default(object);
}

/// Says what only the server says of a new object.
fn identify(writer: &Writer<'_>, object: &mut Value) {
    let uid = writer.server.random.uid();
    metadata::set(object, "uid", Some(uid.into()));
    metadata::set(object, "creationTimestamp", Some(writer.now.as_str().into()));
    if writer.resource.has_generation {
        metadata::set(object, "generation", Some(1.into()));
    }
}

/// Generates what a new object of its kind has, and resets what a client may not set.
fn prepare(writer: &Writer<'_>, object: &mut Value) {
    let (server, resource) = (writer.server, writer.resource);
    resource.strategy.prepare_create(object);
    resource.strategy.default(object);
    if crd::is_definition(resource) {
        crd::prepare(server, object, &writer.now);
    }
    if resource.is("", "persistentvolumes") {
        part::phase_changed(&Value::Null, object, &writer.now);
    }
    if resource.is("certificates.k8s.io", "certificatesigningrequests")
        && let Some(user) = writer.user
    {
        sign(object, user);
    }
}

/// Writes into a signing request who asks for the certificate, whatever the client says.
fn sign(request: &mut Value, user: &User) {
    let Some(spec) = request.get_mut("spec").and_then(Value::as_object_mut) else { return };
    for field in ["username", "uid", "groups", "extra"] {
        spec.remove(field);
    }
    for (field, value) in user.to_fields() {
        spec.insert(field.to_owned(), value);
    }
}

fn generated_name(base: &str, suffix: &str) -> String {
    let mut end = base.len().min(GENERATE_BASE_MAX);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &base[..end])
}
