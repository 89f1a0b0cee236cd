//! Which containers of a Pod are started, started again, kept waiting or stopped.
//!
//! Init containers run one after the other, then all main containers at once. What has ended is
//! started again if its restart policy says so: at once the first time, then after a growing time.
//! When one ends of which its Pod says that all others go with it, all are stopped and begin anew.
//! When the last main container has ended for good, or an init container has failed for good, the
//! containers that only accompany others are stopped.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container as Spec, Pod, PodSpec};

use super::anew::Anew;
use super::backoff::{Definition, Trouble, Troubles};
use super::resize::{Sizes, changes};
use crate::duration::go;
use crate::probes::ContainerProbes;
use crate::restart_policy::{accompanies, restarts, restarts_all};
use crate::runtime::{Change, Container, Observation, Start, StartError, State, described};

/// The code of what is ended by force.
const KILLED: i32 = 137;
/// For how long it is said that a pull or a start failed, before it is said that the next is waited
/// for.
const FAILURE_SHOWN: SignedDuration = SignedDuration::from_secs(1);
/// How soon all containers can be started anew once more: what ends at once must not keep a node busy,
/// and a kubelet does not hear of it any sooner.
const HEARD_OF: SignedDuration = SignedDuration::from_secs(1);

/// What is known of a Pod.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// By the runtime.
    pub(super) now: Observation,
    pub(super) troubles: Troubles,
    /// Which containers were stopped only to be started as they now are, with how many of their name
    /// were started before them.
    pub(super) replaced: HashMap<String, i32>,
    /// Which containers count as if they had never been there.
    pub(super) anew: Anew,
    /// What its containers have of its node.
    pub(super) sizes: Sizes,
}

/// What a pod worker does.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    Start(Start),
    /// Starts what ended at this moment again.
    Restart(Start, Timestamp),
    /// Stops what only accompanied others.
    Stop(Vec<String>),
    /// Stops what a probe says is broken.
    Kill {
        name: String,
        /// What people are told.
        message: String,
    },
    /// Stops what is no longer as its Pod says, to start it as it now is.
    Replace {
        name: String,
        /// How many of its name were started before it.
        attempt: i32,
        /// What people are told.
        message: String,
    },
    /// Stops what runs in a sandbox that is gone.
    Leave {
        names: Vec<String>,
        /// Whether they are started again in another.
        again: bool,
    },
    /// Stops what runs at once, because one has ended with which all are started anew.
    BeginAnew {
        /// All of them, each with how many of its name were started before it.
        containers: Vec<(String, i32)>,
        /// Those that run.
        running: Vec<String>,
    },
    /// Stops what is started again with other resources.
    StopToResize {
        name: String,
        /// How many of its name were started before it.
        attempt: i32,
    },
    /// Gives running containers other resources, and their Pod as a whole.
    Resize(Vec<Change>),
}

/// Why a container waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// How often it was started again.
    pub(super) restarts: i32,
}

/// What is to be done about a Pod now, and what is waited for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) actions: Vec<Action>,
    /// By the name of the container.
    pub(super) waiting: HashMap<String, Waiting>,
    /// When to look again, if nothing happens before.
    pub(super) until: Option<Timestamp>,
}

impl Observed {
    /// The container of this name.
    pub(super) fn of(&self, name: &str) -> Option<&Container> {
        self.now.containers.iter().find(|container| container.name == name)
    }

    /// The same, unless it is started anew with all others.
    fn present(&self, name: &str) -> Option<&Container> {
        self.of(name).filter(|container| !self.anew.includes(container))
    }

    /// The same, unless what it shared with others is no more.
    fn current(&self, name: &str) -> Option<&Container> {
        self.present(name).filter(|container| !container.outdated)
    }

    /// Whether all containers are started anew, and some of those before still run.
    pub(super) fn restarts_all(&self) -> bool {
        self.now.containers.iter().any(|it| it.runs() && self.anew.includes(it))
    }

    /// Whether anything still runs.
    pub(super) fn any_runs(&self) -> bool {
        self.now.containers.iter().any(Container::runs)
    }

    /// When something changes by itself.
    pub(super) fn until(&self) -> Option<Timestamp> {
        let until = |container: &Container| match container.state {
            State::Running { until, .. } => until,
            State::Exited { .. } => None,
        };
        self.now.containers.iter().filter_map(until).min()
    }
}

/// Decides what happens to a Pod that is neither being deleted nor has ended, and whose spec says what
/// its node has given to it.
pub(super) fn plan(pod: &Pod, observed: &Observed, now: Timestamp) -> Plan {
    let mut plan = Plan { until: observed.until(), ..Plan::default() };
    let Some(spec) = &pod.spec else { return plan };
    let mut planning = Planning { pod, spec, observed, now, plan: &mut plan };
    if planning.leaves() || planning.begins_anew_as_a_whole() {
        return plan;
    }
    planning.replace_changed();
    planning.kill_broken();
    planning.resize();
    planning.run_added();
    match planning.initialized() {
        Initialization::Pending => {}
        Initialization::Failed => planning.stop_companions(),
        Initialization::Done => planning.run_main(),
    }
    plan
}

/// How far init containers are.
enum Initialization {
    Pending,
    Failed,
    Done,
}

struct Planning<'a> {
    pod: &'a Pod,
    spec: &'a PodSpec,
    observed: &'a Observed,
    now: Timestamp,
    plan: &'a mut Plan,
}

impl Planning<'_> {
    /// Looks at init containers one after the other, up to the first that has to be waited for.
    /// Once a main container has been started, only companions are kept running.
    fn initialized(&mut self) -> Initialization {
        let begun = self.spec.containers.iter().any(|c| self.observed.current(&c.name).is_some());
        let over = self.is_over();
        if !begun && self.init_has_failed() {
            return Initialization::Failed;
        }
        for container in self.spec.init_containers.iter().flatten() {
            let companion = accompanies(container);
            match self.observed.current(&container.name).map(|found| (found, &found.state)) {
                _ if over || begun && !companion => {}
                None => {
                    self.start(&container.name, container.image.as_deref());
                    if !begun {
                        return Initialization::Pending;
                    }
                }
                Some((_, State::Running { started, .. })) if companion && (begun || *started) => {}
                Some((_, State::Running { .. })) => return Initialization::Pending,
                Some((_, State::Exited { code: 0, .. })) if !companion => {}
                Some((found, State::Exited { .. })) if self.is_replaced(found) => {
                    self.start_replaced(found);
                    if !begun {
                        return Initialization::Pending;
                    }
                }
                Some((found, State::Exited { code, finished, .. })) => {
                    if !restarts(container, self.spec, *code) {
                        return Initialization::Failed;
                    }
                    self.restart(found, *finished);
                    if !begun {
                        return Initialization::Pending;
                    }
                }
            }
        }
        Initialization::Done
    }

    /// Whether an init container has failed for good: then nothing is started any more, companions that
    /// were stopped for it included.
    fn init_has_failed(&self) -> bool {
        let mut init = self.spec.init_containers.iter().flatten().filter(|it| !accompanies(it));
        init.any(|container| {
            let found = self.observed.current(&container.name);
            found.is_some_and(|found| match found.state {
                State::Exited { code, .. } => {
                    code != 0 && !restarts(container, self.spec, code) && !self.is_replaced(found)
                }
                State::Running { .. } => false,
            })
        })
    }

    fn run_main(&mut self) {
        for container in &self.spec.containers {
            match self.observed.present(&container.name).map(|found| (found, &found.state)) {
                None => self.start(&container.name, container.image.as_deref()),
                Some((found, State::Exited { .. })) if self.is_replaced(found) => {
                    self.start_replaced(found);
                }
                Some((found, State::Exited { code, finished, .. }))
                    if restarts(container, self.spec, *code) =>
                {
                    self.restart(found, *finished);
                }
                Some(_) => {}
            }
        }
        if self.is_over() {
            self.stop_companions();
        }
    }

    /// Whether every main container has ended for good.
    fn is_over(&self) -> bool {
        self.spec.containers.iter().all(|container| {
            self.observed.present(&container.name).is_some_and(|found| match found.state {
                State::Exited { code, .. } => {
                    !restarts(container, self.spec, code) && !self.is_replaced(found)
                }
                State::Running { .. } => false,
            })
        })
    }

    /// What runs in a sandbox that is gone is stopped before anything is started in another.
    fn leaves(&mut self) -> bool {
        let all = self.observed.now.containers.iter();
        let left: Vec<&Container> = all.filter(|one| one.outdated && one.runs()).collect();
        let untold =
            left.iter().filter(|one| matches!(one.state, State::Running { stopping: false, .. }));
        let names: Vec<String> = untold.map(|one| one.name.clone()).collect();
        if !names.is_empty() {
            let again = self.begins_anew();
            self.plan.actions.push(Action::Leave { names, again });
        }
        !left.is_empty()
    }

    /// When one has ended so that all are started anew, what runs is stopped before.
    fn begins_anew_as_a_whole(&mut self) -> bool {
        let observed = self.observed;
        let all = self.spec.init_containers.iter().flatten().chain(&self.spec.containers);
        let found = || all.clone().filter_map(|it| Some((it, observed.of(&it.name)?)));
        let calls = |container: &Spec, found: &Container| match found.state {
            State::Exited { code, .. } => {
                restarts_all(container, code) && !observed.anew.includes(found)
            }
            State::Running { .. } => false,
        };
        if !found().any(|(container, found)| calls(container, found)) {
            // Some may not have heard of it, or have not ended when they were to.
            let left = found().filter(|(_, found)| {
                observed.anew.includes(found)
                    && matches!(found.state, State::Running { stopping: false, .. })
            });
            let running: Vec<String> = left.map(|(_, found)| found.name.clone()).collect();
            if !running.is_empty() {
                self.plan.actions.push(Action::BeginAnew { containers: Vec::new(), running });
            }
            return observed.restarts_all();
        }
        let again = observed.anew.since.and_then(|since| since.checked_add(HEARD_OF).ok());
        if let Some(again) = again.filter(|again| self.now < *again) {
            self.look_again(again);
            return true;
        }
        let containers = found().map(|(_, found)| (found.name.clone(), found.attempt)).collect();
        let running = found().filter(|(_, found)| found.runs());
        let running = running.map(|(_, found)| found.name.clone()).collect();
        self.plan.actions.push(Action::BeginAnew { containers, running });
        true
    }

    /// Whether there is anything to be started in another sandbox.
    fn begins_anew(&self) -> bool {
        let policy = self.spec.restart_policy.as_deref();
        let is_done = |container: &Spec| {
            let own = container.restart_policy.as_deref().or(policy);
            let found = self.observed.of(&container.name);
            own == Some("OnFailure")
                && found.is_some_and(|it| matches!(it.state, State::Exited { code: 0, .. }))
        };
        policy != Some("Never") && !self.spec.containers.iter().all(is_done)
    }

    /// What is no longer as the Pod says is stopped, and started as it now is.
    fn replace_changed(&mut self) {
        let init = self.spec.init_containers.iter().flatten();
        let companions = init.filter(|container| accompanies(container));
        let all = companions
            .map(|it| (it, true))
            .chain(self.spec.containers.iter().map(|it| (it, false)));
        for (container, init) in all {
            let name = &container.name;
            let Some(found) = self.observed.of(name).filter(|it| is_changed(it, container)) else {
                continue;
            };
            let State::Running { started, stopping: false, .. } = found.state else { continue };
            let message = match init {
                true if !started => continue, // its probe is waited for
                true => format!("Init container {name} definition changed"),
                false => format!("Container {name} definition changed, will be restarted"),
            };
            let (name, attempt) = (name.clone(), found.attempt);
            self.plan.actions.push(Action::Replace { name, attempt, message });
        }
    }

    /// Whether a container is about to be stopped because it is no longer as the Pod says.
    fn is_being_replaced(&self, name: &str) -> bool {
        let mut actions = self.plan.actions.iter();
        actions.any(|action| matches!(action, Action::Replace { name: it, .. } if it == name))
    }

    /// What a probe says is broken is stopped, and started again as what ends by itself.
    fn kill_broken(&mut self) {
        let spec_of = |name: &str| {
            let mut all = self.spec.init_containers.iter().flatten().chain(&self.spec.containers);
            all.find(|container| container.name == name)
        };
        for found in &self.observed.now.containers {
            let State::Running { stopping: false, .. } = found.state else { continue };
            let Some(kind) = found.failed_probe else { continue };
            let name = &found.name;
            if self.is_being_replaced(name) {
                continue;
            }
            let again =
                spec_of(name).is_some_and(|container| restarts(container, self.spec, KILLED));
            let message = ContainerProbes::killing(name, kind, again);
            self.plan.actions.push(Action::Kill { name: name.clone(), message });
        }
    }

    /// What runs with something else than it was given gets that, if need be by starting it again.
    fn resize(&mut self) {
        let mut changes = changes(self.pod, &self.observed.now, &self.observed.sizes);
        changes.updates.retain(|change| !self.is_being_replaced(&change.name));
        for name in changes.restarts {
            if self.is_being_replaced(&name) {
                continue;
            }
            let attempt = self.observed.of(&name).map_or(0, |found| found.attempt);
            self.plan.actions.push(Action::StopToResize { name, attempt });
        }
        if changes.updates.is_empty() && !changes.whole {
            return;
        }
        match self.observed.sizes.again.filter(|again| self.now < *again) {
            Some(again) => self.look_again(again),
            None => self.plan.actions.push(Action::Resize(changes.updates)),
        }
    }

    /// Whether what has ended was stopped only to be started as it now is.
    fn is_replaced(&self, ended: &Container) -> bool {
        self.is_resized(ended) || self.observed.replaced.get(&ended.name) == Some(&ended.attempt)
    }

    /// The same for what was to have other resources.
    fn is_resized(&self, ended: &Container) -> bool {
        self.observed.sizes.restarts(&ended.name, ended.attempt)
    }

    /// Starts it again, whatever its restart policy, and not later for it. Its Pod as a whole has its
    /// resources before.
    fn start_replaced(&mut self, ended: &Container) {
        let before = self.plan.actions.len();
        self.start(&ended.name, Some(image_of(self.spec, &ended.name)));
        if self.plan.actions.len() > before && self.is_resized(ended) {
            self.plan.actions.insert(before, Action::Resize(Vec::new()));
        }
        let (reason, restarts) = ("ContainerCreating", ended.attempt);
        let waiting = Waiting { reason, message: String::new(), restarts };
        self.plan.waiting.entry(ended.name.clone()).or_insert(waiting);
    }

    /// Containers that were added later run once, whatever the others do.
    fn run_added(&mut self) {
        for container in self.spec.ephemeral_containers.iter().flatten() {
            if self.observed.of(&container.name).is_none() {
                self.start(&container.name, container.image.as_deref());
            }
        }
    }

    fn stop_companions(&mut self) {
        let running = |container: &&Container| {
            matches!(container.state, State::Running { stopping: false, .. })
        };
        let all = self.observed.now.containers.iter().filter(running);
        let names: Vec<String> = all.map(|container| container.name.clone()).collect();
        if !names.is_empty() {
            self.plan.actions.push(Action::Stop(names));
        }
    }

    /// Starts a container for the first time here, unless that failed lately.
    fn start(&mut self, name: &str, image: Option<&str>) {
        if !self.waits_for_start(name, image.unwrap_or_default()) {
            let attempt = self.observed.of(name).map_or(0, |it| it.attempt.saturating_add(1));
            self.plan.actions.push(Action::Start(Start { name: name.to_owned(), attempt }));
        }
    }

    fn restart(&mut self, ended: &Container, finished: Timestamp) {
        let name = &ended.name;
        let trouble = self.trouble(name);
        if let Some(last) = trouble.restart.filter(|it| !it.is_forgotten(finished))
            && let Ok(again) = finished.checked_add(last.delay)
            && self.now < again
        {
            if let Some((since, why)) = trouble.failed_run
                && let Some(reason) = why.reason()
                && let Ok(shown) = since.max(finished).checked_add(FAILURE_SHOWN)
                && self.now < shown
            {
                return self.wait(name, reason, why.details(), shown.min(again));
            }
            let back_off = go(last.delay.unsigned_abs());
            let pod = described(self.pod);
            let message =
                format!("back-off {back_off} restarting failed container={name} pod={pod}");
            return self.wait(name, "CrashLoopBackOff", message, again);
        }
        let image = image_of(self.spec, name);
        if !self.waits_for_start(name, image) {
            let attempt = ended.attempt.saturating_add(1);
            let start = Start { name: name.clone(), attempt };
            self.plan.actions.push(Action::Restart(start, finished));
        }
    }

    /// What is known of a container as it now is.
    fn trouble(&self, name: &str) -> Trouble {
        let known = self.observed.troubles.get(name);
        let same = known.filter(|it| it.of == Definition::of(self.spec, name));
        same.cloned().unwrap_or_default()
    }

    /// Whether a start is under way, or failed lately.
    fn waits_for_start(&mut self, name: &str, image: &str) -> bool {
        if self.observed.now.starting.iter().any(|starting| starting == name) {
            return true;
        }
        let Some((last, why)) = self.trouble(name).start else { return false };
        let Ok(again) = last.since.checked_add(last.delay) else { return false };
        if last.is_forgotten(self.now) || again <= self.now {
            return false;
        }
        let shown = last.since.checked_add(FAILURE_SHOWN).unwrap_or(again);
        match (why.reason(), &why) {
            (Some(reason), StartError::ImagePull { .. }) if self.now < shown => {
                self.wait(name, reason, why.to_string(), shown);
            }
            (Some(reason), StartError::ImagePull { .. }) => {
                let message = format!("Back-off pulling image {image:?}: {reason}: {why}");
                self.wait(name, "ImagePullBackOff", message, again);
            }
            (Some(reason), _) => self.wait(name, reason, why.to_string(), again),
            (None, _) => self.look_again(again),
        }
        true
    }

    fn wait(&mut self, name: &str, reason: &'static str, message: String, until: Timestamp) {
        let restarts = self.observed.of(name).map_or(0, |container| container.attempt);
        let waiting = Waiting { reason, message, restarts };
        self.plan.waiting.insert(name.to_owned(), waiting);
        self.look_again(until);
    }

    fn look_again(&mut self, at: Timestamp) {
        self.plan.until = Some(self.plan.until.map_or(at, |earlier| earlier.min(at)));
    }
}

/// Whether a container was made of another image than its Pod now asks for.
fn is_changed(found: &Container, spec: &Spec) -> bool {
    found.asked.as_deref().is_some_and(|asked| asked != spec.image.as_deref().unwrap_or_default())
}

fn image_of<'a>(spec: &'a PodSpec, name: &str) -> &'a str {
    let mut all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let found = all.find(|container| container.name == name);
    found.and_then(|container| container.image.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
