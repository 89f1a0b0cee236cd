//! The Pods that have no node yet.
//!
//! A Pod is in one of three places. In the active queue it is the next to be tried, or one of the next.
//! Who fits nowhere is unschedulable, and stays so until an event happens of which those that refused it
//! say that it may help, or for five minutes. Then it is active again, or backs off first: a second
//! after the first try, and longer each time. Who backs off is tried when nobody is active, unless
//! something went wrong with it. A Pod that may not be queued at all is among the unschedulable, too.

mod heap;
mod in_flight;
mod pending;
#[cfg(test)]
mod tests;
mod unschedulable;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use steersman::ObjectKey;
use tokio::time::Instant;

use crate::framework::{
    Action, Before, ClusterEvent, FitError, Hint, Object, Plugin, PodInfo, Profile, QueuedPod,
    Resource,
};
use crate::metrics::SchedulerMetrics;
use heap::Heap;
use in_flight::{InFlight, Meanwhile};
pub(crate) use pending::{Backoff, PATIENCE, Pending};
use unschedulable::{Refusers, Unschedulable};

/// The profiles by scheduler name.
pub(crate) type Profiles = HashMap<Arc<str>, Arc<Profile>>;

/// Gives the Pod of a key as it is now.
pub(crate) type PodReader = Box<dyn Fn(&ObjectKey) -> Option<Arc<Pod>> + Send>;

/// The Pods that have no node yet.
pub(crate) struct SchedulingQueue {
    profiles: Arc<Profiles>,
    /// Orders the queue.
    sort: Arc<dyn Plugin>,
    read: PodReader,
    backoff: Backoff,
    /// From when on seconds are counted.
    since: Instant,
    active: Heap,
    backing_off: Heap,
    /// Those that back off because something went wrong.
    failed: Heap,
    unschedulable: Unschedulable,
    /// When some of them may have been there for too long; never too late.
    flush_at: Option<Instant>,
    in_flight: InFlight,
    /// Numbers Pods in the order in which they come.
    number: u64,
    /// Where it tells who came, if somebody wants to know.
    metrics: Option<SchedulerMetrics>,
}

/// Why a Pod comes into a queue.
#[derive(Clone, Copy)]
enum Why<'a> {
    /// Something happened.
    Event(&'a ClusterEvent),
    /// Something that Kubernetes has a name for.
    Named(&'static str),
}

impl Why<'_> {
    const NEW: Self = Self::Named("UnschedulablePodAdd");
    const FAILED: Self = Self::Named("ScheduleAttemptFailure");
    const BACKED_OFF: Self = Self::Named("BackoffComplete");
    const NOBODY_ELSE: Self = Self::Named("PopFromBackoffQ");
    const WAITED: Self = Self::Named("UnschedulableTimeout");
    const FORCED: Self = Self::Named("ForceActivate");
}

/// When a Pod is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum When {
    /// When something happens.
    Later,
    AfterBackoff,
    AtOnce,
}

/// How many Pods are where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Depth {
    pub(crate) active: usize,
    pub(crate) backoff: usize,
    pub(crate) unschedulable: usize,
    /// Those that may not be queued; they are counted nowhere else.
    pub(crate) gated: usize,
}

impl SchedulingQueue {
    pub(crate) fn new(
        profiles: Arc<Profiles>,
        sort: Arc<dyn Plugin>,
        backoff: Backoff,
        read: PodReader,
    ) -> Self {
        Self {
            profiles,
            sort,
            read,
            backoff,
            since: Instant::now(),
            active: Heap::default(),
            backing_off: Heap::default(),
            failed: Heap::default(),
            unschedulable: Unschedulable::default(),
            flush_at: None,
            in_flight: InFlight::default(),
            number: 0,
            metrics: None,
        }
    }

    /// Tells from now on who comes.
    pub(crate) fn measure(&mut self, metrics: SchedulerMetrics) {
        self.metrics = Some(metrics);
    }

    pub(crate) fn depth(&self) -> Depth {
        let gated = self.unschedulable.iter().filter(|it| it.gated_by.is_some()).count();
        Depth {
            active: self.active.len(),
            backoff: self.backing_off.len() + self.failed.len(),
            unschedulable: self.unschedulable.len() - gated,
            gated,
        }
    }

    /// How many Pods each plug-in refused, by its name and that of the profile.
    pub(crate) fn refused(&self) -> BTreeMap<[String; 2], usize> {
        let heaps = [&self.active, &self.backing_off, &self.failed];
        let queued = heaps.into_iter().flat_map(Heap::iter);
        let mut refused = BTreeMap::new();
        for pending in queued.chain(self.unschedulable.iter()) {
            for plugin in &pending.plugins {
                let profile = pending.info.scheduler_name.to_string();
                *refused.entry([(*plugin).to_owned(), profile]).or_default() += 1;
            }
        }
        refused
    }

    /// What happened while Pods are being decided upon, and how many of those there are.
    pub(crate) fn in_flight(&self) -> BTreeMap<String, usize> {
        self.in_flight.counts()
    }

    fn came(&self, queue: &str, why: Why<'_>) {
        if let Some(metrics) = &self.metrics {
            match why {
                Why::Event(event) => metrics.came(queue, &event.name().to_string()),
                Why::Named(name) => metrics.came(queue, name),
            }
        }
    }

    /// Whether an event may matter to somebody.
    pub(crate) fn listens(&self) -> bool {
        !self.unschedulable.is_empty() || !self.in_flight.is_empty()
    }

    /// Takes in a Pod that is new or has changed.
    pub(crate) fn set(&mut self, info: &Arc<PodInfo>, pod: &Pod) {
        let uid = &*info.uid;
        if let Some(old) = self.in_flight.update(info) {
            // What changed counts once it is known whether the Pod fits as it was.
            for action in changes(&old, info) {
                self.in_flight.note(&own_update(action, &old, info));
            }
            return;
        }
        for heap in [&mut self.active, &mut self.backing_off, &mut self.failed] {
            if let Some(pending) = heap.get_mut(uid) {
                pending.queued.info = Arc::clone(info);
                return;
            }
        }
        if let Some(old) = self.unschedulable.update(info) {
            for action in changes(&old, info) {
                let event = own_update(action, &old, info);
                if self.reconsider(&info.uid, &event) {
                    return;
                }
            }
            return;
        }
        self.number += 1;
        let queued = QueuedPod {
            info: Arc::clone(info),
            timestamp: Instant::now(),
            number: self.number,
            attempts: 0,
        };
        self.activate(Pending::new(queued), Some(pod), Why::NEW);
    }

    /// Forgets a Pod that is gone or has a node.
    pub(crate) fn remove(&mut self, uid: &str) {
        let sort = Arc::clone(&self.sort);
        self.active.remove(uid, &|a, b| in_order(&*sort, a, b));
        self.remove_from_backoff(uid);
        self.unschedulable.remove(uid);
    }

    fn remove_from_backoff(&mut self, uid: &str) -> Option<Pending> {
        let order = self.backoff_order();
        let earlier = |a: &Pending, b: &Pending| order.is_earlier(a, b);
        let removed = self.backing_off.remove(uid, &earlier);
        removed.or_else(|| self.failed.remove(uid, &earlier))
    }

    fn backoff_order(&self) -> BackoffOrder {
        let Self { sort, backoff, since, .. } = self;
        BackoffOrder { sort: Arc::clone(sort), backoff: *backoff, since: *since }
    }

    /// The next Pod to be tried.
    pub(crate) fn pop(&mut self) -> Option<Pending> {
        self.flush();
        let sort = Arc::clone(&self.sort);
        let active = self.active.pop(&|a, b| in_order(&*sort, a, b));
        let mut pending = match active {
            Some(pending) => pending,
            None => {
                let order = self.backoff_order();
                let popped = self.backing_off.pop(&|a, b| order.is_earlier(a, b))?;
                self.came("active", Why::NOBODY_ELSE);
                popped
            }
        };
        pending.first_tried.get_or_insert_with(Instant::now);
        pending.queued.attempts = pending.queued.attempts.saturating_add(1);
        self.in_flight.begin(Arc::clone(&pending.info));
        Some(pending)
    }

    /// When the next Pod can be tried at the latest, if nobody comes before that.
    pub(crate) fn due(&self) -> Option<Instant> {
        let failed = self.failed.first().map(|pending| pending.backs_off_until(self.backoff));
        failed.into_iter().chain(self.flush_at).min()
    }

    /// The decision about a Pod is done, and it has a node.
    pub(crate) fn done(&mut self, uid: &str) {
        self.in_flight.done(uid);
    }

    /// A Pod that was done will be put back: until then it is not new, whatever changes of it.
    pub(crate) fn resume(&mut self, info: &Arc<PodInfo>) {
        self.in_flight.resume(info);
    }

    /// Takes back a Pod that fits nowhere, or with which something went wrong.
    pub(crate) fn put_back(&mut self, pending: Pending, error: Option<&FitError>) {
        self.put_back_for(pending, error, PATIENCE);
    }

    /// The same with how long it stays unschedulable if nothing happens.
    pub(crate) fn put_back_for(
        &mut self,
        mut pending: Pending,
        error: Option<&FitError>,
        patience: Duration,
    ) {
        pending.patience = patience;
        pending.was_flushed = false;
        pending.queued.timestamp = Instant::now();
        pending.plugins = error.map(|error| error.plugins.clone()).unwrap_or_default();
        pending.waits_for = error.map(|error| error.pending.clone()).unwrap_or_default();
        match pending.has_failed() {
            true => pending.errors = pending.errors.saturating_add(1),
            false => {
                pending.refused = pending.refused.saturating_add(1);
                pending.errors = 0;
            }
        }
        let is_it = |pod: &Arc<Pod>| {
            pod.metadata.uid.as_deref() == Some(&*pending.info.uid) && !has_node(pod)
        };
        let pod = (self.read)(&pending.info.key).filter(is_it);
        let Some(pod) = pod else {
            return self.in_flight.done(&pending.info.uid); // it is gone, or somebody was faster
        };
        pending.queued.info = Arc::new(PodInfo::of(&pod));
        let when = self.helped_meanwhile(&pending, &pod);
        self.in_flight.done(&pending.info.uid);
        self.requeue(pending, when, Some(&pod), Why::FAILED);
    }

    /// When a Pod is to be tried again by what happened while it was decided upon.
    fn helped_meanwhile(&self, pending: &Pending, pod: &Arc<Pod>) -> When {
        let events = match self.in_flight.meanwhile(&pending.info.uid) {
            _ if pending.has_failed() => return When::AfterBackoff,
            Meanwhile::TooMany => return When::AfterBackoff,
            Meanwhile::Events(events) => events,
        };
        let soonest = match pending.waits_for.is_empty() {
            true => When::AfterBackoff,
            false => When::AtOnce,
        };
        let mut when = When::Later;
        for event in events {
            when = when.max(self.worth(pending, event, || Some(Arc::clone(pod))));
            if when == soonest {
                break;
            }
        }
        when
    }

    /// A Pod may be queued again, as far as is known.
    pub(crate) fn ungate(&mut self, uid: &str) {
        self.unschedulable.ungate(uid);
    }

    /// Tries a Pod again at once that is unschedulable or backs off.
    pub(crate) fn retry(&mut self, uid: &str) {
        if let Some(pending) = self.unschedulable.remove(uid) {
            self.activate(pending, None, Why::FORCED);
        } else if let Some(pending) = self.remove_from_backoff(uid) {
            self.came("active", Why::FORCED);
            let sort = Arc::clone(&self.sort);
            self.active.push(pending, &|a, b| in_order(&*sort, a, b));
        }
    }

    /// Something happened. Whether somebody is to be tried now.
    pub(crate) fn happened(&mut self, event: &ClusterEvent) -> bool {
        self.happened_for(event, i32::MAX)
    }

    /// The same if it can only help Pods of this priority at most.
    pub(crate) fn happened_for(&mut self, event: &ClusterEvent, priority_max: i32) -> bool {
        self.in_flight.note(event);
        if self.unschedulable.is_empty() {
            return false;
        }
        let concerned = self.unschedulable.refused_by(|refusers| self.concerns(refusers, event));
        let mut any = false;
        for uid in concerned {
            let pending = self.unschedulable.get(&uid);
            if pending.is_some_and(|it| it.info.priority <= priority_max) {
                any |= self.reconsider(&uid, event);
            }
        }
        any
    }

    /// Whether those are interested in an event who refused a Pod, or who keeps it from being queued.
    fn concerns(&self, refusers: &Refusers, event: &ClusterEvent) -> bool {
        let Refusers { profile, plugins, waits_for, gated_by } = refusers;
        let Some(profile) = self.profiles.get(profile) else { return true };
        let wants = |name: &&'static str| {
            // Of who is no plug-in it is not known what helps.
            profile.plugin(name).is_none_or(|plugin| event.concerns(plugin.interests()))
        };
        let mut all = plugins.iter().chain(waits_for);
        match gated_by {
            Some(gate) => wants(gate),
            None => (plugins.is_empty() && waits_for.is_empty()) || all.any(wants),
        }
    }

    /// Moves an unschedulable Pod if an event may help it. Whether it did.
    fn reconsider(&mut self, uid: &Arc<str>, event: &ClusterEvent) -> bool {
        let Some(pending) = self.unschedulable.get(uid) else { return false };
        let when = self.worth(pending, event, || (self.read)(&pending.info.key));
        if when == When::Later {
            return false;
        }
        let Some(pending) = self.unschedulable.remove(uid) else { return false };
        self.requeue(pending, when, None, Why::Event(event))
    }

    /// Whether an event may help a Pod, which is read only if somebody has to look at it.
    fn worth(
        &self,
        pending: &Pending,
        event: &ClusterEvent,
        read: impl Fn() -> Option<Arc<Pod>>,
    ) -> When {
        let Some(profile) = self.profiles.get(&pending.info.scheduler_name) else {
            return When::AfterBackoff;
        };
        if pending.has_failed() {
            return When::AfterBackoff;
        }
        let mut when = When::Later;
        let mut pod = None;
        for name in pending.waits_for.iter().chain(&pending.plugins) {
            let Some(plugin) = profile.plugin(name) else {
                when = When::AfterBackoff;
                continue;
            };
            if !event.concerns(plugin.interests()) {
                continue;
            }
            let pod = pod.get_or_insert_with(&read);
            let Some(pod) = pod else { return When::Later };
            if self.hint(&**plugin, pod, event) == Hint::Skip {
                continue;
            }
            if pending.waits_for.contains(name) {
                return When::AtOnce;
            }
            when = When::AfterBackoff;
        }
        when
    }

    /// Whether an event helps a Pod, as a plug-in says.
    fn hint(&self, plugin: &dyn Plugin, pod: &Pod, event: &ClusterEvent) -> Hint {
        let Some(metrics) = &self.metrics else { return plugin.hint(pod, event) };
        let began = Instant::now();
        let hint = plugin.hint(pod, event);
        metrics.plugins.hinted(plugin.name(), event.name(), hint.name(), began.elapsed());
        hint
    }

    /// Whether the Pod is not unschedulable any more.
    fn requeue(&mut self, pending: Pending, when: When, pod: Option<&Pod>, why: Why<'_>) -> bool {
        let backs_off = pending.backs_off_until(self.backoff) > Instant::now();
        match when {
            When::Later => {
                self.lay_aside(pending, why);
                false
            }
            When::AfterBackoff if backs_off => self.back_off(pending, pod, why),
            _ => self.activate(pending, pod, why),
        }
    }

    fn back_off(&mut self, pending: Pending, pod: Option<&Pod>, why: Why<'_>) -> bool {
        let Some(pending) = self.admitted(pending, pod, why) else { return false };
        self.came("backoff", why);
        let order = self.backoff_order();
        let heap = match pending.has_failed() {
            true => &mut self.failed,
            false => &mut self.backing_off,
        };
        heap.push(pending, &|a, b| order.is_earlier(a, b));
        true
    }

    fn activate(&mut self, pending: Pending, pod: Option<&Pod>, why: Why<'_>) -> bool {
        let Some(pending) = self.admitted(pending, pod, why) else { return false };
        self.came("active", why);
        let sort = Arc::clone(&self.sort);
        self.active.push(pending, &|a, b| in_order(&*sort, a, b));
        true
    }

    /// The Pod, if it may be queued; otherwise it is laid aside.
    fn admitted(
        &mut self,
        mut pending: Pending,
        pod: Option<&Pod>,
        why: Why<'_>,
    ) -> Option<Pending> {
        let profile = Arc::clone(self.profiles.get(&pending.info.scheduler_name)?);
        let read = if pod.is_none() { (self.read)(&pending.info.key) } else { None };
        let pod = pod.or(read.as_deref())?;
        match profile.pre_enqueue(pod) {
            Ok(()) => {
                pending.gated_by = None;
                Some(pending)
            }
            Err(plugin) => {
                pending.plugins.insert(plugin);
                pending.gated_by = Some(plugin);
                pending.was_flushed = false;
                self.lay_aside(pending, why);
                None
            }
        }
    }

    fn lay_aside(&mut self, pending: Pending, why: Why<'_>) {
        self.came("unschedulable", why);
        self.flush_at = self.flush_at.into_iter().chain(pending.stays_until()).min();
        self.unschedulable.insert(pending);
    }

    /// Lets those try again that have backed off or been unschedulable for long enough.
    fn flush(&mut self) {
        let now = Instant::now();
        let (sort, order) = (Arc::clone(&self.sort), self.backoff_order());
        for of_failed in [false, true] {
            loop {
                let heap = if of_failed { &mut self.failed } else { &mut self.backing_off };
                let first = heap.first();
                if first.is_none_or(|first| first.backs_off_until(order.backoff) > now) {
                    break;
                }
                let Some(pending) = heap.pop(&|a, b| order.is_earlier(a, b)) else { break };
                self.active.push(pending, &|a, b| in_order(&*sort, a, b));
                self.came("active", Why::BACKED_OFF);
            }
        }
        if self.flush_at.is_none_or(|at| at > now) {
            return;
        }
        self.flush_at = None;
        let due = |pending: &&Pending| pending.stays_until().is_some_and(|until| until <= now);
        let uids = self.unschedulable.iter().filter(due).map(|it| Arc::clone(&it.info.uid));
        for uid in uids.collect::<Vec<_>>() {
            if let Some(mut pending) = self.unschedulable.remove(&uid) {
                pending.queued.timestamp = now;
                pending.was_flushed = true;
                self.activate(pending, None, Why::WAITED);
            }
        }
        let next = self.unschedulable.iter().filter_map(Pending::stays_until).min();
        self.flush_at = self.flush_at.into_iter().chain(next).min();
    }
}

/// Who is tried first.
fn in_order(sort: &dyn Plugin, a: &Pending, b: &Pending) -> bool {
    let order = sort.compare(&a.queued, &b.queued).then(a.number.cmp(&b.number));
    order == Ordering::Less
}

/// In which order Pods that back off are tried.
struct BackoffOrder {
    sort: Arc<dyn Plugin>,
    backoff: Backoff,
    since: Instant,
}

impl BackoffOrder {
    /// Who has backed off first. Within a second nobody has: then who matters more comes first.
    fn is_earlier(&self, a: &Pending, b: &Pending) -> bool {
        let second = |pending: &Pending| {
            let until = pending.backs_off_until(self.backoff);
            until.saturating_duration_since(self.since).as_secs()
        };
        match second(a).cmp(&second(b)) {
            Ordering::Equal => in_order(&*self.sort, a, b),
            order => order == Ordering::Less,
        }
    }
}

fn has_node(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.is_some_and(|node| !node.is_empty())
}

fn own_update(action: Action, old: &Arc<PodInfo>, new: &Arc<PodInfo>) -> ClusterEvent {
    let object = Object::Pod(Before { old: Some(Arc::clone(old)), new: Some(Arc::clone(new)) });
    ClusterEvent { resource: Resource::UnscheduledPod, action, object }
}

/// What of a Pod changed that may matter.
pub(crate) fn changes(old: &PodInfo, new: &PodInfo) -> Vec<Action> {
    let mut asked = old.requests.asked.iter();
    let is_less = asked.any(|(name, amount)| new.requests.asked.get(name) < amount);
    let found = [
        (old.labels != new.labels, Action::POD_LABEL),
        (is_less, Action::POD_SCALE_DOWN),
        (old.gates > 0 && new.gates == 0, Action::POD_GATES_ELIMINATED),
        (old.tolerations != new.tolerations, Action::POD_TOLERATION),
        (old.generated_claims != new.generated_claims, Action::POD_GENERATED_CLAIM),
    ];
    let mut actions: Vec<Action> =
        found.into_iter().filter(|(is_so, _)| *is_so).map(|(_, action)| action).collect();
    if actions.is_empty() {
        actions.push(Action::OTHER_UPDATE);
    }
    actions
}
