//! One look at one Pod: brings its containers to where they are to be, or ends it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::api::{DeleteParams, Preconditions};
use steersman::{Client, Context, Error, Next, ObjectKey, Reconciler, Result, clock};

use super::anew::Anew;
use super::backoff::{Memory, Whose};
use super::events::Teller;
use super::plan::{Action, Observed, Plan, plan};
use super::removal::{Removal, removal};
use super::resize::Allocations;
use super::status::{self, End, Surroundings};
use super::{Machines, bound_to};
use crate::addresses::Addresses;
use crate::admission::Admitted;
use crate::registration::{Machine, Network};
use crate::rejection::Rejection;
use crate::runtime::{ContainerRuntime, Outcome, Pulled, Sandbox, Start, StartError, State};

/// When to look again at what should have ended, if nobody tells before.
const STILL_RUNS: Duration = Duration::from_secs(1);

/// When to look again whether there is room for what a Pod wants, if nobody tells before.
const DEFERRED: Duration = Duration::from_secs(180);

/// How often the same may be done in one look: a pull may have ended in between.
const SAME_MAX: usize = 3;
/// How much may be done in one look.
const DONE_MAX: usize = 500;

/// One look at a Pod that its machine runs.
struct Look<'a> {
    machine: &'a Machine,
    teller: &'a Teller<'a>,
    /// The addresses that it was given.
    given: Vec<String>,
    /// Until its deadline.
    left: Option<Duration>,
    now: Timestamp,
}

/// What came of what was to be done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Came {
    /// It is done, or is tried again when that is due.
    Done,
    /// A container was made.
    Made,
    /// A start has to wait: the runtime wakes the Pod when it need not any more.
    Waits,
}

/// Whether a node runs a Pod.
pub(super) enum Admission {
    /// With these addresses, which are none if the runtime gives them.
    Taken(Vec<String>),
    /// Once those are gone who have to go for it.
    Waits,
    Refused(Rejection),
}

/// Works on the Pods of some machines.
pub(super) struct PodWorker<R> {
    pub(super) machines: Machines,
    pub(super) addresses: Arc<Addresses>,
    pub(super) runtime: Arc<R>,
    pub(super) memory: Arc<Memory>,
    pub(super) allocations: Arc<Allocations>,
}

impl<R> Clone for PodWorker<R> {
    fn clone(&self) -> Self {
        Self {
            machines: Arc::clone(&self.machines),
            addresses: Arc::clone(&self.addresses),
            runtime: Arc::clone(&self.runtime),
            memory: Arc::clone(&self.memory),
            allocations: Arc::clone(&self.allocations),
        }
    }
}

impl<R: ContainerRuntime> PodWorker<R> {
    pub(super) fn new(machines: Machines, runtime: R) -> Self {
        Self {
            machines,
            addresses: Arc::new(Addresses::default()),
            allocations: Arc::new(Allocations::kept_in(runtime.ledger())),
            runtime: Arc::new(runtime),
            memory: Arc::new(Memory::default()),
        }
    }

    /// Takes in how a Pod of a machine is.
    pub(super) fn follow(&self, pod: &Pod, node: &str) {
        if status::has_ended(pod) {
            self.addresses.release(uid_of(pod));
            self.allocations.forget(uid_of(pod));
            self.allocations.make_room(Some(node));
        } else {
            if pod.metadata.deletion_timestamp.is_some() {
                self.runtime.ends(uid_of(pod));
            }
            self.addresses.observe(pod, node);
        }
    }

    /// Forgets a Pod that is gone.
    pub(super) fn forget(&self, uid: &str) {
        self.addresses.release(uid);
        self.runtime.forget(uid);
        self.memory.forget(uid);
        self.allocations.forget(uid);
    }

    async fn run(&self, pod: &Pod, machine: &Machine, ctx: &Context<Pod>) -> Result<Next> {
        let now = clock::now();
        let teller = Teller::new(pod, machine, ctx.recorder());
        if let Some(why) = self.runtime.evicted(pod) {
            return self.end(pod, &End::Evicted(why), &teller, ctx).await;
        }
        if let Some(news) = self.memory.preempted(uid_of(pod)) {
            if news {
                teller.preempted();
            }
            return self.end(pod, &End::Preempted, &teller, ctx).await;
        }
        let given = match self.admit(pod, machine, ctx.live()).await? {
            Admission::Taken(addresses) => addresses,
            Admission::Waits => return Ok(Next::After(STILL_RUNS)),
            Admission::Refused(rejection) => {
                teller.rejected(&rejection);
                ctx.status(status::rejected(pod, &rejection, &clock::now_time()));
                return Ok(Next::Settled);
            }
        };
        let left = status::time_left(pod, now);
        if left.is_some_and(|left| left.is_zero()) {
            return self.end(pod, &End::DeadlineExceeded, &teller, ctx).await;
        }
        self.allocations.admit(pod);
        self.allocate(pod, machine, &teller, ctx)?;
        let look = Look { machine, teller: &teller, given, left, now };
        if !self.runtime.takes_time() || status::has_started(pod) {
            return self.bring_on(pod, &look, ctx).await;
        }
        // That it begins is told while it does: neither waits for the other.
        let begun = self.begun(pod, &look).await?;
        report(pod, begun.status.clone().unwrap_or_default(), ctx);
        let (told, next) = futures::join!(ctx.write_status(), self.bring_on(&begun, &look, ctx));
        told.and(next)
    }

    /// A Pod with what is told of it before anything is done for it.
    async fn begun(&self, pod: &Pod, look: &Look<'_>) -> Result<Pod> {
        let allocated = self.allocations.of(pod).allocated;
        let observed = self.observe(&allocated.applied(pod), look.now).await?;
        let around = surroundings(pod, look.machine, &observed, look.given.clone());
        let status = status::running(pod, &around, &observed, &Plan::default(), look.now);
        Ok(Pod { status: Some(status), ..pod.clone() })
    }

    /// Brings the containers of a Pod to where they are to be, and tells how it then is.
    async fn bring_on(&self, pod: &Pod, look: &Look<'_>, ctx: &Context<Pod>) -> Result<Next> {
        let Look { machine, teller, now, .. } = *look;
        let allocated = self.allocations.of(pod).allocated;
        let given_pod = allocated.applied(pod);
        let (mut observed, plan) = self.settle(&given_pod, teller, ctx.live(), now).await?;
        self.progress(&given_pod, &mut observed, teller);
        self.allocations.forget_told(pod, &machine.name);
        teller.waiting(&plan.waiting);
        let around = surroundings(pod, machine, &observed, look.given.clone());
        let running = status::running(pod, &around, &observed, &plan, now);
        let ended = matches!(running.phase.as_deref(), Some("Succeeded" | "Failed"));
        report(pod, running, ctx);
        // What it still has of its machine is given back when this is heard of.
        let room = observed.sizes.pending.as_ref().map(|_| DEFERRED);
        let next = plan.until.map(|until| time_to(until, now));
        let next = next.into_iter().chain(look.left).chain(room).min();
        Ok(next.filter(|_| !ended).map_or(Next::Settled, Next::After))
    }

    /// Does what is to be done until nothing is, and tells how it then is.
    pub(super) async fn settle(
        &self,
        pod: &Pod,
        teller: &Teller<'_>,
        client: &Client,
        now: Timestamp,
    ) -> Result<(Observed, Plan)> {
        let mut done: Vec<Action> = Vec::new();
        let mut waiting: Vec<String> = Vec::new();
        loop {
            let mut observed = self.observe(pod, now).await?;
            // What has to wait is not tried again before the Pod is woken for it.
            observed.now.starting.extend(waiting.iter().cloned());
            let plan = plan(pod, &observed, now);
            if plan.actions.is_empty() {
                return Ok((observed, plan));
            }
            // A runtime that does not show what it says it has done is asked again later.
            let often =
                |action: &Action| done.iter().filter(|it| *it == action).count() >= SAME_MAX;
            if done.len() >= DONE_MAX || plan.actions.iter().any(often) {
                let actions = &plan.actions;
                return Err(Error::message(format!(
                    "the container runtime does not show what it has done: {actions:?}"
                )));
            }
            done.extend(plan.actions.iter().cloned());
            for action in &plan.actions {
                let came = self.act(action, pod, teller, client, now).await?;
                if let (Came::Waits, Action::Start(start) | Action::Restart(start, _)) =
                    (came, action)
                {
                    waiting.push(start.name.clone());
                }
            }
        }
    }

    async fn observe(&self, pod: &Pod, now: Timestamp) -> Result<Observed> {
        let seen = self.runtime.observe(pod, now).await?;
        let sizes = self.allocations.of(pod);
        let uid = uid_of(pod);
        let (troubles, replaced) = (self.memory.of(uid), self.memory.replaced_of(uid));
        let anew = self.memory.anew_of(uid).or(Anew::told(pod));
        Ok(Observed { now: seen, troubles, replaced, anew, sizes })
    }

    async fn act(
        &self,
        action: &Action,
        pod: &Pod,
        teller: &Teller<'_>,
        client: &Client,
        now: Timestamp,
    ) -> Result<Came> {
        match action {
            Action::Start(start) => return self.start(start, pod, teller, client, now).await,
            Action::Restart(start, finished) => {
                let came = self.start(start, pod, teller, client, now).await?;
                if came == Came::Made
                    && let Some(whose) = whose(pod, &start.name)
                {
                    self.memory.restarted(whose, *finished, now);
                }
                return Ok(came);
            }
            Action::Stop(names) => {
                teller.stopping(names);
                self.runtime.stop(pod, names, now).await?;
            }
            Action::Leave { names, again } => {
                if *again {
                    teller.leaving();
                }
                teller.stopping(names);
                self.runtime.stop(pod, names, now).await?;
            }
            Action::Kill { name, message } => {
                teller.killing(name, message);
                self.runtime.stop(pod, std::slice::from_ref(name), now).await?;
            }
            Action::Replace { name, attempt, message } => {
                teller.killing(name, message);
                self.memory.replaced(uid_of(pod), name, *attempt);
                self.runtime.stop(pod, std::slice::from_ref(name), now).await?;
            }
            Action::BeginAnew { containers, running } => {
                for name in running {
                    teller.killing(name, "killing");
                }
                // Noted only once they are told: if that fails, all of it is tried again.
                self.runtime.stop(&at_once(pod), running, now).await?;
                self.memory.begin_anew(uid_of(pod), containers, now);
            }
            Action::StopToResize { name, attempt } => {
                teller.killing(name, &format!("Container {name} resize requires restart"));
                self.allocations.change(pod, |sizes| {
                    sizes.restarting.insert(name.clone(), *attempt);
                });
                self.runtime.stop(pod, std::slice::from_ref(name), now).await?;
            }
            Action::Resize(changes) => self.resize(pod, changes, teller, now).await?,
        }
        Ok(Came::Done)
    }

    /// Starts a container if all that it needs can be had.
    async fn start(
        &self,
        start: &Start,
        pod: &Pod,
        teller: &Teller<'_>,
        client: &Client,
        now: Timestamp,
    ) -> Result<Came> {
        let (uid, name) = (uid_of(pod), &start.name);
        let outcome = self.runtime.start(pod, start, client, now).await?;
        if has_volumes(&outcome) && teller.looks_for_secrets() {
            teller.without_secrets(&self.runtime.missing_secrets(pod, client).await);
        }
        if pulled_by(&outcome).is_some() && !self.runtime.takes_time() {
            teller.pulling(name); // which was over before anybody could be told
        }
        if is_made(&outcome) {
            self.allocations.change(pod, |sizes| sizes.started(name, start.attempt));
        }
        match outcome {
            Outcome::Started { pulled } => {
                teller.started(name, pulled);
                self.memory.started(uid, name);
                Ok(Came::Made)
            }
            Outcome::Pulling => {
                teller.pulling(name);
                Ok(Came::Done)
            }
            Outcome::Waiting => Ok(Came::Waits),
            Outcome::NotPulled(why) => {
                teller.pulling(name);
                teller.not_started(name, &why, None);
                if let Some(whose) = whose(pod, name) {
                    self.memory.not_started(whose, why, now);
                }
                Ok(Came::Done)
            }
            Outcome::Failed { why, pulled } => {
                teller.not_started(name, &why, pulled);
                let made = why.is_failed_run();
                match whose(pod, name) {
                    // What was made and ended is seen, and waits as what ends by itself.
                    Some(whose) if made => self.memory.failed_run(whose, why, now),
                    Some(whose) => self.memory.not_started(whose, why, now),
                    None => {}
                }
                Ok(if made { Came::Made } else { Came::Done })
            }
        }
    }

    /// The addresses that the node gives a Pod, if it takes it: its own if the Pod uses the node's
    /// network.
    pub(super) async fn admit(
        &self,
        pod: &Pod,
        machine: &Machine,
        client: &Client,
    ) -> Result<Admission> {
        if let Some(rejection) = self.runtime.refuses(pod) {
            return Ok(Admission::Refused(rejection));
        }
        let known = pod.status.as_ref().and_then(|status| status.pod_ips.as_ref());
        if let Some(known) = known.filter(|known| !known.is_empty()) {
            let addresses = known.iter().map(|address| address.ip.clone());
            return Ok(Admission::Taken(addresses.collect()));
        }
        let Admitted { address, victims } = match self.addresses.admit(pod, machine, client).await?
        {
            Ok(admitted) => admitted,
            Err(rejection) => return Ok(Admission::Refused(rejection)),
        };
        self.preempt(pod, &victims);
        if self.memory.awaits(uid_of(pod), |uid| self.addresses.holds(&machine.name, uid)) {
            return Ok(Admission::Waits);
        }
        Ok(Admission::Taken(match machine.network {
            _ if on_host(pod) => machine.addresses.clone(),
            Network::Simulated { families, .. } => families.of(address),
            Network::OfRuntime => Vec::new(),
        }))
    }

    /// Lets Pods go for another.
    fn preempt(&self, pod: &Pod, victims: &[Pod]) {
        if victims.is_empty() {
            return;
        }
        let uids: Vec<String> = victims.iter().map(|victim| uid_of(victim).to_owned()).collect();
        self.memory.preempt(uid_of(pod), &uids);
        self.allocations.wake(victims.iter().map(ObjectKey::of));
    }

    /// Stops what runs of a Pod, and says when it has ended. In which order, the runtime sees to.
    async fn end(
        &self,
        pod: &Pod,
        end: &End,
        teller: &Teller<'_>,
        ctx: &Context<Pod>,
    ) -> Result<Next> {
        let now = clock::now();
        if *end == End::DeadlineExceeded && self.memory.overdue(uid_of(pod)) {
            teller.overdue();
        }
        let observed = self.stop(pod, teller, now).await?;
        report(pod, status::ending(pod, &observed, end, now), ctx);
        let until = observed.until().filter(|_| observed.any_runs());
        // What is written when all have ended wakes this again.
        Ok(until.map_or(Next::Settled, |until| Next::After(time_to(until, now))))
    }

    pub(super) async fn stop(
        &self,
        pod: &Pod,
        teller: &Teller<'_>,
        now: Timestamp,
    ) -> Result<Observed> {
        let observed = self.observe(pod, now).await?;
        if !observed.any_runs() {
            return Ok(observed);
        }
        let named = |running: &dyn Fn(&State) -> bool| -> Vec<String> {
            let all = observed.now.containers.iter().filter(|container| running(&container.state));
            all.map(|container| container.name.clone()).collect()
        };
        teller.stopping(&named(&|state| matches!(state, State::Running { stopping: false, .. })));
        // Less time may be left than before.
        let running = named(&|state| matches!(state, State::Running { .. }));
        self.runtime.stop(pod, &running, now).await?;
        self.observe(pod, now).await
    }

    /// Gives back what a Pod that has ended had of its machine.
    async fn clear(&self, pod: &Pod) -> Result<Next> {
        let done = self.runtime.wind_down(pod).await?;
        Ok(if done { Next::Settled } else { Next::After(STILL_RUNS) })
    }

    /// Ends a Pod that is being deleted, then removes it for good. Whoever keeps it from that is told
    /// that it has ended, even if it never began.
    async fn delete(&self, pod: &Pod, machine: &Machine, ctx: &Context<Pod>) -> Result<Next> {
        if !status::has_ended(pod) {
            let teller = Teller::new(pod, machine, ctx.recorder());
            return self.end(pod, &End::Told, &teller, ctx).await;
        }
        if let Next::After(rest) = self.clear(pod).await? {
            return Ok(Next::After(rest));
        }
        match removal(pod, clock::now()) {
            Removal::Now => {}
            Removal::After(rest) => return Ok(Next::After(rest)),
            Removal::LeftToOthers => return Ok(Next::Settled),
        }
        let preconditions = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match ctx.delete_with(pod, &params).await {
            Err(error) if error.is_conflict() => Ok(Next::Settled), // another Pod of that name
            deleted => deleted.map(|_| Next::Settled),
        }
    }
}

impl<R: ContainerRuntime> Reconciler<Pod> for PodWorker<R> {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
        let Some(machine) = bound_to(&pod).and_then(|node| self.machines.get(node)) else {
            return Ok(Next::Settled);
        };
        if let Some(agent) = &machine.agent {
            ctx.act_as(agent)?;
        }
        if pod.metadata.deletion_timestamp.is_some() {
            self.delete(&pod, machine, &ctx).await
        } else if status::has_ended(&pod) {
            self.clear(&pod).await
        } else {
            self.run(&pod, machine, &ctx).await
        }
    }
}

/// A Pod that leaves its containers no time to end.
fn at_once(pod: &Pod) -> Pod {
    let mut pod = pod.clone();
    if let Some(spec) = &mut pod.spec {
        spec.termination_grace_period_seconds = Some(0);
    }
    pod
}

/// Whether a container came of a start.
fn is_made(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Started { .. } => true,
        Outcome::Failed { why, .. } => why.is_failed_run(),
        Outcome::Pulling | Outcome::Waiting | Outcome::NotPulled(_) => false,
    }
}

/// Whether the volumes of the Pod are set up, as far as a start has shown.
fn has_volumes(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Waiting | Outcome::Failed { why: StartError::Volumes(_), .. })
}

/// How the image was had for a start, unless it was there.
fn pulled_by(outcome: &Outcome) -> Option<Pulled> {
    match outcome {
        Outcome::Started { pulled } | Outcome::Failed { pulled, .. } => *pulled,
        Outcome::Pulling | Outcome::Waiting | Outcome::NotPulled(_) => None,
    }
}

/// The container of this name, to remember something of.
fn whose<'a>(pod: &'a Pod, name: &'a str) -> Option<Whose<'a>> {
    Some(Whose { uid: uid_of(pod), spec: pod.spec.as_ref()?, name })
}

/// What a Pod finds itself in, that was given these addresses unless its sandbox has others. Without a
/// sandbox it has none yet but those of its machine.
pub(super) fn surroundings(
    pod: &Pod,
    machine: &Machine,
    observed: &Observed,
    given: Vec<String>,
) -> Surroundings {
    let pod_addresses = match &observed.now.sandbox {
        _ if on_host(pod) => given,
        Sandbox::Absent => Vec::new(),
        Sandbox::Ready(own) if !own.is_empty() => own.clone(),
        Sandbox::Ready(_) => given,
    };
    Surroundings { pod_addresses, host_addresses: machine.addresses.clone() }
}

/// Reports how a Pod is, if that is news: what a Pod's own report wakes its worker for is nearly
/// always nothing, which is found out here for less than by encoding both.
fn report(pod: &Pod, status: PodStatus, ctx: &Context<Pod>) {
    if pod.status.as_ref() != Some(&status) {
        ctx.status(status);
    }
}

/// Whether a Pod uses the network of its machine.
fn on_host(pod: &Pod) -> bool {
    pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true)
}

fn uid_of(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

fn time_to(moment: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(moment.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
