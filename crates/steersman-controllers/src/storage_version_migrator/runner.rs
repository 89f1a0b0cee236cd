//! One look at one migration: lets it run when it is its turn, and tells the definition of its resource
//! that it runs, and how it ended.

use std::sync::Arc;

use k8s_openapi::api::storagemigration::v1beta1::StorageVersionMigration;
use steersman::{Context, Next, Reconciler, Result, clock};

use super::definition;
use super::plan::{SUCCEEDED, Step, is_true, running, step, stopped, target};

/// Lets migrations run.
pub(super) struct Runner;

impl Reconciler<StorageVersionMigration> for Runner {
    async fn reconcile(
        &self,
        migration: Arc<StorageVersionMigration>,
        ctx: Context<StorageVersionMigration>,
    ) -> Result<Next> {
        let all = ctx.cache::<StorageVersionMigration>()?.list();
        let now = clock::now_time();
        let told = match step(&migration, &all) {
            Step::Wait => return Ok(Next::Settled),
            Step::CleanUp => {
                let has_succeeded = is_true(&migration, SUCCEEDED);
                definition::end(&target(&migration), has_succeeded, ctx.live()).await?;
                stopped(&migration, &now)
            }
            Step::Promote => {
                let name = migration.metadata.name.as_deref().unwrap_or_default();
                definition::begin(&target(&migration), name, ctx.live()).await?;
                running(&migration, &now)
            }
        };
        ctx.update_status(&told).await?;
        Ok(Next::Settled)
    }
}
