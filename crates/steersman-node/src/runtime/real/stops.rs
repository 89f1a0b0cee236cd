//! Stopping containers: what they do before, the signal, and in the end force.
//!
//! Nobody waits for it: the Pod is woken when a container has stopped. Containers that are told at the
//! same time get the signal in their [order](crate::termination_order).

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, LifecycleHandler, Pod};
use steersman::ObjectKey;
use steersman::events::{NewEvent, Reference};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout_at};

use super::config::spec_of;
use super::hooks::{self, Hooked};
use super::observe::{Parts, addresses, runs};
use super::{Shared, key_of, locked, uid_of};
use crate::cri::CriError;
use crate::termination_order::waits_for;

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
    /// One of them has stopped.
    stopped: Notify,
}

impl Stops {
    pub(super) fn is_under_way(&self, id: &str) -> bool {
        locked(&self.deadlines).contains_key(id)
    }

    /// Waits until none of these is being stopped any more.
    async fn all_stopped(&self, ids: &[String]) {
        loop {
            let mut stopped = pin!(self.stopped.notified());
            stopped.as_mut().enable();
            if !ids.iter().any(|id| self.is_under_way(id)) {
                return;
            }
            stopped.await;
        }
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
    let running = |name: &str| -> Vec<String> {
        let running = parts.named(name).filter(|container| runs(container));
        running.map(|container| container.id.clone()).collect()
    };
    let mut begun = Vec::new();
    for name in names {
        let before = pod.spec.as_ref().map(|spec| waits_for(spec, name)).unwrap_or_default();
        let before = before.into_iter().filter(|other| names.iter().any(|name| name == other));
        let before: Vec<String> = before.flat_map(running).collect();
        for id in running(name) {
            let one = ToStop { name, id, before: before.clone(), address: address.clone() };
            begun.extend(begin(shared, pod, one));
        }
    }
    // Whoever waits for another knows by now that it is being stopped.
    for stopping in begun {
        tokio::spawn(stopping.run());
    }
    Ok(())
}

/// A container to be stopped.
struct ToStop<'a> {
    name: &'a str,
    id: String,
    /// Those that must have stopped before it gets the signal.
    before: Vec<String>,
    address: Option<String>,
}

/// Begins to stop a container, unless it has no more time than before.
fn begin(shared: &Arc<Shared>, pod: &Pod, one: ToStop<'_>) -> Option<Stopping> {
    let ToStop { name, id, before: others, address } = one;
    let uid = uid_of(pod);
    let grace = shared.evictions.grace(uid).or_else(|| shared.probing.grace(uid, name, &id));
    let grace = grace.unwrap_or_else(|| grace_period(pod));
    let deadline = Instant::now() + grace;
    let first = {
        let mut deadlines = locked(&shared.stops.deadlines);
        let before = deadlines.get(&id).copied();
        if before.is_some_and(|before| before <= deadline + AGAIN) {
            return None;
        }
        deadlines.insert(id.clone(), deadline);
        before.is_none()
    };
    Some(Stopping {
        shared: Arc::clone(shared),
        pod: key_of(pod),
        part: part(pod, name),
        about: Reference::of(pod),
        id,
        deadline,
        hook: first.then(|| pre_stop(pod, name)).flatten(),
        others,
        address,
    })
}

/// A container of a Pod as Events name it.
fn part(pod: &Pod, name: &str) -> Reference {
    let init = pod.spec.as_ref().and_then(|spec| spec.init_containers.as_ref());
    let is_init = init.into_iter().flatten().any(|container| container.name == name);
    let list = if is_init { "initContainers" } else { "containers" };
    Reference::of(pod).part(&format!("spec.{list}{{{name}}}"))
}

type Hook = (Container, LifecycleHandler);

fn pre_stop(pod: &Pod, name: &str) -> Option<Hook> {
    let (container, _) = spec_of(pod, name)?;
    let hook = container.lifecycle.as_ref()?.pre_stop.clone()?;
    Some((container, hook))
}

/// One container on its way.
struct Stopping {
    shared: Arc<Shared>,
    pod: ObjectKey,
    part: Reference,
    /// The Pod.
    about: Reference,
    id: String,
    deadline: Instant,
    hook: Option<Hook>,
    /// Those that must have stopped before it gets the signal.
    others: Vec<String>,
    address: Option<String>,
}

impl Stopping {
    async fn run(mut self) {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if let Some(hook) = self.hook.take().filter(|_| !left.is_zero()) {
            // One that takes longer is not waited for, and has not failed for that.
            let _ = timeout_at(self.deadline, tokio::spawn(self.before(hook).run())).await;
        }
        // Whoever does not end in time is not waited for any longer.
        let _ = timeout_at(self.deadline, self.shared.stops.all_stopped(&self.others)).await;
        self.stop().await;
        locked(&self.shared.stops.deadlines).remove(&self.id);
        self.shared.stops.stopped.notify_waiters();
        self.shared.wake(self.pod).await;
    }

    fn before(&self, (container, hook): Hook) -> BeforeStop {
        BeforeStop {
            shared: Arc::clone(&self.shared),
            part: self.part.clone(),
            about: self.about.clone(),
            id: self.id.clone(),
            address: self.address.clone(),
            container,
            hook,
        }
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

/// What a container does before it gets the signal.
struct BeforeStop {
    shared: Arc<Shared>,
    part: Reference,
    /// The Pod.
    about: Reference,
    id: String,
    address: Option<String>,
    container: Container,
    hook: LifecycleHandler,
}

impl BeforeStop {
    async fn run(self) {
        let (container, address) = (&self.container, self.address.as_deref());
        let at = Hooked { container, id: &self.id, address, pod: &self.about };
        if let Err(why) = hooks::run(&self.shared, &self.hook, &at).await {
            tracing::warn!(container = container.name, why, "the hook before a stop failed");
            let event = NewEvent::warning("FailedPreStopHook").action("Stopping");
            self.shared.recorder.event(self.part.clone(), event.note("PreStopHook failed"));
        }
    }
}

/// How long the containers of a Pod have to end.
pub(super) fn grace_period(pod: &Pod) -> Duration {
    let spec = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let seconds = pod.metadata.deletion_grace_period_seconds.or(spec);
    seconds.map_or(USUAL, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}
