//! What is next for a migration: objects in, a step out.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::storagemigration::v1beta1::StorageVersionMigration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, GroupResource, Time};

use crate::discovery::ServedResource;

pub(super) const RUNNING: &str = "Running";
pub(super) const SUCCEEDED: &str = "Succeeded";
pub(super) const FAILED: &str = "Failed";
const SUCCESS: &str = "StorageVersionMigrationSucceeded";
const FAILURE: &str = "StorageVersionMigrationFailed";

/// How long a resource that is not served may still come.
const PATIENCE: SignedDuration = SignedDuration::from_mins(1);
/// What the server must offer of a resource.
const VERBS: [&str; 3] = ["update", "patch", "list"];

/// What the runner does with a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// It has ended, and is not running any more.
    CleanUp,
    /// It is its turn.
    Promote,
    /// It runs, has ended, or waits.
    Wait,
}

/// What the runner does with a migration among all of them: of a resource, one runs at a time, the oldest
/// first.
pub(super) fn step(
    migration: &StorageVersionMigration,
    all: &[Arc<StorageVersionMigration>],
) -> Step {
    if is_terminal(migration) {
        return if is_true(migration, RUNNING) { Step::CleanUp } else { Step::Wait };
    }
    let others = || all.iter().filter(|other| is_same_resource(other, migration));
    let open = |it: &&Arc<StorageVersionMigration>| !is_terminal(it);
    if others().filter(open).any(|other| is_true(other, RUNNING)) {
        return Step::Wait;
    }
    let age = |it: &StorageVersionMigration| {
        let created = it.metadata.creation_timestamp.as_ref().map(|at| at.0);
        (created, it.metadata.name.clone())
    };
    let is_first = others().filter(open).all(|other| age(migration) <= age(other));
    if is_first { Step::Promote } else { Step::Wait }
}

/// The resource that is to be migrated.
pub(super) fn target(migration: &StorageVersionMigration) -> GroupResource {
    migration.spec.as_ref().map(|spec| spec.resource.clone()).unwrap_or_default()
}

/// Whether two migrations are of one resource.
pub(super) fn is_same_resource(
    one: &StorageVersionMigration,
    other: &StorageVersionMigration,
) -> bool {
    target(one) == target(other)
}

/// Whether a condition holds.
pub(super) fn is_true(migration: &StorageVersionMigration, kind: &str) -> bool {
    condition(migration, kind).is_some_and(|condition| condition.status == "True")
}

/// Whether it has ended.
pub(super) fn is_terminal(migration: &StorageVersionMigration) -> bool {
    is_true(migration, SUCCEEDED) || is_true(migration, FAILED)
}

fn condition<'a>(migration: &'a StorageVersionMigration, kind: &str) -> Option<&'a Condition> {
    let status = migration.status.as_ref();
    let mut conditions = status.and_then(|it| it.conditions.as_ref()).into_iter().flatten();
    conditions.find(|condition| condition.type_ == kind)
}

/// The version up to which objects have to be written again; empty while nobody has noted it.
pub(super) fn checkpoint(migration: &StorageVersionMigration) -> &str {
    let status = migration.status.as_ref();
    status.and_then(|it| it.resource_version.as_deref()).unwrap_or_default()
}

/// How a migration ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    Success,
    Failure(String),
}

/// The migration with how it ended.
pub(super) fn ended(
    migration: &StorageVersionMigration,
    end: End,
    now: &Time,
) -> StorageVersionMigration {
    let (kind, reason, message) = match end {
        End::Success => (SUCCEEDED, SUCCESS, String::new()),
        End::Failure(message) => (FAILED, FAILURE, message),
    };
    with_condition(migration, kind, (reason, message), now)
}

/// The migration with the condition that it runs.
pub(super) fn running(migration: &StorageVersionMigration, now: &Time) -> StorageVersionMigration {
    let says = ("MigrationRunning", "The migration is running".to_owned());
    with_condition(migration, RUNNING, says, now)
}

/// The migration with a condition that it has not had before.
fn with_condition(
    migration: &StorageVersionMigration,
    kind: &str,
    (reason, message): (&str, String),
    now: &Time,
) -> StorageVersionMigration {
    let mut migration = migration.clone();
    if condition(&migration, kind).is_none() {
        let status = migration.status.get_or_insert_default();
        status.conditions.get_or_insert_default().push(Condition {
            type_: kind.into(),
            status: "True".into(),
            reason: reason.into(),
            message,
            observed_generation: None,
            last_transition_time: now.clone(),
        });
    }
    migration
}

/// The migration without running any more.
pub(super) fn stopped(migration: &StorageVersionMigration, now: &Time) -> StorageVersionMigration {
    let mut migration = migration.clone();
    let generation = migration.metadata.generation;
    let conditions = migration.status.as_mut().and_then(|status| status.conditions.as_mut());
    for condition in conditions.into_iter().flatten().filter(|it| it.type_ == RUNNING) {
        condition.status = "False".into();
        condition.reason = "MigrationCompleted".into();
        condition.message = "Migration completed".into();
        condition.observed_generation = generation;
        condition.last_transition_time = now.clone();
    }
    migration
}

/// What a resource that is to be migrated allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Served {
    Migratable,
    /// It is not served, which may change.
    NotYet,
    /// It will not be migrated, for this reason.
    Never(String),
}

/// Whether a resource can be migrated, as it is served.
pub(super) fn served(
    migration: &StorageVersionMigration,
    resource: Option<&ServedResource>,
    now: Timestamp,
) -> Served {
    let Some(resource) = resource else {
        let created = migration.metadata.creation_timestamp.as_ref().map(|at| at.0);
        let is_young = created.is_some_and(|at| now.duration_since(at) < PATIENCE);
        return match is_young {
            true => Served::NotYet,
            false => Served::Never("resource does not exist in discovery".into()),
        };
    };
    if resource.has_verbs(&VERBS) {
        return Served::Migratable;
    }
    let name = full_name(&target(migration), &resource.api.version);
    let verbs = VERBS.join(" ");
    Served::Never(format!("resource \"{name}\" does not support discovery operations: [{verbs}]"))
}

/// A resource in a version, as Go prints it.
fn full_name(GroupResource { group, resource }: &GroupResource, version: &str) -> String {
    format!("{group}/{version}, Resource={resource}")
}
