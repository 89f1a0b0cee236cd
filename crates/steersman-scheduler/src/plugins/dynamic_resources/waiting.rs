//! A Pod waits until its devices are ready for its node.

use std::time::Duration;

use steersman::events::NewEvent;
use steersman::{ObjectKey, clock};
use tokio::time;

use super::conditions;
use super::known::{Current, Known};
use crate::framework::Binding;
use crate::metrics::Waited;
use crate::plugins::allocations::version;

/// After which time it is looked again whether devices are ready, if nobody says so.
const LOOK: Duration = Duration::from_secs(5);

/// Why devices are not waited for any longer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Given {
    /// One of them never will be ready.
    Failed(String),
    /// It takes too long.
    Late(String),
    /// Something else went wrong.
    Error(String),
}

impl Given {
    /// What Kubernetes calls it, in metrics.
    fn status(&self) -> &'static str {
        match self {
            Self::Failed(_) => "failure",
            Self::Late(_) => "timeout",
            Self::Error(_) => "error",
        }
    }

    fn why(self) -> String {
        match self {
            Self::Failed(why) | Self::Late(why) | Self::Error(why) => why,
        }
    }
}

/// Waits until the devices of a Pod are ready; otherwise why it is not waited for them any longer. And
/// how that was, if there was something to wait for.
pub(super) async fn wait(
    timeout: Duration,
    binding: &Binding,
    known: &Known,
) -> (Result<(), String>, Option<Waited>) {
    let claims = known.current();
    if !claims.iter().any(|current| conditions::has_any(&current.claim)) {
        return (Ok(()), None);
    }
    let note = format!("waiting for binding conditions for device on node {}", binding.node);
    let event = NewEvent::normal("BindingConditionsPending").action("Scheduling").note(note);
    binding.recorder.event(&*binding.pod, event);
    let began = time::Instant::now();
    let ready = time::timeout(timeout, until_ready(timeout, binding, &claims)).await;
    let late = "device binding timeout: context deadline exceeded";
    let ready = ready.unwrap_or_else(|_| Err(Given::Late(late.to_owned())));
    let drivers = |only_conditional: bool| {
        let claims = claims.iter();
        claims.flat_map(|it| conditions::drivers(&it.claim, only_conditional)).collect()
    };
    let waited = Waited {
        status: ready.as_ref().err().map_or("success", Given::status),
        took: began.elapsed(),
        drivers: drivers(false),
        conditional: drivers(true),
    };
    (ready.map_err(Given::why), Some(waited))
}

async fn until_ready(
    timeout: Duration,
    binding: &Binding,
    claims: &[Current],
) -> Result<(), Given> {
    let mut changes = binding.device_changes.clone();
    loop {
        changes.borrow_and_update();
        if are_ready(timeout, binding, claims)? {
            return Ok(());
        }
        if let Ok(Err(_)) = time::timeout(LOOK, changes.changed()).await {
            return Err(Given::Error("the scheduler stops".to_owned()));
        }
    }
}

/// Whether the devices of all claims are ready.
fn are_ready(timeout: Duration, binding: &Binding, claims: &[Current]) -> Result<bool, Given> {
    let pod = binding.lister.pod(&binding.info.key);
    if pod.and_then(|pod| pod.metadata.uid.clone()).as_deref() != Some(&*binding.info.uid) {
        let why = format!("pod {:?} not found", binding.info.key.name.to_string());
        return Err(Given::Error(why));
    }
    for Current { claim, is_new } in claims {
        let key = ObjectKey::of(&**claim);
        let seen = binding.lister.resource_claim(&key);
        if seen.is_none() && !is_new {
            let why = format!("could not find ResourceClaim {:?}", key.to_string());
            return Err(Given::Error(why));
        }
        let seen = seen.filter(|seen| version(seen) >= version(claim));
        let latest = seen.as_ref().unwrap_or(claim);
        if !conditions::are_met(latest).map_err(Given::Failed)? {
            return match conditions::is_late(latest, timeout, &clock::now_time()) {
                true => Err(Given::Late(format!("device binding timeout: claim={}", key.name))),
                false => Ok(false),
            };
        }
    }
    Ok(true)
}
