//! Says whether one range can be used.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::Patch;
use serde_json::json;
use steersman::{Context, Next, Result, clock};

use super::NAME;
use super::plan::{may_go, ready, says, terminating};

/// How long a range stays after it was deleted, so that every API server hears of it and gives no
/// more addresses of it.
const GRACE: Duration = Duration::from_secs(10);
/// When to look again whether the addresses of a range are free, if nobody has said so.
const AGAIN: Duration = Duration::from_secs(60);

/// A range that is not being deleted can be used.
pub(super) async fn reconcile(range: Arc<ServiceCIDR>, ctx: Context<ServiceCIDR>) -> Result<Next> {
    say(&range, &ctx, ready(clock::now_time())).await?;
    Ok(Next::Settled)
}

/// A range may go once nobody has an address of it that no other range has.
pub(super) async fn clean_up(range: Arc<ServiceCIDR>, ctx: Context<ServiceCIDR>) -> Result<Next> {
    let ranges = ctx.cache::<ServiceCIDR>()?.list();
    let addresses = ctx.cache::<IPAddress>()?.list();
    if !may_go(&range, &ranges, &addresses) {
        say(&range, &ctx, terminating(clock::now_time())).await?;
        return Ok(Next::After(AGAIN));
    }
    let deleted = range.metadata.deletion_timestamp.as_ref().map(|time| time.0);
    let since = deleted.map(|deleted| clock::now().duration_since(deleted));
    let since = since.and_then(|since| Duration::try_from(since).ok()).unwrap_or_default();
    match GRACE.checked_sub(since).filter(|left| !left.is_zero()) {
        Some(left) => Ok(Next::After(left)),
        None => Ok(Next::Settled),
    }
}

/// Applies the condition, unless it says so already.
async fn say(range: &ServiceCIDR, ctx: &Context<ServiceCIDR>, condition: Condition) -> Result<()> {
    if says(range, &condition) {
        return Ok(());
    }
    let applied = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "ServiceCIDR",
        "metadata": {"name": range.metadata.name},
        "status": {"conditions": [condition]},
    });
    let client = ctx.live().with_field_manager(NAME);
    client.patch_status::<ServiceCIDR, _>(ctx.key().clone(), &Patch::Apply(applied)).await?;
    Ok(())
}
