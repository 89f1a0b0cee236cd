//! Runs the probes of containers, each by a task of its own, and keeps what they say.
//!
//! What a task looks at is what was observed last of its container; when what is known changes, the
//! Pod's worker is woken, which asks for it the next time it observes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container as Spec, ContainerStatus, Pod, Probe};
use steersman::clock;
use steersman::events::{NewEvent, Reference};
use tokio::sync::Notify;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::{Shared, key_of, locked, uid_of};
use crate::cri::{Cri, CriError};
use crate::probes::{
    ContainerProbes, Exec, ExecError, ExecOutput, Kind, Observed, Phase, Step, Target, Worker,
    probe,
};
use crate::runtime::{Container, State};

/// The probes of all Pods.
#[derive(Default)]
pub(super) struct Probing {
    /// By the uid of the Pod and the name of the container.
    containers: Mutex<HashMap<(String, String), Arc<Probed>>>,
}

/// A container that is probed.
struct Probed {
    pod: Arc<Pod>,
    spec: Spec,
    /// The list that it is in.
    list: &'static str,
    probes: Mutex<ContainerProbes>,
    seen: Mutex<Seen>,
    /// It has come up: whether it is ready is asked at once.
    up: Notify,
}

/// What was observed of it last.
#[derive(Clone, Default)]
struct Seen {
    /// The runtime's name for it, and how far it is.
    container: Option<(String, Phase)>,
    address: String,
    deleting: bool,
    /// The Pod is gone, or has ended.
    over: bool,
}

impl Probing {
    /// Ends the probes of a Pod that is gone, or has ended.
    pub(super) fn forget(&self, uid: &str) {
        locked(&self.containers).retain(|(of, _), probed| {
            if of == uid {
                locked(&probed.seen).over = true;
            }
            of != uid
        });
    }

    /// How long a container has to end that a probe says must be stopped, if the probe says that too.
    pub(super) fn grace(&self, uid: &str, name: &str, id: &str) -> Option<Duration> {
        let probed = locked(&self.containers).get(&(uid.to_owned(), name.to_owned())).cloned()?;
        let failed = locked(&probed.probes).failed(id)?;
        let seconds = of_kind(&probed.spec, failed)?.termination_grace_period_seconds?;
        u64::try_from(seconds).ok().map(Duration::from_secs)
    }
}

/// Adds to a container that was observed what its probes say of it, and tells them of it.
pub(super) fn judge(
    shared: &Arc<Shared>,
    pod: &Pod,
    address: &str,
    container: &mut Container,
    restarts: impl Fn(i32) -> bool,
) {
    let Some(probed) = probed(shared, pod, &container.name) else { return };
    let id = bare(&container.id);
    let probes = locked(&probed.probes);
    let before = status(pod, &container.name);
    let before = before.filter(|status| status.container_id.as_ref() == Some(&container.id));
    say(&mut container.state, &probes, id, before);
    let phase = match &container.state {
        State::Running { started, .. } => {
            container.failed_probe = probes.failed(id);
            Phase::Running { since: container.started, started: *started }
        }
        State::Exited { code, .. } if restarts(*code) => Phase::Waiting,
        State::Exited { .. } => Phase::Ended { restarts: false },
    };
    drop(probes);
    let now = Seen {
        container: Some((id.to_owned(), phase)),
        address: address.to_owned(),
        deleting: pod.metadata.deletion_timestamp.is_some(),
        over: false,
    };
    let before = std::mem::replace(&mut *locked(&probed.seen), now.clone());
    if now.up() && !(before.up() && before.id() == now.id()) {
        probed.up.notify_one();
    }
}

/// Says of a container that runs what its probes say. One that is being stopped is as ready as they
/// say until it has ended: somebody may still be served.
fn say(state: &mut State, probes: &ContainerProbes, id: &str, before: Option<&ContainerStatus>) {
    if let State::Running { started, ready, .. } = state {
        *started = probes.started(id, before.and_then(|status| status.started));
        let was_ready = before.is_some_and(|status| status.ready);
        *ready = *started && probes.ready(id, was_ready);
    }
}

impl Seen {
    fn id(&self) -> Option<&str> {
        self.container.as_ref().map(|(id, _)| id.as_str())
    }

    /// Whether it runs and has started.
    fn up(&self) -> bool {
        matches!(self.container, Some((_, Phase::Running { started: true, .. })))
    }
}

/// The container's probes, begun if it has any.
fn probed(shared: &Arc<Shared>, pod: &Pod, name: &str) -> Option<Arc<Probed>> {
    let key = (uid_of(pod).to_owned(), name.to_owned());
    let mut containers = locked(&shared.probing.containers);
    if let Some(known) = containers.get(&key) {
        return Some(Arc::clone(known));
    }
    let (spec, list) = spec_of(pod, name)?;
    let probes = ContainerProbes::of(spec, shared.started);
    let kinds: Vec<(Kind, Worker)> = [
        (Kind::Startup, &probes.startup),
        (Kind::Liveness, &probes.liveness),
        (Kind::Readiness, &probes.readiness),
    ]
    .into_iter()
    .filter_map(|(kind, worker)| Some((kind, worker.clone()?)))
    .collect();
    if kinds.is_empty() {
        return None;
    }
    let probed = Arc::new(Probed {
        pod: Arc::new(pod.clone()),
        spec: spec.clone(),
        list,
        probes: Mutex::new(probes),
        seen: Mutex::default(),
        up: Notify::new(),
    });
    containers.insert(key, Arc::clone(&probed));
    for (kind, worker) in kinds {
        let period = Duration::try_from(worker.period()).unwrap_or(Duration::from_secs(10));
        tokio::spawn(run(Arc::clone(shared), Arc::clone(&probed), kind, period));
    }
    Some(probed)
}

/// Main containers and companions are probed; what ends by itself before them is not.
fn spec_of<'a>(pod: &'a Pod, name: &str) -> Option<(&'a Spec, &'static str)> {
    let spec = pod.spec.as_ref()?;
    let companion = |one: &&Spec| one.restart_policy.as_deref() == Some("Always");
    let mut init = spec.init_containers.iter().flatten().filter(companion);
    if let Some(found) = init.find(|one| one.name == name) {
        return Some((found, "initContainers"));
    }
    spec.containers.iter().find(|one| one.name == name).map(|found| (found, "containers"))
}

/// One probe of one container, until it is not needed any more.
async fn run(shared: Arc<Shared>, probed: Arc<Probed>, kind: Kind, period: Duration) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        turn(&mut ticks, kind, &probed.up).await;
        let seen = locked(&probed.seen).clone();
        match look(&probed, kind, &seen, clock::now()) {
            Step::Wait => {}
            Step::Stop => return,
            Step::Probe => {
                if let Some((id, _)) = &seen.container {
                    once(&shared, &probed, kind, id, &seen.address).await;
                }
            }
        }
    }
}

/// Waits until it is time to look: after a period, and whether a container is ready as soon as it is
/// up.
async fn turn(ticks: &mut Interval, kind: Kind, up: &Notify) {
    tokio::select! {
        _ = ticks.tick() => {}
        () = up.notified(), if kind == Kind::Readiness => ticks.reset(),
    }
}

fn look(probed: &Probed, kind: Kind, seen: &Seen, now: Timestamp) -> Step {
    let container = seen.container.as_ref().map(|(id, phase)| (id.as_str(), *phase));
    let observed = Observed { container, deleting: seen.deleting, over: seen.over };
    let mut probes = locked(&probed.probes);
    worker(&mut probes, kind).map_or(Step::Stop, |worker| worker.look(&observed, now))
}

/// Looks once, and lets the Pod's worker know if that changes anything.
async fn once(shared: &Shared, probed: &Probed, kind: Kind, id: &str, address: &str) {
    let Some(asked) = of_kind(&probed.spec, kind) else { return };
    let meta = &probed.pod.metadata;
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let pod = format!("{}_{}({})", text(&meta.name), text(&meta.namespace), text(&meta.uid));
    let target = Target { container: &probed.spec, id, pod_ip: address, pod: &pod };
    let answer = probe(asked, target, &shared.cri).await;
    if let Some(event) = answer.event(kind) {
        let part = format!("spec.{}{{{}}}", probed.list, probed.spec.name);
        let told = NewEvent::warning(event.reason).action("Probing").note(event.message);
        shared.recorder.event(Reference::of(&*probed.pod).part(&part), told);
    }
    let changed = {
        let mut probes = locked(&probed.probes);
        worker(&mut probes, kind).is_some_and(|worker| worker.answered(id, &answer))
    };
    if changed {
        shared.wake(key_of(&probed.pod)).await;
    }
}

fn worker(probes: &mut ContainerProbes, kind: Kind) -> Option<&mut Worker> {
    match kind {
        Kind::Startup => probes.startup.as_mut(),
        Kind::Liveness => probes.liveness.as_mut(),
        Kind::Readiness => probes.readiness.as_mut(),
    }
}

fn of_kind(spec: &Spec, kind: Kind) -> Option<&Probe> {
    match kind {
        Kind::Startup => spec.startup_probe.as_ref(),
        Kind::Liveness => spec.liveness_probe.as_ref(),
        Kind::Readiness => spec.readiness_probe.as_ref(),
    }
}

fn status<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let all = status.init_container_statuses.iter().chain(&status.container_statuses);
    all.flatten().find(|status| status.name == name)
}

/// An id without the name of the runtime.
fn bare(id: &str) -> &str {
    id.split_once("://").map_or(id, |(_, bare)| bare)
}

impl Exec for Cri {
    async fn exec(
        &self,
        container: &str,
        command: &[String],
        timeout: Duration,
    ) -> Result<ExecOutput, ExecError> {
        match Cri::exec(self, container, command.to_vec(), timeout).await {
            Ok(done) => {
                let output = [done.stdout, done.stderr].concat();
                Ok(ExecOutput { code: done.exit_code, output })
            }
            Err(CriError::Deadline { .. }) => Err(ExecError::TimedOut),
            Err(error) => Err(ExecError::Failed(error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::time::Instant;

    use super::*;

    #[test]
    fn a_container_that_is_being_stopped_is_as_ready_as_its_probes_say() {
        let of = |probe, was_ready| {
            let spec = json!({"name": "c", "readinessProbe": probe});
            let spec: Spec = serde_json::from_value(spec).unwrap();
            let probes = ContainerProbes::of(&spec, Timestamp::UNIX_EPOCH);
            let (started, ready, stopping) = (true, true, true);
            let mut state = State::Running { started, ready, stopping, until: None };
            let before = ContainerStatus { ready: was_ready, ..ContainerStatus::default() };
            say(&mut state, &probes, "id", Some(&before));
            matches!(state, State::Running { ready: true, .. })
        };
        assert!(of(json!(null), false));
        let probe = json!({"exec": {"command": ["true"]}});
        assert!(of(probe.clone(), true));
        assert!(!of(probe, false));
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_is_looked_at_as_soon_as_a_container_is_up() {
        let period = Duration::from_secs(60);
        let (up, begun) = (Notify::new(), Instant::now());
        let mut ticks = interval(period);
        turn(&mut ticks, Kind::Readiness, &up).await;
        up.notify_one();
        turn(&mut ticks, Kind::Readiness, &up).await;
        assert_eq!(begun.elapsed(), Duration::ZERO);
        turn(&mut ticks, Kind::Readiness, &up).await;
        assert_eq!(begun.elapsed(), period);
        // The others keep to their period.
        up.notify_one();
        turn(&mut ticks, Kind::Liveness, &up).await;
        assert_eq!(begun.elapsed(), period * 2);
    }

    #[test]
    fn a_container_is_up_once_its_startup_probe_has_succeeded() {
        let seen = |id: &str, started| {
            let phase = Phase::Running { since: Timestamp::UNIX_EPOCH, started };
            Seen { container: Some((id.to_owned(), phase)), ..Seen::default() }
        };
        assert!(!Seen::default().up());
        assert!(!seen("a", false).up());
        assert!(seen("a", true).up());
        assert_eq!(seen("a", true).id(), Some("a"));
    }
}
