//! What happens to a Deployment's ReplicaSets next.
//!
//! Objects in, actions out. One step at a time: a ReplicaSet that is created or scaled changes,
//! its change wakes the Deployment, and the next step is planned from what then is.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};

use super::revision::{self, DESIRED};
use super::rolling::{self, Scale, desired, spec_replicas};
use super::{proportion, template};

/// A Deployment and its ReplicaSets.
#[derive(Debug)]
pub(super) struct Rollout {
    /// The Deployment.
    pub(super) deployment: Arc<Deployment>,
    /// The ReplicaSet of the current template, if there is one.
    pub(super) new: Option<Arc<ReplicaSet>>,
    /// All others, oldest first.
    pub(super) old: Vec<Arc<ReplicaSet>>,
}

/// One change to a ReplicaSet.
#[derive(Debug)]
pub(super) enum Action {
    /// Create the ReplicaSet of the current template.
    Create(Box<ReplicaSet>),
    /// Change a ReplicaSet.
    Change(Change),
    /// Delete a ReplicaSet that is only history.
    Delete(Arc<ReplicaSet>),
}

/// What to change in a ReplicaSet.
#[derive(Debug)]
pub(super) struct Change {
    /// Which one.
    pub(super) set: Arc<ReplicaSet>,
    /// Its new size, if that changes.
    pub(super) replicas: Option<i32>,
    /// Its new minReadySeconds, if that changes.
    pub(super) min_ready_seconds: Option<i32>,
    /// Annotations to set.
    pub(super) annotations: BTreeMap<String, String>,
}

impl Rollout {
    /// Sorts ReplicaSets into the new one and the old ones.
    pub(super) fn new(deployment: Arc<Deployment>, sets: Vec<Arc<ReplicaSet>>) -> Self {
        let new = template::find_new(&deployment, &sets);
        let is_new = |set: &Arc<ReplicaSet>| new.as_ref().is_some_and(|new| Arc::ptr_eq(new, set));
        let mut old: Vec<_> = sets.into_iter().filter(|set| !is_new(set)).collect();
        old.sort_by_key(|set| template::age(set));
        Self { deployment, new, old }
    }

    /// Every ReplicaSet, the new one first.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.new.iter().chain(&self.old)
    }

    /// The ReplicaSets that ask for Pods.
    fn active(&self) -> Vec<Arc<ReplicaSet>> {
        self.all().filter(|set| spec_replicas(set) > 0).cloned().collect()
    }

    pub(super) fn paused(&self) -> bool {
        self.deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true)
    }

    /// What to do next. `complete` says that the rollout has nothing left to do.
    pub(super) fn actions(&self, complete: bool) -> Vec<Action> {
        if self.deployment.metadata.deletion_timestamp.is_some() {
            return Vec::new();
        }
        let steps = self.steps();
        let mut actions = self.describe_new(&steps);
        actions.extend(steps);
        if complete || self.paused() {
            let idle = revision::to_forget(&self.deployment, &self.old);
            actions.extend(idle.into_iter().map(Action::Delete));
        }
        actions
    }

    fn steps(&self) -> Vec<Action> {
        if self.paused() || self.is_scaling() {
            self.scale()
        } else if rolling::is_recreate(&self.deployment) {
            self.recreate()
        } else {
            self.roll()
        }
    }

    /// Brings the new ReplicaSet's revision, inherited annotations and minReadySeconds up to
    /// date, unless a step changes them anyway.
    fn describe_new(&self, steps: &[Action]) -> Vec<Action> {
        let created = steps.iter().any(|step| matches!(step, Action::Create(_)));
        let Some(set) = self.new.as_ref().filter(|_| !created && !self.paused()) else {
            return Vec::new();
        };
        let mut annotations = revision::new_set_annotations(&self.deployment, Some(set), &self.old);
        annotations.retain(|name, value| has_annotation(set, name) != Some(value));
        let spec = self.deployment.spec.as_ref();
        let wanted = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        let current = set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        let min_ready_seconds = (wanted != current).then_some(wanted);
        if annotations.is_empty() && min_ready_seconds.is_none() {
            return Vec::new();
        }
        let set = Arc::clone(set);
        vec![Action::Change(Change { set, replicas: None, min_ready_seconds, annotations })]
    }

    /// Whether the Deployment's size changed since its ReplicaSets were last scaled.
    fn is_scaling(&self) -> bool {
        let desired = desired(&self.deployment);
        self.active().iter().any(|set| revision::number(set, DESIRED).is_some_and(|n| n != desired))
    }

    /// Spreads the Deployment's size over its ReplicaSets without rolling any further.
    fn scale(&self) -> Vec<Action> {
        let active = self.active();
        let latest = self.new.as_ref().or(self.old.last());
        let only = match active.as_slice() {
            [] => latest,
            [one] => Some(one),
            _ => None,
        };
        if let Some(set) = only {
            let replicas = desired(&self.deployment);
            return self.changes(vec![Scale { set: Arc::clone(set), replicas }]);
        }
        if self.new.as_ref().is_some_and(|new| self.is_saturated(new)) {
            let old = self.old.iter().filter(|set| spec_replicas(set) > 0);
            return self
                .changes(old.map(|set| Scale { set: Arc::clone(set), replicas: 0 }).collect());
        }
        if rolling::is_recreate(&self.deployment) {
            return if self.paused() { Vec::new() } else { self.recreate() };
        }
        self.changes(proportion::proportional(&self.deployment, &active))
    }

    /// Whether the new ReplicaSet alone is all that the Deployment wants.
    fn is_saturated(&self, new: &ReplicaSet) -> bool {
        let desired = desired(&self.deployment);
        revision::number(new, DESIRED) == Some(desired)
            && spec_replicas(new) == desired
            && rolling::available(new) == desired
    }

    /// All old Pods go, then all new ones come.
    fn recreate(&self) -> Vec<Action> {
        let old = self.old.iter().filter(|set| spec_replicas(set) > 0);
        let stop: Vec<_> = old.map(|set| Scale { set: Arc::clone(set), replicas: 0 }).collect();
        if !stop.is_empty() {
            return self.changes(stop);
        }
        if self.old.iter().any(|set| has_pods(set)) {
            return Vec::new();
        }
        self.grow_new()
    }

    /// Old Pods go and new ones come, within the limits of the rolling update.
    fn roll(&self) -> Vec<Action> {
        let grow = self.grow_new();
        let Some(new) = self.new.as_ref().filter(|_| grow.is_empty()) else {
            return grow;
        };
        self.changes(rolling::scale_down_old(&self.deployment, new, &self.old))
    }

    /// Creates the new ReplicaSet or gives it the size it may have by now.
    fn grow_new(&self) -> Vec<Action> {
        let old_total = rolling::total(&self.old);
        let Some(new) = &self.new else {
            let replicas = rolling::new_replicas(&self.deployment, 0, old_total);
            let mut annotations = revision::new_set_annotations(&self.deployment, None, &self.old);
            annotations.extend(revision::size_annotations(&self.deployment));
            let set = template::new_set(&self.deployment, replicas, annotations);
            return vec![Action::Create(Box::new(set))];
        };
        let replicas = rolling::new_replicas(&self.deployment, spec_replicas(new), old_total);
        self.changes(vec![Scale { set: Arc::clone(new), replicas }])
    }

    /// The scales that change anything. Whoever is scaled remembers for which size it was.
    fn changes(&self, scales: Vec<Scale>) -> Vec<Action> {
        let wanted = revision::size_annotations(&self.deployment);
        let change = |Scale { set, replicas }: Scale| {
            let replicas = (spec_replicas(&set) != replicas).then_some(replicas);
            let mut annotations = wanted.clone();
            annotations.retain(|name, value| has_annotation(&set, name) != Some(value));
            let changed = replicas.is_some() || !annotations.is_empty();
            let change = Change { set, replicas, min_ready_seconds: None, annotations };
            changed.then_some(Action::Change(change))
        };
        scales.into_iter().filter_map(change).collect()
    }
}

fn has_annotation<'a>(set: &'a ReplicaSet, name: &str) -> Option<&'a String> {
    set.metadata.annotations.as_ref()?.get(name)
}

/// Whether a ReplicaSet still has Pods, or does not know yet that it should have none.
fn has_pods(set: &ReplicaSet) -> bool {
    let Some(status) = set.status.as_ref() else {
        return false;
    };
    status.replicas > 0
        || status.terminating_replicas.unwrap_or(0) > 0
        || status.observed_generation < set.metadata.generation
}
