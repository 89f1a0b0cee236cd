//! The storage version migrator: writes every object of a resource again, so that it is stored as the
//! newest version says. Where StorageVersionMigrations are served, which Kubernetes 1.36 does on request.
//!
//! Three parts, as in Kubernetes, which pass a migration on by its status: the runner lets one migration
//! of a resource run at a time and tells its definition; the second notes from when on objects need not
//! be written; the third writes the others. [`plan`] says what is next.

mod definition;
mod migrate;
mod plan;
mod resource_version;
mod runner;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::storagemigration::v1beta1::StorageVersionMigration;
use steersman::controller::MapContext;
use steersman::handler::Request;
use steersman::{Controller, ObjectKey, Result};

use migrate::Migrator;
use resource_version::Checkpoints;
use runner::Runner;

/// The part that writes objects again.
pub(crate) const NAME: &str = "storage-version-migrator-controller";
/// The part that notes from when on objects need not be written.
pub(crate) const CHECKPOINTS: &str = "resource-version-controller";
/// The part that lets migrations run.
pub(crate) const RUNNER: &str = "migration-runner-controller";

/// How many migrations of different resources run at once.
const WORKERS: usize = 5;

/// The parts of the storage version migrator.
pub(crate) fn controllers() -> [Controller; 3] {
    let migrations = || Controller::of::<StorageVersionMigration>();
    [
        migrations().named(NAME).concurrency(WORKERS).reconcile(Migrator),
        migrations().named(CHECKPOINTS).reconcile(Checkpoints),
        migrations().named(RUNNER).watches_async(of_same_resource).reconcile(Runner),
    ]
}

/// All migrations of the resource that one is of: when it ends or goes, another may run.
async fn of_same_resource(
    changed: Arc<StorageVersionMigration>,
    ctx: MapContext,
) -> Result<Vec<Request>> {
    let all = ctx.cache::<StorageVersionMigration>()?.list();
    let same = all.iter().filter(|other| plan::is_same_resource(other, &changed));
    Ok(same.map(|migration| Request::new(ObjectKey::of(&**migration))).collect())
}
