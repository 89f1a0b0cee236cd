//! The scheduler at work.
//!
//! Informers tell what happens ([`handlers`]). One task takes one Pod after the other from the queue and
//! decides; what follows from a decision is done beside it, since it takes requests: to bind the Pod
//! ([`bind`]), to tell it why it has to wait ([`report`]), to let others go for it ([`preempt`]).

mod bind;
mod handlers;
mod informers;
mod pre_binding;
mod preempt;
mod report;
mod shared;
mod waiting;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use steersman::caches::Caches;
use steersman::events::Recorder;
use steersman::{Client, Result, clock};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use self::handlers::bound_to;
use self::informers::Informers;
use self::preempt::{Means, Preemption};
use self::report::Report;
use self::shared::Shared;
pub use self::waiting::WaitingPods;
use crate::extender::{ExtenderConfiguration, Extenders};
use crate::framework::{
    Binding, Cycle, CycleState, Failure, FitError, Helped, Lister, Nominator, Plugin, PodInfo,
    Points, PostFilter, Profile, Refusal, Snapshot, Timed,
};
use crate::metrics::{Attempted, SchedulerMetrics};
use crate::names::PART;
use crate::plugins::{Handle, best};
use crate::queue::{Backoff, Pending, Profiles, SchedulingQueue};

/// How many Pods are bound at the same time. Decisions are taken one after another.
const BOUND_AT_ONCE: usize = 16;
/// How many Pods may be on their way to a node, most of them waiting for volumes or permission.
const TASKS_MAX: usize = 8192;
/// How long those that are being bound get to end when the scheduler stops.
const GRACE: Duration = Duration::from_millis(300);
/// What every Node has when it is new, until it is known to be ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";
/// How long that may take, at most, before people are told that Pods wait for it.
const ARRIVAL_SECONDS: i64 = 5;
/// In every so many attempts it is measured how long each plug-in takes.
const TIMED_EVERY: u64 = 10;
/// What a Pod is told if there are no nodes.
const NO_NODES: &str = "no nodes available to schedule pods";

/// What a scheduler is made of.
pub(crate) struct Parts {
    pub(crate) metrics: SchedulerMetrics,
    pub(crate) profiles: Arc<Profiles>,
    pub(crate) sort: Arc<dyn Plugin>,
    pub(crate) backoff: Backoff,
    pub(crate) extenders: Vec<ExtenderConfiguration>,
    pub(crate) handle: Arc<Handle>,
    pub(crate) waiting: WaitingPods,
}

/// What all tasks of a scheduler need.
struct Worker {
    client: Client,
    recorder: Recorder,
    metrics: SchedulerMetrics,
    informers: Arc<Informers>,
    lister: Arc<dyn Lister>,
    profiles: Arc<Profiles>,
    extenders: Extenders,
    shared: Arc<Shared>,
    /// Limits how many Pods are bound at the same time.
    turns: Semaphore,
    /// How many attempts there were.
    attempts: AtomicU64,
}

/// An attempt to schedule a Pod, and when it began.
struct Attempt {
    pending: Pending,
    began: Instant,
}

/// A Pod that has a node.
struct Decided {
    pending: Pending,
    node: Arc<str>,
    /// What plug-ins remember.
    state: CycleState,
    began: Instant,
}

/// Who is against a node that was chosen, and where it was asked.
struct At {
    point: &'static str,
    plugin: &'static str,
    refusal: Refusal,
}

impl At {
    /// What the Pod is told, and who refused it, unless something went wrong.
    fn told(&self) -> (Report, Option<FitError>) {
        let Self { point, plugin, refusal } = self;
        if refusal.is_rejection() {
            let (report, error) = Report::refused(plugin, refusal);
            return (report, Some(error));
        }
        let why = refusal.message();
        (Report::error(format!("running {point} plugin {plugin:?}: {why}")), None)
    }
}

/// Work that follows from a decision.
type Task = BoxFuture<'static, ()>;

/// Schedules Pods until told to stop.
pub(crate) async fn run(
    parts: Parts,
    caches: Caches,
    recorder: Recorder,
    client: Client,
    stop: CancellationToken,
) -> Result<()> {
    let informers = Arc::new(Informers::start(&caches));
    let pods = informers.pods.cache().clone();
    let Parts { metrics, profiles, sort, backoff, extenders, handle, waiting } = parts;
    let extenders = Extenders::start(&extenders)?;
    let read = Box::new(move |key: &_| pods.get(key));
    let mut queue = SchedulingQueue::new(Arc::clone(&profiles), sort, backoff, read);
    queue.measure(metrics.clone());
    let lister: Arc<dyn Lister> = Arc::clone(&informers) as Arc<dyn Lister>;
    handle.begin(Arc::clone(&lister), Some(client.with_field_manager(PART)));
    let shared = Arc::new(Shared::new(queue, Arc::clone(&handle), waiting));
    metrics.measure(&shared);
    shared.measure(metrics.work.clone());
    let synced = async {
        handlers::follow(&informers, &shared, &profiles).await;
        informers.synced().await;
    };
    tokio::select! {
        () = synced => {}
        () = stop.cancelled() => return Ok(()),
    }
    let client = client.with_field_manager(PART);
    let worker = Arc::new(Worker {
        client,
        recorder,
        metrics,
        lister,
        informers,
        profiles,
        extenders,
        shared,
        turns: Semaphore::new(BOUND_AT_ONCE),
        attempts: AtomicU64::new(0),
    });
    worker.work(stop).await;
    Ok(())
}

impl Worker {
    /// Takes one Pod after the other.
    async fn work(self: Arc<Self>, stop: CancellationToken) {
        let mut snapshot = Snapshot::default();
        let mut start = 0;
        let mut tasks: JoinSet<()> = JoinSet::new();
        while !stop.is_cancelled() {
            while tasks.try_join_next().is_some() {}
            if tasks.len() >= TASKS_MAX {
                tokio::select! {
                    _ = tasks.join_next() => {}
                    () = stop.cancelled() => break,
                }
                continue;
            }
            let wake = self.shared.wake.notified();
            let popped = {
                let mut state = self.shared.lock();
                let popped = state.queue.pop();
                if popped.is_some() {
                    state.cache.update(&mut snapshot);
                }
                popped.map(|pending| (pending, Arc::clone(&state.nominator)))
            };
            let Some((pending, nominator)) = popped else {
                let due = self.shared.lock().queue.due();
                tokio::select! {
                    () = wake => {}
                    () = stop.cancelled() => {}
                    () = async { sleep_until(due.unwrap_or_else(never)).await }, if due.is_some() => {}
                }
                continue;
            };
            let again = pending.clone();
            let one = self.schedule_one(pending, &snapshot, &nominator, &mut start);
            match AssertUnwindSafe(one).catch_unwind().await {
                Ok(None) => {}
                Ok(Some(task)) => drop(tasks.spawn(task)),
                Err(_) => {
                    tracing::error!(pod = %again.info.key, "a plugin panicked; the pod is tried again");
                    let mut state = self.shared.lock();
                    state.cache.forget(&again.info.uid);
                    state.queue.put_back(again, None);
                }
            }
            // Who is bound goes on meanwhile, also where there is only one thread.
            tokio::task::yield_now().await;
        }
        let ended = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GRACE, ended).await;
    }

    /// Decides about a Pod. What there is to do then.
    async fn schedule_one(
        self: &Arc<Self>,
        pending: Pending,
        snapshot: &Snapshot,
        nominator: &Nominator,
        start: &mut usize,
    ) -> Option<Task> {
        let Some((pod, profile)) = self.still_to_schedule(&pending.info) else {
            self.shared.lock().queue.done(&pending.info.uid);
            return None;
        };
        let info = Arc::clone(&pending.info);
        let began = Instant::now();
        let mut cycle = Cycle {
            pod: &pod,
            info: &info,
            snapshot,
            lister: &self.lister,
            nominator,
            state: self.fresh_state(),
            profile: &profile,
            skipped_filters: 0,
            skipped_scores: 0,
        };
        let decided = match self.extenders.is_empty() {
            true => profile.schedule(&mut cycle, start),
            false => self.extenders.schedule(&profile, &mut cycle, start).await,
        };
        if !matches!(decided, Err(Failure::Fit(_))) {
            self.metrics.decided(began.elapsed());
        }
        match decided {
            Ok(node) => {
                let name: Arc<str> = node.name().into();
                self.assume(&info, &name);
                if let Err((plugin, refusal)) = profile.reserve(&mut cycle, &node) {
                    let why = At { point: "Reserve", plugin, refusal };
                    return Some(self.take_back(Attempt { pending, began }, &why, &pod));
                }
                match profile.permit(&cycle, &node) {
                    Ok(waits) if waits.is_empty() => {}
                    Ok(waits) => self.shared.waiting.begin(&info.uid, waits),
                    Err((plugin, refusal)) => {
                        profile.unreserve(&cycle.state, &info, &name);
                        let why = At { point: "Permit", plugin, refusal };
                        return Some(self.take_back(Attempt { pending, began }, &why, &pod));
                    }
                }
                let state = cycle.state;
                Some(self.binding(Decided { pending, node: name, state, began }, &profile, &pod))
            }
            Err(Failure::Fit(error)) => {
                let helping = self.help(Attempt { pending, began }, &cycle, &profile, error).await;
                self.metrics.decided(began.elapsed()); // who has to go is part of the decision
                helping
            }
            Err(Failure::NoNodes) => {
                let report = Report::unschedulable(NO_NODES.to_owned()).nominated_nowhere();
                // Whatever a filter waits for may be what the first node brings.
                let plugins = profile.at(Points::FILTER).map(|plugin| plugin.name()).collect();
                let error = FitError { plugins, ..FitError::default() };
                Some(self.failed(Attempt { pending, began }, &pod, report, Some(error)))
            }
            Err(Failure::Error(message)) => {
                tracing::warn!(pod = %info.key, message, "cannot schedule a pod");
                let report = Report::error(message);
                Some(self.failed(Attempt { pending, began }, &pod, report, None))
            }
        }
    }

    /// What plug-ins remember at first: nothing, and in some attempts that they are measured.
    fn fresh_state(&self) -> CycleState {
        let mut state = CycleState::default();
        if self.attempts.fetch_add(1, Ordering::Relaxed).is_multiple_of(TIMED_EVERY) {
            state.insert(Timed);
        }
        state
    }

    /// No node can run a Pod: maybe others go for it.
    async fn help(
        self: &Arc<Self>,
        attempt: Attempt,
        cycle: &Cycle<'_>,
        profile: &Profile,
        mut error: Box<FitError>,
    ) -> Option<Task> {
        let mut helped = match profile.at(Points::POST_FILTER).next() {
            Some(_) => profile.post_filter(cycle, &mut error),
            None => Helped::Never,
        };
        if let Helped::Yes(help) = &mut helped
            && !help.candidates.is_empty()
            && let Err(why) = self.ask_extenders(help, cycle.pod, cycle.snapshot).await
        {
            error.post_filter = Some(format!("preemption: {why}"));
            helped = Helped::No;
        }
        if profile.plugin("DefaultPreemption").is_some() {
            let victims = match &helped {
                Helped::Yes(help) => Some(help.victims.len()),
                Helped::No | Helped::Never => None,
            };
            self.metrics.preempted(victims);
        }
        self.wait(attempt, cycle.pod, *error, helped, cycle.snapshot)
    }

    /// Lets extenders have a say in who has to go for a Pod.
    async fn ask_extenders(
        &self,
        help: &mut PostFilter,
        pod: &Pod,
        snapshot: &Snapshot,
    ) -> Result<(), String> {
        let candidates = std::mem::take(&mut help.candidates);
        let read = |key: &_| self.informers.pods.cache().get(key);
        let left = self.extenders.preempt(pod, candidates, snapshot, read).await?;
        let best = best(left).ok_or("no candidate node for preemption")?;
        help.nominated_node = Some(best.node);
        help.victims = best.victims;
        Ok(())
    }

    /// The Pod, unless it needs no node any more.
    fn still_to_schedule(&self, info: &PodInfo) -> Option<(Arc<Pod>, Arc<Profile>)> {
        let pod = self.informers.pods.cache().get(&info.key)?;
        let profile = Arc::clone(self.profiles.get(&info.scheduler_name)?);
        if pod.metadata.uid.as_deref() != Some(&*info.uid) || bound_to(&pod).is_some() {
            return None;
        }
        if pod.metadata.deletion_timestamp.is_some() {
            report::skip(&pod, info, &self.recorder_of(&profile));
            return None;
        }
        let is_assumed = self.shared.lock().cache.is_assumed(&info.uid);
        (!is_assumed).then_some((pod, profile))
    }

    /// Counts a Pod on its node from now on.
    fn assume(&self, info: &Arc<PodInfo>, node: &Arc<str>) {
        let mut state = self.shared.lock();
        state.cache.assume(Arc::clone(info), node);
        state.unnominate(&info.uid);
    }

    fn binding(self: &Arc<Self>, decided: Decided, profile: &Arc<Profile>, pod: &Arc<Pod>) -> Task {
        let Decided { pending, node, state, began } = decided;
        let binding = Binding {
            pod: Arc::clone(pod),
            info: Arc::clone(&pending.info),
            node,
            state,
            lister: Arc::clone(&self.lister),
            client: self.client.clone(),
            storage_changes: self.shared.storage.subscribe(),
            device_changes: self.shared.device_claims.subscribe(),
            recorder: self.recorder_of(profile),
        };
        let (worker, profile) = (Arc::clone(self), Arc::clone(profile));
        Box::pin(async move { worker.bind(Attempt { pending, began }, &profile, binding).await })
    }

    /// A Pod has a node, and cannot have it after all.
    fn take_back(self: &Arc<Self>, attempt: Attempt, why: &At, pod: &Arc<Pod>) -> Task {
        self.shared.lock().cache.forget(&attempt.pending.info.uid);
        let (report, error) = why.told();
        self.failed(attempt, pod, report, error)
    }

    /// A Pod fits nowhere, and waits; maybe others go for it.
    fn wait(
        self: &Arc<Self>,
        attempt: Attempt,
        pod: &Arc<Pod>,
        error: FitError,
        helped: Helped,
        snapshot: &Snapshot,
    ) -> Option<Task> {
        let now = clock::now_time();
        let is_new = snapshot.newest().is_some_and(|newest| is_recent(newest, &now));
        if is_new && snapshot.nodes().iter().any(|node| arrives(&node.node, &now)) {
            // In a moment there is another node to look at, of which nobody needs to be told.
            let patience = Duration::from_secs(ARRIVAL_SECONDS.unsigned_abs());
            self.shared.lock().queue.put_back_for(attempt.pending, Some(&error), patience);
            return None;
        }
        let mut report = Report::unschedulable(error.message());
        Some(match helped {
            Helped::No => self.failed(attempt, pod, report, Some(error)),
            Helped::Never => self.failed(attempt, pod, report.nominated_nowhere(), Some(error)),
            Helped::Yes(PostFilter { nominated_node, victims, .. }) => {
                report.nominated_node = Some(nominated_node.as_deref().map(str::to_owned));
                let Some(node) = nominated_node else {
                    return Some(self.failed(attempt, pod, report, Some(error)));
                };
                let info = Arc::clone(&attempt.pending.info);
                let mut state = self.shared.lock();
                Arc::make_mut(&mut state.nominator).nominate(Arc::clone(&info), &node);
                drop(state);
                self.shared.handle.preempting.begin(Arc::clone(&info.uid));
                let preemption = Preemption { preemptor: Arc::clone(pod), info, node, victims };
                let told = self.failed(attempt, pod, report, Some(error));
                let worker = Arc::clone(self);
                Box::pin(async move {
                    told.await;
                    worker.preempt(&preemption).await;
                })
            }
        })
    }

    async fn preempt(&self, preemption: &Preemption) {
        let recorder = match self.profiles.get(&preemption.info.scheduler_name) {
            Some(profile) => self.recorder_of(profile),
            None => self.recorder.clone(),
        };
        let means = Means {
            client: &self.client,
            recorder: &recorder,
            informers: &self.informers,
            shared: &self.shared,
        };
        let began = Instant::now();
        let succeeded = preemption.carry_out(&means).await;
        self.metrics.work.preempted(succeeded, began.elapsed());
    }

    /// Tells why a Pod has to wait, and puts it back into the queue: in this order, so that what is
    /// told never comes after the next decision.
    fn failed(
        self: &Arc<Self>,
        attempt: Attempt,
        pod: &Arc<Pod>,
        report: Report,
        error: Option<FitError>,
    ) -> Task {
        self.attempted(&attempt, error.as_ref());
        let pending = attempt.pending;
        if report.nominated_node == Some(None) {
            self.shared.lock().unnominate(&pending.info.uid);
        }
        let (worker, pod) = (Arc::clone(self), Arc::clone(pod));
        Box::pin(async move {
            let name = &pending.info.scheduler_name;
            let recorder = worker.profiles.get(name).map(|it| worker.recorder_of(it));
            let recorder = recorder.as_ref().unwrap_or(&worker.recorder);
            report.write(&pod, &pending.info, &worker.client, recorder).await;
            worker.shared.lock().queue.put_back(pending, error.as_ref());
            worker.shared.wake.notify_one();
        })
    }

    /// Counts an attempt that has failed; by whom the Pod was refused, unless something went wrong.
    fn attempted(&self, attempt: &Attempt, refused: Option<&FitError>) {
        let how = match refused {
            Some(_) => Attempted::Unschedulable,
            None => Attempted::Error,
        };
        let profile = &attempt.pending.info.scheduler_name;
        self.metrics.attempted(how, profile, attempt.began.elapsed());
    }

    /// Records Events as the scheduler of this name.
    fn recorder_of(&self, profile: &Profile) -> Recorder {
        self.recorder.reporting(profile.name())
    }
}

fn never() -> Instant {
    Instant::now() + Duration::from_secs(86400)
}

/// Whether what was created then may still arrive.
fn is_recent(created: &Time, now: &Time) -> bool {
    now.0.duration_since(created.0).as_secs() < ARRIVAL_SECONDS
}

/// Whether a Node is ready and so new that its taint has not been taken away yet.
fn arrives(node: &Node, now: &Time) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let mut taints = taints.into_iter().flatten();
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let created = node.metadata.creation_timestamp.as_ref();
    created.is_some_and(|created| is_recent(created, now))
        && taints.any(|taint| taint.key == NOT_READY && taint.effect == "NoSchedule")
        && conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_is_refused_after_the_decision_learns_where_and_goes_nowhere() {
        let told = |point, refusal| At { point, plugin: "Own", refusal }.told();
        let (report, error) = told("Reserve", Refusal::error("oh"));
        assert_eq!(report.message, "running Reserve plugin \"Own\": oh");
        assert_eq!((report.reason, report.nominated_node), ("SchedulerError", Some(None)));
        assert!(error.is_none());
        let (report, error) = told("Permit", Refusal::unschedulable("no"));
        assert_eq!(report.message, "0/1 nodes are available: 1 no.");
        assert_eq!((report.reason, report.nominated_node), ("Unschedulable", Some(None)));
        assert!(error.unwrap().plugins.contains("Own"));
    }

    #[test]
    fn a_new_node_that_is_ready_arrives_for_five_seconds_at_most() {
        let node = |ready: &str, taint: &str| -> Node {
            let node = json!({
                "metadata": {"name": "n", "creationTimestamp": "2030-01-01T12:00:00Z"},
                "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]},
                "status": {"conditions": [{"type": "Ready", "status": ready}]},
            });
            serde_json::from_value(node).unwrap()
        };
        for (ready, taint, at, expected) in [
            ("True", NOT_READY, "2030-01-01T12:00:01Z", true),
            ("True", NOT_READY, "2030-01-01T12:00:05Z", false),
            ("False", NOT_READY, "2030-01-01T12:00:01Z", false),
            ("True", "mine", "2030-01-01T12:00:01Z", false),
        ] {
            let now = serde_json::from_value(json!(at)).unwrap();
            let found = arrives(&node(ready, taint), &now);
            assert_eq!(found, expected, "{ready} {taint} {at}");
        }
    }
}
