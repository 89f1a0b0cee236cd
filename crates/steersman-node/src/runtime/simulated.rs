//! A runtime without containers: what would run follows from [scripts](crate::script) and the
//! clock. What containers are made of must be [there](needs) all the same, and is [read](readings) once
//! for many Pods.
//!
//! It remembers when it started what. Of a Pod that it does not know, because the process was
//! started anew or the Pod came with a fork, it takes what the Pod's status says, so that a restart
//! changes nothing but fractions of a second.

mod needs;
mod pulls;
mod readings;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container as InPod, ContainerStateTerminated, ContainerStatus, Pod, PodStatus,
};
use steersman::{Client, ObjectKey, Result};

use super::user::{Asked, ImageUser};
use super::{
    BEGINS_ANEW, Change, Container, ContainerRuntime, Evicted, Ledger, Observation, Outcome,
    Resized, Sandbox, Start, StartError, State, described, image_name, pull_secrets,
};
use crate::objects::{Objects, References};
use crate::rejection::Rejection;
use crate::script::{Ready, Script, Scripted, Scripts};
use crate::termination_order::{ordered, waits_for};
use needs::Needs;
use readings::{Age, Readings};

/// The code of what is ended by force.
const KILLED: i32 = 137;
/// How the names begin that this runtime has for things.
const SCHEME: &str = "simulated://";

pub(crate) struct Simulated {
    /// How long containers take to end when they are told to, unless their script says otherwise.
    termination: Duration,
    scripts: Scripts,
    /// By the Pod's uid.
    pods: Mutex<HashMap<String, Known>>,
    readings: Readings,
}

/// What is known of a Pod.
#[derive(Default)]
struct Known {
    /// Whether it has a sandbox, as it does once its volumes were there.
    connected: bool,
    /// By the container's name.
    runs: HashMap<String, Run>,
}

/// One run of a container.
struct Run {
    attempt: i32,
    /// Its image, unless another agent has started it.
    image: Option<String>,
    started: Timestamp,
    /// When it was told to stop, and how that will end.
    stop: Option<Stop>,
    /// Up to when it is known to have run: it cannot have ended before.
    seen: Timestamp,
    end: Option<End>,
    /// What ran before it.
    last: Option<Box<Container>>,
}

#[derive(Clone)]
struct Stop {
    told: Timestamp,
    end: End,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct End {
    at: Timestamp,
    code: i32,
    reason: Option<String>,
}

/// A container of a Pod's spec.
struct Spec<'a> {
    name: &'a str,
    image: &'a str,
    /// What it is in the Pod, and whether it is a main one, unless it was added later.
    of: Option<(&'a InPod, bool)>,
    /// What is said of who it is.
    who: Asked<'a>,
    script: Script,
    /// How long it sleeps before it stops, if it does.
    sleep: Option<Duration>,
}

impl Simulated {
    /// A runtime whose containers do what scripts say, and else take so long to end.
    pub(crate) fn new(termination: Duration, scripts: Scripts) -> Self {
        Self { termination, scripts, pods: Mutex::default(), readings: Readings::default() }
    }

    /// The containers of a Pod, with what they do.
    fn specs<'a>(&self, pod: &'a Pod) -> Vec<Spec<'a>> {
        let Some(spec) = &pod.spec else { return Vec::new() };
        let init = spec.init_containers.iter().flatten().map(|container| (container, false));
        let main = spec.containers.iter().map(|container| (container, true));
        let added = spec.ephemeral_containers.iter().flatten().map(|container| Spec {
            name: &container.name,
            image: container.image.as_deref().unwrap_or_default(),
            of: None,
            who: Asked::of_added(pod, container),
            script: Script::default(),
            sleep: None,
        });
        init.chain(main)
            .map(|(container, main)| {
                let image = container.image.as_deref().unwrap_or_default();
                let script = self.script(pod, container, image, main);
                let hook = container.lifecycle.as_ref().and_then(|all| all.pre_stop.as_ref());
                let sleep = hook.and_then(|hook| hook.sleep.as_ref());
                let sleep = sleep.and_then(|sleep| u64::try_from(sleep.seconds).ok());
                let sleep = sleep.map(Duration::from_secs);
                let (name, of) = (&container.name, Some((container, main)));
                Spec { name, image, of, who: Asked::of(pod, container), script, sleep }
            })
            .chain(added)
            .collect()
    }

    /// What a container of this image does.
    fn script(&self, pod: &Pod, container: &InPod, image: &str, main: bool) -> Script {
        let script = self.scripts.script(&Scripted { pod, name: &container.name, image, main });
        match main || container.restart_policy.as_deref() == Some("Always") {
            true => script,
            false => script.or(Script::done_at_once()),
        }
    }

    /// A container as it was when this run of it began: it goes on like that until it is stopped.
    fn as_begun<'a>(&self, pod: &Pod, spec: Spec<'a>, run: &Run) -> Spec<'a> {
        match (run.image.as_deref().filter(|image| *image != spec.image), spec.of) {
            (Some(image), Some((container, main))) => {
                Spec { script: self.script(pod, container, image, main), ..spec }
            }
            _ => spec,
        }
    }

    /// Why a container cannot be started: what it cannot be without and does not have, or what it is
    /// told that cannot be.
    async fn lacks(&self, pod: &Pod, name: &str, client: &Client) -> Option<StartError> {
        let Some(needs) = Needs::of(pod, name) else {
            return is_no_image(pod, name).or_else(|| self.is_root(pod, name));
        };
        let references = needs.references();
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let question = self.readings.question(namespace, client);
        let remembered = question.read(&references, Age::Recent).await;
        self.lacks_of(&needs, pod, name, &remembered)?;
        // Keys may have been added since.
        let now = question.read(&references, Age::New).await;
        self.lacks_of(&needs, pod, name, &now)
    }

    /// The same, if there are these objects. Its image is looked for after its volumes and before its
    /// variables, and then who it is.
    fn lacks_of(
        &self,
        needs: &Needs,
        pod: &Pod,
        name: &str,
        objects: &Objects,
    ) -> Option<StartError> {
        if let Some(why) = needs.volumes(objects).err().or_else(|| is_no_image(pod, name)) {
            return Some(why);
        }
        let pullable = self.is_pullable(pod, name);
        let told = pullable.then(|| needs.environment(objects).err()).flatten();
        told.or_else(|| self.is_root(pod, name))
    }

    /// Whether a container whose image can be had must not be root, and names it. As whom images run is
    /// known to nobody here.
    fn is_root(&self, pod: &Pod, name: &str) -> Option<StartError> {
        let (_, who) = named(pod, name).filter(|(_, who)| who.user().is_some())?;
        let why = who.not_root(&ImageUser::default()).err()?;
        let pod = Some(pod).filter(|pod| self.is_pullable(pod, name)).map(described)?;
        Some(StartError::Config(format!("{why} (pod: {pod:?}, container: {name})")))
    }

    fn is_pullable(&self, pod: &Pod, name: &str) -> bool {
        let specs = self.specs(pod);
        specs.iter().any(|spec| spec.name == name && spec.script.pullable())
    }

    /// Starts a container.
    fn begin(&self, pod: &Pod, Start { name, attempt }: &Start, now: Timestamp) -> Outcome {
        let Some(spec) = self.specs(pod).into_iter().find(|spec| spec.name == name) else {
            return Outcome::Started { pulled: None };
        };
        if !spec.script.pullable() {
            self.connect(pod);
            return Outcome::NotPulled(StartError::not_found(spec.image));
        }
        let uid = uid_of(pod);
        let pulled = pulls::pulled(pod, name);
        let mut all = self.pods();
        let known = all.entry(uid.to_owned()).or_insert_with(|| known(pod));
        known.connected = true;
        let runs = &mut known.runs;
        let image = Some(spec.image.to_owned());
        let last = runs.get_mut(name).map(|run| {
            let last = run.observed(uid, &self.as_begun(pod, spec, run), now);
            Box::new(Container { last: None, ..last })
        });
        let attempt = *attempt;
        let run = Run { attempt, image, started: now, stop: None, seen: now, end: None, last };
        runs.insert(name.clone(), run);
        Outcome::Started { pulled }
    }

    /// A container that is not started, because of this.
    fn fail(&self, pod: &Pod, name: &str, why: StartError) -> Outcome {
        if !matches!(why, StartError::Volumes(_)) {
            self.connect(pod);
        }
        // What it is told is looked at once its image is there.
        let pulled = match why {
            StartError::Config(_) => pulls::pulled(pod, name),
            _ => None,
        };
        Outcome::Failed { why, pulled }
    }

    /// Gives a Pod its sandbox.
    fn connect(&self, pod: &Pod) {
        let mut all = self.pods();
        all.entry(uid_of(pod).to_owned()).or_insert_with(|| known(pod)).connected = true;
    }

    fn pods(&self) -> MutexGuard<'_, HashMap<String, Known>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContainerRuntime for Simulated {
    fn ledger(&self) -> Option<Arc<dyn Ledger>> {
        None
    }

    fn refuses(&self, _: &Pod) -> Option<Rejection> {
        None
    }

    fn evicted(&self, _: &Pod) -> Option<Evicted> {
        None
    }

    async fn observe(&self, pod: &Pod, now: Timestamp) -> Result<Observation> {
        let specs = self.specs(pod);
        let uid = uid_of(pod);
        let mut all = self.pods();
        let Known { connected, runs } = all.entry(uid.to_owned()).or_insert_with(|| known(pod));
        let observed = specs.into_iter().filter_map(|spec| {
            let run = runs.get_mut(spec.name)?;
            Some(run.observed(uid, &self.as_begun(pod, spec, run), now))
        });
        let containers = observed.collect();
        let sandbox = if *connected { Sandbox::Ready(Vec::new()) } else { Sandbox::Absent };
        let starting = Vec::new();
        Ok(Observation { containers, starting, sandbox, reads_only_recursively: true })
    }

    fn takes_time(&self) -> bool {
        false
    }

    async fn start(
        &self,
        pod: &Pod,
        start: &Start,
        client: &Client,
        now: Timestamp,
    ) -> Result<Outcome> {
        Ok(match self.lacks(pod, &start.name, client).await {
            Some(why) => self.fail(pod, &start.name, why),
            None => self.begin(pod, start, now),
        })
    }

    async fn missing_secrets(&self, pod: &Pod, client: &Client) -> Vec<String> {
        let secrets: BTreeSet<String> = pull_secrets::named(pod).map(str::to_owned).collect();
        if secrets.is_empty() {
            return Vec::new();
        }
        let references = References { secrets, ..References::default() };
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        let question = self.readings.question(namespace, client);
        let found = question.read(&references, Age::Recent).await.secrets;
        let named = pull_secrets::named(pod);
        named.filter(|name| !matches!(found.get(*name), Some(Ok(_)))).map(str::to_owned).collect()
    }

    fn ends(&self, _: &str) {} // nothing is waited for

    async fn stop(&self, pod: &Pod, names: &[String], now: Timestamp) -> Result<()> {
        let grace = grace_period(pod);
        let mut specs = self.specs(pod);
        let mut all = self.pods();
        let runs = &mut all.entry(uid_of(pod).to_owned()).or_insert_with(|| known(pod)).runs;
        let Some(of_pod) = &pod.spec else { return Ok(()) };
        let mut ends: HashMap<&str, Timestamp> = HashMap::new();
        for name in ordered(of_pod, names) {
            let Some(at) = specs.iter().position(|spec| spec.name == name) else { continue };
            let Some(run) = runs.get_mut(name) else { continue };
            let spec = self.as_begun(pod, specs.swap_remove(at), run);
            let before = spec.sleep.unwrap_or_else(|| spec.script.pre_stop());
            let takes = spec.script.termination().unwrap_or(self.termination);
            let told = run.stop.as_ref().map_or(now, |stop| stop.told);
            let moment = |duration| later(told, duration).unwrap_or(Timestamp::MAX);
            let turn = waits_for(of_pod, name).into_iter().filter_map(|name| ends.get(name)).max();
            let signal = turn.copied().unwrap_or(told).max(moment(before));
            let end = later(signal, takes).unwrap_or(Timestamp::MAX);
            let code = if end > moment(grace) { KILLED } else { 0 };
            let at = end.min(moment(grace));
            run.stop = Some(Stop { told, end: End { at, code, reason: None } });
            ends.extend(run.ends(&spec.script).map(|end| (name, end.at)));
        }
        Ok(())
    }

    async fn resize(&self, _: &Pod, changes: &[Change]) -> Result<Resized> {
        Ok(Resized { done: changes.len(), error: None })
    }

    async fn wind_down(&self, _: &Pod) -> Result<bool> {
        Ok(true)
    }

    fn forget(&self, uid: &str) {
        self.pods().remove(uid);
    }

    fn changes(&self) -> impl Stream<Item = ObjectKey> + Send + 'static {
        stream::pending() // when something changes is known before
    }
}

impl Run {
    /// The run as it is told of.
    fn observed(&mut self, uid: &str, spec: &Spec<'_>, now: Timestamp) -> Container {
        // What another agent has started is taken for what it was to be.
        let image = self.image.get_or_insert_with(|| spec.image.to_owned()).clone();
        Container {
            name: spec.name.to_owned(),
            id: container_id(uid, spec.name, self.attempt),
            image_id: format!("{SCHEME}{image}"),
            asked: Some(image.clone()),
            image,
            attempt: self.attempt,
            started: self.started,
            state: self.state(&spec.script, now),
            outdated: false,
            failed_probe: None,
            user: Some(spec.who.identity()),
            last: self.last.clone(),
        }
    }

    /// How it has ended, or will as far as it is known: by itself, or because it is told to.
    fn ends(&self, script: &Script) -> Option<End> {
        if self.end.is_some() {
            return self.end.clone();
        }
        let own = script.exit(self.attempt).and_then(|exit| {
            let at = later(self.started, exit.after)?;
            Some(End { at, code: exit.code, reason: exit.reason.map(str::to_owned) })
        });
        let stop = self.stop.as_ref().map(|stop| stop.end.clone());
        own.into_iter().chain(stop).min_by_key(|end| end.at)
    }

    /// How far it is, which is decided once it has ended.
    fn state(&mut self, script: &Script, now: Timestamp) -> State {
        if self.end.is_none() {
            match self.ends(script) {
                Some(end) if end.at <= now => {
                    self.end = Some(End { at: end.at.max(self.seen).min(now), ..end });
                }
                end => {
                    self.seen = self.seen.max(now);
                    return self.running(script, end.map(|end| end.at), now);
                }
            }
        }
        let End { at, code, reason } =
            self.end.clone().unwrap_or(End { at: now, code: 0, reason: None });
        let reason = reason.unwrap_or_else(|| if code == 0 { "Completed" } else { "Error" }.into());
        State::Exited { finished: at, code, reason, message: None }
    }

    fn running(&self, script: &Script, end: Option<Timestamp>, now: Timestamp) -> State {
        let ready_at = match script.ready() {
            Ready::After(time) => later(self.started, time),
            Ready::Never => None,
        };
        let ready = ready_at.is_some_and(|at| at <= now);
        let turns = ready_at.filter(|_| !ready);
        let until = end.into_iter().chain(turns).min();
        State::Running { started: true, ready, stopping: self.stop.is_some(), until }
    }
}

/// The image of a container, whichever list it is in, and what is said of who it is.
fn named<'a>(pod: &'a Pod, name: &str) -> Option<(&'a str, Asked<'a>)> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let own = all.find(|container| container.name == name);
    let own = own.map(|container| (container.image.as_deref(), Asked::of(pod, container)));
    let (image, who) = own.or_else(|| {
        let mut added = spec.ephemeral_containers.iter().flatten();
        let found = added.find(|container| container.name == name)?;
        Some((found.image.as_deref(), Asked::of_added(pod, found)))
    })?;
    Some((image.unwrap_or_default(), who))
}

/// What is wrong with the name of a container's image.
fn is_no_image(pod: &Pod, name: &str) -> Option<StartError> {
    let (image, _) = named(pod, name)?;
    let why = image_name::with_tag(image).err()?;
    Some(StartError::ImageName { image: image.to_owned(), why })
}

/// What a Pod's status tells of it.
fn known(pod: &Pod) -> Known {
    let Some(status) = &pod.status else { return Known::default() };
    let mut conditions = status.conditions.iter().flatten();
    let told = conditions.any(|it| it.type_ == "PodReadyToStartContainers" && it.status == "True");
    let runs = known_runs(status);
    Known { connected: told || !runs.is_empty(), runs }
}

fn known_runs(status: &PodStatus) -> HashMap<String, Run> {
    let lists = [
        &status.init_container_statuses,
        &status.container_statuses,
        &status.ephemeral_container_statuses,
    ];
    let all = lists.into_iter().flatten().flatten();
    all.filter_map(|container| Some((container.name.clone(), known_run(container)?))).collect()
}

fn known_run(container: &ContainerStatus) -> Option<Run> {
    let image = container.image_id.strip_prefix(SCHEME).map(str::to_owned);
    let state = container.state.as_ref()?;
    let last = container.last_state.as_ref().and_then(|last| last.terminated.as_ref());
    // One that waits to begin anew with all others is counted already, and has not begun.
    let begins_anew = state.waiting.is_some()
        && last.is_some_and(|last| last.reason.as_deref() == Some(BEGINS_ANEW));
    let attempt = container.restart_count - i32::from(begins_anew);
    if let Some(running) = &state.running {
        let started = running.started_at.as_ref()?.0;
        let last = last.and_then(|last| known_last(container, last)).map(Box::new);
        return Some(Run { attempt, image, started, stop: None, seen: started, end: None, last });
    }
    let (ended, last) = match &state.terminated {
        Some(ended) => (ended, last.and_then(|last| known_last(container, last))),
        None => (last?, None), // it waits for being started again
    };
    let at = ended.finished_at.as_ref()?.0;
    let started = ended.started_at.as_ref().map_or(at, |time| time.0);
    let end = End { at, code: ended.exit_code, reason: ended.reason.clone() };
    let last = last.map(Box::new);
    Some(Run { attempt, image, started, stop: None, seen: at, end: Some(end), last })
}

/// The container before the one that a status is about.
fn known_last(container: &ContainerStatus, ended: &ContainerStateTerminated) -> Option<Container> {
    let finished = ended.finished_at.as_ref()?.0;
    let reason = ended.reason.clone().unwrap_or_default();
    Some(Container {
        name: container.name.clone(),
        id: ended.container_id.clone().unwrap_or_default(),
        image: container.image.clone(),
        image_id: container.image_id.clone(),
        asked: None,
        attempt: container.restart_count - 1,
        started: ended.started_at.as_ref().map_or(finished, |time| time.0),
        state: State::Exited {
            finished,
            code: ended.exit_code,
            reason,
            message: ended.message.clone(),
        },
        outdated: false,
        failed_probe: None,
        user: None,
        last: None,
    })
}

/// How long containers have to end.
fn grace_period(pod: &Pod) -> Duration {
    let spec = pod.spec.as_ref().and_then(|spec| spec.termination_grace_period_seconds);
    let seconds = pod.metadata.deletion_grace_period_seconds.or(spec);
    seconds
        .map_or(Duration::MAX, |seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

fn container_id(uid: &str, name: &str, attempt: i32) -> String {
    match attempt {
        0 => format!("{SCHEME}{uid}/{name}"),
        _ => format!("{SCHEME}{uid}/{name}/{attempt}"),
    }
}

fn uid_of(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// The moment after this time; none if no clock gets there.
fn later(moment: Timestamp, time: Duration) -> Option<Timestamp> {
    moment.checked_add(SignedDuration::try_from(time).ok()?).ok()
}

#[cfg(test)]
mod tests;
