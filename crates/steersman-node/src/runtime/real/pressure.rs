//! Evicts Pods when the machine runs out of something, and tells the Node's conditions. What is to be
//! done, [`eviction`](crate::eviction) decides.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman::events::NewEvent;
use steersman::{Client, clock};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::containers::{self, Room};
use super::signals::{self, Signals};
use super::{Shared, images, key_of, locked, uid_of, usage};
use crate::eviction::{
    Choice, Condition, Eviction, Pressure, REASON, Reclaim, Threshold, admits, choose,
    over_their_limits, rank, satisfied,
};
use crate::runtime::Evicted;

/// How long it is waited for an evicted Pod to be gone from the machine, and how often looked.
const CLEANUP_MAX: Duration = Duration::from_secs(30);
const CLEANUP_LOOK: Duration = Duration::from_secs(1);

/// The Pods that are being evicted, and what the Node is told.
pub(super) struct Evictions {
    /// By uid, until nothing is left of them that others could use.
    pods: Mutex<HashMap<String, Going>>,
    conditions: watch::Sender<Vec<Condition>>,
}

#[derive(Clone, Debug)]
struct Going {
    why: Evicted,
    /// How long it has, instead of its own grace period.
    grace: Duration,
}

impl Default for Evictions {
    fn default() -> Self {
        Self { pods: Mutex::default(), conditions: watch::channel(Vec::new()).0 }
    }
}

impl Evictions {
    /// Why a Pod is being evicted, if it is.
    pub(super) fn why(&self, uid: &str) -> Option<Evicted> {
        locked(&self.pods).get(uid).map(|going| going.why.clone())
    }

    /// How long a Pod has that is being evicted.
    pub(super) fn grace(&self, uid: &str) -> Option<Duration> {
        locked(&self.pods).get(uid).map(|going| going.grace)
    }

    pub(super) fn forget(&self, uid: &str) {
        locked(&self.pods).remove(uid);
    }

    /// What the machine is short of.
    pub(super) fn conditions(&self) -> watch::Receiver<Vec<Condition>> {
        self.conditions.subscribe()
    }
}

/// Looks for ever.
pub(super) async fn run(shared: &Shared, client: &Client) {
    let policies = &shared.policies;
    let mut pressure = Pressure::new(policies.thresholds.clone(), policies.transition);
    loop {
        let evicted = look(shared, client, &mut pressure).await;
        if evicted.is_empty() {
            sleep(policies.pressure_every).await;
        } else {
            cleaned_up(shared, &evicted).await;
        }
    }
}

/// Waits until evicted Pods have given back what they had, or for as long as that makes sense.
async fn cleaned_up(shared: &Shared, evicted: &[String]) {
    let begun = Instant::now();
    let left = || evicted.iter().any(|uid| shared.evictions.why(uid).is_some());
    while left() && begun.elapsed() < CLEANUP_MAX {
        sleep(CLEANUP_LOOK).await;
    }
}

/// Looks once, and says which Pods are evicted.
async fn look(shared: &Shared, client: &Client, pressure: &mut Pressure) -> Vec<String> {
    let signals = signals::look(shared, clock::now()).await;
    let observed = pressure.observe(&signals.observed, clock::now());
    tell(shared, &observed.conditions);
    let pods: Vec<Arc<Pod>> = locked(&shared.running).values().cloned().collect();
    let limited: Vec<Arc<Pod>> =
        pods.iter().filter(|pod| usage::is_limited(pod)).cloned().collect();
    let usages = usage::of(shared, &limited).await;
    let greedy = over_their_limits(&borrowed(&limited), &usages, signals.disks);
    if !greedy.is_empty() {
        return evict(shared, greedy).await;
    }
    let Some(first) = observed.starved.first() else { return Vec::new() };
    tracing::warn!(signal = %first.signal, "the machine runs out of something");
    let (reason, note) = first.signal.attempt();
    let event = NewEvent::warning(reason).action("Evicting").note(note);
    shared.recorder.event(&shared.node(), event);
    if reclaimed(shared, client, first, &observed.starved, signals.disks).await {
        return Vec::new();
    }
    let usages = usage::of(shared, &pods).await;
    let mut ranked = borrowed(&pods);
    rank(&mut ranked, &usages, first.signal, signals.disks);
    let choice = Choice {
        starved: &observed.starved,
        observations: &signals.observed,
        usages: &usages,
        grace_max_seconds: shared.policies.grace_max_seconds,
    };
    match choose(&ranked, &choice) {
        Some(eviction) => evict(shared, vec![eviction]).await,
        None => {
            tracing::warn!("no Pod can be evicted");
            Vec::new()
        }
    }
}

fn borrowed(pods: &[Arc<Pod>]) -> Vec<&Pod> {
    pods.iter().map(Arc::as_ref).collect()
}

/// Removes what can be removed instead of Pods, and says whether that was enough.
async fn reclaimed(
    shared: &Shared,
    client: &Client,
    first: &Threshold,
    starved: &[Threshold],
    disks: crate::eviction::Disks,
) -> bool {
    let ways = first.signal.reclaim(disks);
    for way in ways {
        match way {
            Reclaim::Containers => {
                if let Err(error) = containers::collect(shared, client, Room::Short).await {
                    tracing::warn!(%error, "containers cannot be removed to make room");
                }
            }
            Reclaim::Images => images::remove_unused(shared).await,
        }
    }
    if ways.is_empty() {
        return false;
    }
    let Signals { observed, .. } = signals::look(shared, clock::now()).await;
    satisfied(starved, &observed)
}

/// Lets Pods go, and says so.
async fn evict(shared: &Shared, evictions: Vec<Eviction<'_>>) -> Vec<String> {
    let mut evicted = Vec::new();
    for Eviction { pod, grace_seconds, message, annotations, disrupted } in evictions {
        let uid = uid_of(pod).to_owned();
        let grace = Duration::from_secs(u64::try_from(grace_seconds).unwrap_or(0));
        let going = Going { why: Evicted { message: message.clone(), disrupted }, grace };
        let first = locked(&shared.evictions.pods).insert(uid.clone(), going).is_none();
        if first {
            tracing::info!(pod = %key_of(pod), message, ?annotations, "evicting a Pod");
            let event = NewEvent::warning(REASON).action("Evicting").note(message);
            let annotated = annotations.into_iter();
            let event = annotated.fold(event, |event, (key, value)| event.annotation(key, value));
            shared.recorder.event(pod, event);
        }
        shared.endings.tell(&uid);
        shared.wake(key_of(pod)).await;
        evicted.push(uid);
    }
    evicted
}

/// Tells what the Node has too little of.
fn tell(shared: &Shared, conditions: &[Condition]) {
    shared.evictions.conditions.send_if_modified(|known| {
        let changed = known != conditions;
        *known = conditions.to_vec();
        changed
    });
}

/// Why a Pod is not taken now, if so. Those that run already are not asked again.
pub(super) fn refuses(shared: &Shared, pod: &Pod) -> Option<String> {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    if statuses.is_some_and(|all| !all.is_empty()) {
        return None;
    }
    admits(pod, &shared.evictions.conditions.borrow()).err()
}
