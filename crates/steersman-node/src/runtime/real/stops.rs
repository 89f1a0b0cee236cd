//! Stopping containers: what they do before, the signal, and in the end force.
//!
//! Nobody waits for it: the Pod is woken when a container has stopped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman::ObjectKey;
use tokio::time::{Instant, sleep};

use super::config::spec_of;
use super::hooks::{self, Hooked};
use super::observe::{Parts, addresses, runs};
use super::{Shared, key_of, locked, uid_of};
use crate::cri::CriError;

/// What a container always has between the signal and force.
const LEAST: Duration = Duration::from_secs(2);
/// How long Pods have that say nothing.
const USUAL: Duration = Duration::from_secs(30);
/// How long to wait before a runtime is told again that did not do it.
const AGAIN: Duration = Duration::from_secs(1);
/// How often it is told.
const TRIES: usize = 60;

/// The containers that are being stopped.
#[derive(Default)]
pub(super) struct Stops {
    /// Until when they have time, by the runtime's name for them.
    deadlines: Mutex<HashMap<String, Instant>>,
}

impl Stops {
    pub(super) fn is_under_way(&self, id: &str) -> bool {
        locked(&self.deadlines).contains_key(id)
    }
}

/// Tells the containers of these names to stop, within the Pod's grace period.
pub(super) async fn stop(
    shared: &Arc<Shared>,
    pod: &Pod,
    names: &[String],
) -> Result<(), CriError> {
    let parts = Parts::of(shared, uid_of(pod)).await?;
    let address = match parts.current() {
        Some(sandbox) => addresses(shared, &sandbox.id).await?.into_iter().next(),
        None => None,
    };
    for name in names {
        for container in parts.named(name).filter(|container| runs(container)) {
            begin(shared, pod, name, &container.id, address.clone());
        }
    }
    Ok(())
}

/// Begins to stop a container, unless it has no more time than before.
fn begin(shared: &Arc<Shared>, pod: &Pod, name: &str, id: &str, address: Option<String>) {
    let uid = uid_of(pod);
    let grace = shared.evictions.grace(uid).or_else(|| shared.probing.grace(uid, name, id));
    let grace = grace.unwrap_or_else(|| grace_period(pod));
    let deadline = Instant::now() + grace;
    let first = {
        let mut deadlines = locked(&shared.stops.deadlines);
        let before = deadlines.get(id).copied();
        if before.is_some_and(|before| before <= deadline + AGAIN) {
            return;
        }
        deadlines.insert(id.to_owned(), deadline);
        before.is_none()
    };
    let stopping = Stopping {
        shared: Arc::clone(shared),
        pod: key_of(pod),
        id: id.to_owned(),
        deadline,
        hook: first.then(|| pre_stop(pod, name)).flatten(),
        address,
    };
    tokio::spawn(stopping.run());
}

type Hook = (k8s_openapi::api::core::v1::Container, k8s_openapi::api::core::v1::LifecycleHandler);

fn pre_stop(pod: &Pod, name: &str) -> Option<Hook> {
    let (container, _) = spec_of(pod, name)?;
    let hook = container.lifecycle.as_ref()?.pre_stop.clone()?;
    Some((container, hook))
}

/// One container on its way.
struct Stopping {
    shared: Arc<Shared>,
    pod: ObjectKey,
    id: String,
    deadline: Instant,
    hook: Option<Hook>,
    address: Option<String>,
}

impl Stopping {
    async fn run(self) {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if let Some((container, hook)) = self.hook.as_ref().filter(|_| !left.is_zero()) {
            let (id, address) = (self.id.as_str(), self.address.as_deref());
            let at = Hooked { container, id, address };
            if let Err(why) = hooks::run(&self.shared, hook, &at, left).await {
                tracing::warn!(container = container.name, why, "the hook before a stop failed");
            }
        }
        self.stop().await;
        locked(&self.shared.stops.deadlines).remove(&self.id);
        self.shared.wake(self.pod).await;
    }

    /// Tells the runtime until it has done it.
    async fn stop(&self) {
        for _ in 0..TRIES {
            let left = self.deadline.saturating_duration_since(Instant::now()).max(LEAST);
            match self.shared.cri.stop_container(&self.id, left).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(%error, container = self.id, "a container does not stop; retrying");
                    sleep(AGAIN).await;
                }
            }
        }
    }
}

/// How long the containers of a Pod have to end.
pub(super) fn grace_period(pod: &Pod) -> Duration {
    let spec = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let seconds = pod.metadata.deletion_grace_period_seconds.or(spec);
    seconds.map_or(USUAL, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}
