//! One look at one migration that runs: notes at which version its resource is now. What is written
//! later is stored as it should be.

use std::sync::Arc;

use http::Request;
use k8s_openapi::api::storagemigration::v1beta1::StorageVersionMigration;
use serde::Deserialize;
use steersman::{Context, Error, Next, Reconciler, Result, clock};

use super::plan::{End, RUNNING, Served, checkpoint, ended, is_terminal, is_true, served, target};
use crate::discovery::served_resource;

/// Notes versions.
pub(super) struct Checkpoints;

/// A list, of which only its version is read.
#[derive(Deserialize)]
struct Listed {
    metadata: ListedMetadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedMetadata {
    resource_version: String,
}

impl Reconciler<StorageVersionMigration> for Checkpoints {
    async fn reconcile(
        &self,
        migration: Arc<StorageVersionMigration>,
        ctx: Context<StorageVersionMigration>,
    ) -> Result<Next> {
        let runs = is_true(&migration, RUNNING) && !is_terminal(&migration);
        if !runs || !checkpoint(&migration).is_empty() {
            return Ok(Next::Settled);
        }
        let what = target(&migration);
        let resource = served_resource(ctx.live(), &what.group, &what.resource).await?;
        let told = match served(&migration, resource.as_ref(), clock::now()) {
            Served::NotYet => {
                let reason =
                    "resource does not exist in our rest mapper, requeuing to attempt again";
                return Err(Error::message(reason));
            }
            Served::Never(reason) => ended(&migration, End::Failure(reason), &clock::now_time()),
            Served::Migratable => {
                let path = resource.map(|it| it.path(None)).unwrap_or_default();
                let request = Request::get(format!("{path}?limit=1")).body(Vec::new())?;
                let list: Listed = ctx.live().kube().request(request).await?;
                let mut migration = StorageVersionMigration::clone(&migration);
                let status = migration.status.get_or_insert_default();
                status.resource_version = Some(list.metadata.resource_version);
                migration
            }
        };
        ctx.update_status(&told).await?;
        Ok(Next::Settled)
    }
}
