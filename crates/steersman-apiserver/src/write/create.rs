//! Making a new object, in this order:
//!
//! 1. It is put into the namespace of the path, and named where the server names such objects.
//! 2. Its namespace, and its definition if it is a custom resource, must take new objects.
//! 3. What only the server may say is taken out, and defaults are filled in.
//! 4. It is recorded who owns which fields; what the server generates from here on, nobody owns.
//! 5. Plug-ins and mutating webhooks may change it; then 1 and 3 hold of what webhooks made of it.
//!    Whoever may not write such an object at all, such as a role that grants too much, is refused.
//! 6. A name is generated, if it has only the beginning of one.
//! 7. It gets a uid, a time and a generation, what the rules of its kind reset or generate, and
//!    the defaults that follow from its name and from what was generated.
//! 8. Mistakes are refused, and what is hardly meant is told.
//! 9. What it needs is taken, such as the addresses of a service.
//! 10. Plug-ins and validating webhooks may refuse it; what nobody refuses is charged to quotas.
//! 11. Whoever writes a definition waits for its turn, and looks again whether its names are free.
//! 12. It is encoded in the version of its storage and stored, if its name is free; what follows from
//!     it happens, such as serving a definition.
//! 13. If its namespace or definition went away meanwhile, it is removed again.
//!
//! If a generated name is taken, 6 to 12 are done again with another one.

use std::sync::Arc;

use serde_json::Value;
use steersman_rules::metadata;
use steersman_rules::resource::Place;
use steersman_store::{Entry, Expected, Revision, StoreError};

use super::{Held, OTHER_NAMESPACE, Tracking, Writer, lifecycle, prepare, validate};
use crate::admission::Operation;
use crate::apart::breath;
use crate::document::Stored;
use crate::status::{Result, Status};

/// How often a generated name may be taken before the client is told.
const GENERATE_ATTEMPTS: usize = 8;

/// The longest name there is room for before the generated part.
const GENERATE_BASE_MAX: usize = 58;

/// What only the server says about an object.
const OURS: [&str; 5] =
    ["creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "selfLink", "uid"];

/// Creates an object in a namespace (empty for cluster-scoped kinds).
pub(crate) async fn create_object(
    writer: &Writer<'_>,
    namespace: &str,
    mut object: Value,
    tracking: Tracking,
) -> Result<Stored> {
    put_into(writer, namespace, &mut object)?;
    if let Some(effects) = writer.effects() {
        effects.name(writer.seen(), &mut object);
    }
    let name = metadata::text(&object, "name").to_owned();
    let seen = lifecycle::accepts(writer, namespace, &name).await?;
    if let Some(effects) = writer.effects() {
        effects.accept(writer.seen(), &name)?;
    }
    complete(writer, &mut object)?;
    breath().await;
    if tracking == Tracking::Record {
        writer.track(None, &mut object);
        breath().await;
    }
    if let Some(request) = writer.asks(Operation::Create, Place { namespace, name: &name })
        && request.mutate(&mut object, None).await?.webhooks
    {
        put_into(writer, namespace, &mut object)?;
        complete(writer, &mut object)?;
    }
    if let Some(effects) = writer.effects() {
        let name = writer.call.map_or("", |call| call.place().name);
        effects.permit(writer.seen(), Place { namespace, name }, None, &object)?;
    }
    let creation = Creation { writer, namespace, seen };
    let base = metadata::text(&object, "generateName").to_owned();
    // Without a name or the beginning of one there are mistakes to tell, this among them.
    let generate = metadata::text(&object, "name").is_empty() && !base.is_empty();
    if !generate {
        let name = metadata::text(&object, "name").to_owned();
        let stored = creation.insert(object).await?;
        let place = Place { namespace, name: &name };
        let Some(stored) = stored else { return Err(taken(writer, place, &base).await) };
        return Ok(stored);
    }
    for _ in 0..GENERATE_ATTEMPTS {
        let name = generated_name(&base, &writer.server.random.suffix());
        metadata::set(&mut object, "name", Some(name.into()));
        if let Some(stored) = creation.insert(object.clone()).await? {
            return Ok(stored);
        }
    }
    let place = Place { namespace, name: metadata::text(&object, "name") };
    Err(taken(writer, place, &base).await)
}

/// Puts the object where the path says, and refuses one that says otherwise.
fn put_into(writer: &Writer<'_>, namespace: &str, object: &mut Value) -> Result<()> {
    let given = metadata::text(object, "namespace");
    if !given.is_empty() && given != namespace && writer.resource.namespaced {
        return Err(Status::bad_request(OTHER_NAMESPACE));
    }
    let namespace = writer.resource.namespaced.then(|| namespace.into());
    metadata::set(object, "namespace", namespace);
    Ok(())
}

/// Takes out what the client may not say, and fills in what it left out.
fn complete(writer: &Writer<'_>, object: &mut Value) -> Result<()> {
    let resource = writer.resource;
    for field in OURS {
        metadata::set(object, field, None);
    }
    if resource.has_status()
        && !resource.rules.keeps_status()
        && let Some(fields) = object.as_object_mut()
    {
        fields.remove("status");
    }
    resource.schema.apply_defaults(object)?;
    resource.rules.fill_in(object);
    Ok(())
}

/// An object that is admitted and has to be checked and stored under one name.
struct Creation<'a> {
    writer: &'a Writer<'a>,
    namespace: &'a str,
    /// The revision of the namespace that takes it.
    seen: Option<Revision>,
}

impl Creation<'_> {
    /// Identifies, checks and writes the object; `None` if its name is taken.
    async fn insert(&self, mut object: Value) -> Result<Option<Stored>> {
        let writer = self.writer;
        identify(writer, &mut object);
        prepare(writer, &mut object);
        if !writer.trusted {
            validate::new_object(writer, &object).await?;
            writer.warn(&object, None);
            breath().await;
        }
        let mut held = Held::default();
        if let Some(effects) = writer.effects() {
            held.taken.extend(effects.take(writer.seen(), None, &mut object).await?);
        }
        if let Some(request) = writer.asks(Operation::Create, self.place(&object)) {
            request.validate(Some(&object), None).await?;
            held.taken.extend(request.take(&object, None).await?);
        }
        if let Some(effects) = writer.effects() {
            held.turn = effects.turn(writer.seen()).await;
            effects.prepare_in_turn(writer.seen(), None, &mut object);
        }
        self.store(object, held).await
    }

    /// Encodes and writes the object; `None` if its name is taken.
    async fn store(&self, mut object: Value, held: Held) -> Result<Option<Stored>> {
        let writer = self.writer;
        let has_version = prepare::resource_version(&object).is_ok_and(|version| version != 0);
        let bytes = writer.encode(&mut object)?;
        let object = Arc::new(object);
        let place = self.place(&object);
        if writer.dry_run {
            let taken = writer.server.get(&writer.resource.key(place)).await?.is_some();
            return if taken { Ok(None) } else { Ok(Some(Stored::unwritten(&object)?)) };
        }
        if has_version {
            return Err(Status::failure(
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let stored = Some(writer.to_storage(&object, &bytes).await?);
        match writer.commit(place, stored.clone(), &object, Expected::Absent, held).await {
            Ok(revision) => {
                if let Err(status) = self.accepted(place, revision).await {
                    take_back(writer, place, &object, revision).await?;
                    return Err(status);
                }
                Ok(Some(writer.written(stored, bytes, revision).await))
            }
            Err(StoreError::Conflict { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses what its namespace or its definition did not take any more when it was written.
    async fn accepted(&self, place: Place<'_>, written: Revision) -> Result<()> {
        let writer = self.writer;
        lifecycle::accepted(writer, place.namespace, place.name, self.seen, written).await?;
        match writer.effects() {
            Some(effects) => effects.accepted(writer.seen(), place.name, written).await,
            None => Ok(()),
        }
    }

    fn place<'a>(&'a self, object: &'a Value) -> Place<'a> {
        Place { namespace: self.namespace, name: metadata::text(object, "name") }
    }
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
    writer.resource.rules.prepare_create(object);
    // Kubernetes fills in defaults whenever it reads, so also from what was just generated: the
    // label of a namespace from its name, the labels of a job from its template.
    writer.resource.rules.fill_in(object);
    if let Some(effects) = writer.effects() {
        effects.prepare(writer.seen(), None, object);
    }
}

fn generated_name(base: &str, suffix: &str) -> String {
    let mut end = base.len().min(GENERATE_BASE_MAX);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{suffix}", &base[..end])
}

/// Why an object could not be created: one of its name is there, or going. Kubernetes takes every
/// name for a generated one whose object says how that would begin, its `base`.
async fn taken(writer: &Writer<'_>, place: Place<'_>, base: &str) -> Status {
    let key = writer.resource.key(place);
    let going = |entry: Entry| metadata::is_deleting(&decoded(&entry));
    let is_going = writer.server.get(&key).await.ok().flatten().is_some_and(going);
    let named = writer.resource.named(place.name);
    let taken =
        if base.is_empty() { Status::already_exists(named) } else { Status::not_generated(named) };
    if is_going { taken.of_one_going() } else { taken }
}

/// Removes an object that was written while its namespace or definition went away: whoever
/// empties those may have looked before it was there.
async fn take_back(
    writer: &Writer<'_>,
    place: Place<'_>,
    object: &Arc<Value>,
    mut revision: Revision,
) -> Result<()> {
    loop {
        let expected = Expected::Modified(revision);
        match writer.commit(place, None, object, expected, Held::default()).await {
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
