//! Says whether one range can be used.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR, ServiceCIDRStatus};
use steersman::conditions::{ConditionType, Conditions};
use steersman::{Context, Next, Result, clock};

use super::plan::may_go;

/// Whether Services get addresses of the range.
const READY: ConditionType = ConditionType::new("Ready");
/// How long a range stays after it was deleted, so that every API server hears of it and gives no
/// more addresses of it.
const GRACE: Duration = Duration::from_secs(10);
/// When to look again whether the addresses of a range are free, if nobody has said so.
const AGAIN: Duration = Duration::from_secs(60);

/// A range that is not being deleted can be used.
pub(super) async fn reconcile(range: Arc<ServiceCIDR>, ctx: Context<ServiceCIDR>) -> Result<Next> {
    say(&range, &ctx, true, "", "Kubernetes Service CIDR is ready");
    Ok(Next::Settled)
}

/// A range may go once nobody has an address of it that no other range has.
pub(super) async fn clean_up(range: Arc<ServiceCIDR>, ctx: Context<ServiceCIDR>) -> Result<Next> {
    let ranges = ctx.cache::<ServiceCIDR>()?.list();
    let addresses = ctx.cache::<IPAddress>()?.list();
    if !may_go(&range, &ranges, &addresses) {
        let message = "There are still IPAddresses referencing the ServiceCIDR, please remove them \
                       or create a new ServiceCIDR";
        say(&range, &ctx, false, "Terminating", message);
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

/// Writes the condition, unless it says so already.
fn say(range: &ServiceCIDR, ctx: &Context<ServiceCIDR>, ready: bool, reason: &str, message: &str) {
    let status = range.status.as_ref();
    let mut conditions = status.and_then(|status| status.conditions.clone()).unwrap_or_default();
    let word = if ready { "True" } else { "False" };
    let is_said = conditions.iter().any(|it| {
        it.type_ == READY.name()
            && it.status == word
            && it.reason == reason
            && it.message == message
    });
    if is_said {
        return;
    }
    conditions.set_condition(READY.is(ready, reason, message));
    ctx.status(ServiceCIDRStatus { conditions: Some(conditions) });
}
