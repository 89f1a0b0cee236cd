//! Counts one quota, and writes what came of it.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ResourceQuota;
use steersman::{Context, Error, Next, Result, clock};
use tokio::time::{Instant, timeout};

use super::monitors::{Followed, Monitors};
use super::plan;

/// How long to wait for a resource to be read for the first time.
const SYNC_PATIENCE: Duration = Duration::from_secs(30);

/// Counts one quota.
pub(super) async fn reconcile(
    quota: &ResourceQuota,
    ctx: &Context<ResourceQuota>,
    monitors: &Monitors,
) -> Result<Next> {
    let resources = plan::resources(quota);
    let mut followed = Vec::with_capacity(resources.len());
    for resource in &resources {
        followed.extend(monitors.follow(resource, ctx.live()).await?);
    }
    let synced = async {
        for resource in &followed {
            resource.synced().await;
        }
    };
    if timeout(SYNC_PATIENCE, synced).await.is_err() {
        return Err(Error::message("some of what the quota limits could not be read in time"));
    }
    followed.retain(|resource| !resource.is_lost());
    if let Some(wait) = count(quota, ctx, monitors, &followed).await? {
        return Ok(Next::After(wait));
    }
    let served = followed.len() == resources.len();
    Ok(Next::After(if served { plan::RESYNC } else { plan::UNSERVED }))
}

/// Writes what a quota uses, if it says something else; or says how long to wait for that.
async fn count(
    quota: &ResourceQuota,
    ctx: &Context<ResourceQuota>,
    monitors: &Monitors,
    followed: &[Arc<Followed>],
) -> Result<Option<Duration>> {
    let status = {
        let tallies: Vec<_> = followed.iter().map(|it| it.tally()).collect();
        let tallies: Vec<_> = tallies.iter().map(|tally| &**tally).collect();
        plan::status(quota, &tallies, clock::now())
    };
    if !plan::differs(quota, &status) {
        monitors.interest().is_counted(ctx.key());
        return Ok(None);
    }
    if plan::lowers(quota, &status)
        && let wait @ Some(_) = monitors.interest().wait_to_lower(ctx.key(), Instant::now())
    {
        return Ok(wait);
    }
    let mut quota = quota.clone();
    quota.status = Some(status);
    match ctx.live().update_status(&quota).await {
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
        Ok(_) => {
            monitors.interest().is_counted(ctx.key());
            Ok(None)
        }
    }
}
