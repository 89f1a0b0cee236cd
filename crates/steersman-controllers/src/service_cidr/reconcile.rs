//! Says whether one range can be used.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::Patch;
use serde_json::json;
use steersman::{Context, Next, Result, clock};

use super::NAME;
use super::plan::may_go;

/// Whether Services get addresses of the range.
const READY: &str = "Ready";
/// How long a range stays after it was deleted, so that every API server hears of it and gives no
/// more addresses of it.
const GRACE: Duration = Duration::from_secs(10);
/// When to look again whether the addresses of a range are free, if nobody has said so.
const AGAIN: Duration = Duration::from_secs(60);

/// A range that is not being deleted can be used.
pub(super) async fn reconcile(range: Arc<ServiceCIDR>, ctx: Context<ServiceCIDR>) -> Result<Next> {
    say(&range, &ctx, ["True", "", "Kubernetes Service CIDR is ready"]).await?;
    Ok(Next::Settled)
}

/// A range may go once nobody has an address of it that no other range has.
pub(super) async fn clean_up(range: Arc<ServiceCIDR>, ctx: Context<ServiceCIDR>) -> Result<Next> {
    let ranges = ctx.cache::<ServiceCIDR>()?.list();
    let addresses = ctx.cache::<IPAddress>()?.list();
    if !may_go(&range, &ranges, &addresses) {
        let message = "There are still IPAddresses referencing the ServiceCIDR, please remove them \
                       or create a new ServiceCIDR";
        say(&range, &ctx, ["False", "Terminating", message]).await?;
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

/// Applies the condition, unless it says so already. A range that is ready has no reason for it, which the
/// framework's own conditions must have.
async fn say(
    range: &ServiceCIDR,
    ctx: &Context<ServiceCIDR>,
    [status, reason, message]: [&str; 3],
) -> Result<()> {
    let conditions = range.status.as_ref().and_then(|status| status.conditions.as_ref());
    let is_said = conditions.into_iter().flatten().any(|it| {
        it.type_ == READY && it.status == status && it.reason == reason && it.message == message
    });
    if is_said {
        return Ok(());
    }
    let condition = Condition {
        type_: READY.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Time(clock::now()),
        observed_generation: None,
    };
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
