//! A Pod waits until its devices are ready for its node.

use std::time::Duration;

use steersman::events::NewEvent;
use steersman::{ObjectKey, clock};
use tokio::time;

use super::conditions;
use super::known::{Current, Known};
use crate::framework::Binding;
use crate::plugins::allocations::version;

/// After which time it is looked again whether devices are ready, if nobody says so.
const LOOK: Duration = Duration::from_secs(5);

/// Waits until the devices of a Pod are ready; otherwise why it is not waited for them any longer.
pub(super) async fn wait(
    timeout: Duration,
    binding: &Binding,
    known: &Known,
) -> Result<(), String> {
    let claims = known.current();
    if !claims.iter().any(|current| conditions::has_any(&current.claim)) {
        return Ok(());
    }
    let note = format!("waiting for binding conditions for device on node {}", binding.node);
    let event = NewEvent::normal("BindingConditionsPending").action("Scheduling").note(note);
    binding.recorder.event(&*binding.pod, event);
    let mut changes = binding.device_changes.clone();
    let ready = async {
        loop {
            changes.borrow_and_update();
            if are_ready(timeout, binding, &claims)? {
                return Ok(());
            }
            if let Ok(Err(_)) = time::timeout(LOOK, changes.changed()).await {
                return Err("the scheduler stops".to_owned());
            }
        }
    };
    let ready = time::timeout(timeout, ready).await;
    ready.unwrap_or_else(|_| Err("device binding timeout: context deadline exceeded".to_owned()))
}

/// Whether the devices of all claims are ready.
fn are_ready(timeout: Duration, binding: &Binding, claims: &[Current]) -> Result<bool, String> {
    let pod = binding.lister.pod(&binding.info.key);
    if pod.and_then(|pod| pod.metadata.uid.clone()).as_deref() != Some(&*binding.info.uid) {
        return Err(format!("pod {:?} not found", binding.info.key.name.to_string()));
    }
    for Current { claim, is_new } in claims {
        let key = ObjectKey::of(&**claim);
        let seen = binding.lister.resource_claim(&key);
        if seen.is_none() && !is_new {
            return Err(format!("could not find ResourceClaim {:?}", key.to_string()));
        }
        let seen = seen.filter(|seen| version(seen) >= version(claim));
        let latest = seen.as_ref().unwrap_or(claim);
        if !conditions::are_met(latest)? {
            return match conditions::is_late(latest, timeout, &clock::now_time()) {
                true => Err(format!("device binding timeout: claim={}", key.name)),
                false => Ok(false),
            };
        }
    }
    Ok(true)
}
