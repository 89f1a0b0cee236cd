//! What happens to a StatefulSet's Pods next.
//!
//! Objects in, actions out, in the order of Kubernetes: Pods that should be there, claims of Pods
//! that should not, those Pods themselves, and only then an update. Unless Pods are managed in
//! parallel, a Pod waits until all before it are available, and one step is taken at a time: it
//! changes a Pod, that wakes the set, and the next step is planned from what then is.

use std::collections::HashMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{RollingUpdateStatefulSetStrategy, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};

use super::claims::{self, Find};
use super::identity::{
    desired, identify, is_identified, is_wanted, ordinal_of, pod_name, revision_of, spec, start,
};
use crate::history::REVISION_LABEL;
use crate::intstr::{Round, scaled};
use crate::pod::{self, Availability};
use crate::pod_control;

/// One of the two templates that a set's Pods can have.
#[derive(Clone, Debug)]
pub(super) struct Revision {
    /// The name of its ControllerRevision.
    pub(super) name: String,
    /// The template.
    pub(super) template: PodTemplateSpec,
}

/// A StatefulSet and what is known of it.
pub(super) struct Rollout<'a> {
    pub(super) set: &'a StatefulSet,
    /// What Pods are that are not updated yet.
    pub(super) current: Revision,
    /// What Pods are to become.
    pub(super) update: Revision,
    /// The Pods that the set controls.
    pub(super) pods: &'a [Arc<Pod>],
    pub(super) claims: Find<'a>,
    pub(super) now: Timestamp,
}

/// One change.
#[derive(Debug)]
pub(super) enum Action {
    /// Create a Pod, and before it the claims it lacks.
    Create(Box<Pod>),
    /// Create the claims that a Pod lacks, and let them have the owners they should have.
    Provide(Arc<Pod>),
    /// Let claims that exist have the owners they should have.
    Reassign(Arc<Pod>),
    /// Give a Pod its labels and volumes, and its claims their owners.
    Repair(Arc<Pod>),
    /// Delete a Pod.
    Delete(Arc<Pod>),
}

/// What happens next.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// One after the other: an error in one of them ends all.
    pub(super) steps: Vec<Vec<Action>>,
    /// Pods to delete so that they are updated, when all steps are done.
    pub(super) update: Vec<Arc<Pod>>,
    /// Whether a Pod waits for a claim to be gone, of which nobody tells.
    pub(super) waits_for_claim: bool,
}

/// Whether the rest waits.
enum Then {
    GoOn,
    Wait,
}

impl Rollout<'_> {
    /// What to do next.
    pub(super) fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        if self.set.metadata.deletion_timestamp.is_some() {
            return plan;
        }
        let replicas = self.replicas();
        let condemned = self.condemned();
        let steps = [
            self.raise(&replicas, &mut plan),
            self.reassign(&condemned),
            self.remove(&replicas, &condemned),
        ];
        for (actions, then) in steps {
            plan.steps.push(actions);
            if matches!(then, Then::Wait) {
                return plan;
            }
        }
        plan.update = self.outdated(&replicas);
        plan
    }

    /// The Pods that should be there, by ordinal.
    fn replicas(&self) -> Vec<(i32, Option<Arc<Pod>>)> {
        let there = self.pods.iter().filter_map(|pod| Some((ordinal_of(self.set, pod)?, pod)));
        let there: HashMap<i32, &Arc<Pod>> = there.collect();
        let find = |ordinal| (ordinal, there.get(&ordinal).map(|pod| Arc::clone(pod)));
        let first = start(self.set);
        (first..first.saturating_add(desired(self.set))).map(find).collect()
    }

    /// The Pods that should not be there, the highest ordinal first.
    fn condemned(&self) -> Vec<Arc<Pod>> {
        let surplus = |pod: &&Arc<Pod>| {
            ordinal_of(self.set, pod).is_some_and(|ordinal| !is_wanted(self.set, ordinal))
        };
        let mut condemned: Vec<_> = self.pods.iter().filter(surplus).cloned().collect();
        condemned.sort_by_key(|pod| std::cmp::Reverse(ordinal_of(self.set, pod)));
        condemned
    }

    /// Whether Pods come and go one after the other.
    pub(super) fn is_ordered(&self) -> bool {
        spec(self.set).and_then(|spec| spec.pod_management_policy.as_deref()) != Some("Parallel")
    }

    /// Creates the Pods that lack, replaces those that have ended, and mends the others.
    fn raise(&self, replicas: &[(i32, Option<Arc<Pod>>)], plan: &mut Plan) -> (Vec<Action>, Then) {
        let mut actions = Vec::new();
        for (ordinal, pod) in replicas {
            let then = match pod {
                Some(pod) => self.keep(pod, *ordinal, &mut actions),
                None => self.create(*ordinal, &mut actions, plan),
            };
            if self.is_ordered() && matches!(then, Then::Wait) {
                return (actions, Then::Wait);
            }
        }
        (actions, Then::GoOn)
    }

    fn create(&self, ordinal: i32, actions: &mut Vec<Action>, plan: &mut Plan) -> Then {
        let pod = self.new_pod(ordinal);
        let needed = claims::claims_of(self.set, ordinal);
        let found =
            needed.iter().filter_map(|(_, claim)| (self.claims)(claim.metadata.name.as_deref()?));
        if found.into_iter().any(|claim| claims::blocks(&claim, self.set, &pod)) {
            plan.waits_for_claim = true;
        } else {
            actions.push(Action::Create(Box::new(pod)));
        }
        Then::Wait
    }

    /// What is to be done about a Pod that is there, and whether the next one has to wait for it.
    fn keep(&self, pod: &Arc<Pod>, ordinal: i32, actions: &mut Vec<Action>) -> Then {
        let leaves = pod.metadata.deletion_timestamp.is_some();
        if pod::is_terminal(pod) {
            if !leaves {
                actions.push(Action::Delete(Arc::clone(pod)));
            }
            return Then::Wait;
        }
        if pod::phase(pod) == "Pending" && self.needs_claims(pod, ordinal) {
            actions.push(Action::Provide(Arc::clone(pod)));
        }
        if self.is_ordered() && (leaves || !is_running_and_ready(pod) || !self.is_available(pod)) {
            return Then::Wait;
        }
        let sound = is_identified(pod) && claims::is_mounted(self.set, pod, ordinal);
        if !sound || self.has_misowned_claims(pod, ordinal) {
            actions.push(Action::Repair(Arc::clone(pod)));
        }
        Then::GoOn
    }

    /// Whether a claim of the Pod is not there, goes, or has not the owners that it should have.
    fn needs_claims(&self, pod: &Pod, ordinal: i32) -> bool {
        let lacks = claims::claims_of(self.set, ordinal).into_iter().any(|(_, claim)| {
            let name = claim.metadata.name.as_deref().unwrap_or_default();
            (self.claims)(name).is_none_or(|found| found.metadata.deletion_timestamp.is_some())
        });
        lacks || self.has_misowned_claims(pod, ordinal)
    }

    fn has_misowned_claims(&self, pod: &Pod, ordinal: i32) -> bool {
        claims::claims_of(self.set, ordinal).into_iter().any(|(_, claim)| {
            let claim = (self.claims)(claim.metadata.name.as_deref().unwrap_or_default());
            claim.is_some_and(|claim| claims::ownership(&claim, self.set, pod).owners.is_some())
        })
    }

    fn reassign(&self, condemned: &[Arc<Pod>]) -> (Vec<Action>, Then) {
        let misowned = condemned.iter().filter(|pod| {
            let ordinal = ordinal_of(self.set, pod);
            ordinal.is_some_and(|ordinal| self.has_misowned_claims(pod, ordinal))
        });
        (misowned.cloned().map(Action::Reassign).collect(), Then::GoOn)
    }

    /// Deletes the Pods that should not be there. In order, one at a time, and only the first that
    /// is not available while any is not.
    fn remove(
        &self,
        replicas: &[(i32, Option<Arc<Pod>>)],
        condemned: &[Arc<Pod>],
    ) -> (Vec<Action>, Then) {
        if !self.is_ordered() {
            let alive = condemned.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
            return (alive.cloned().map(Action::Delete).collect(), Then::GoOn);
        }
        let Some(last) = condemned.first() else { return (Vec::new(), Then::GoOn) };
        let known = replicas.iter().filter_map(|(_, pod)| pod.as_ref());
        let mut in_order = known.chain(condemned.iter().rev());
        let unhealthy = in_order.find(|pod| self.is_unavailable(pod));
        let leaves = last.metadata.deletion_timestamp.is_some();
        let healthy = is_running_and_ready(last) && self.is_available(last);
        let first = unhealthy.is_some_and(|unhealthy| Arc::ptr_eq(unhealthy, last));
        let actions = match !leaves && (healthy || first) {
            true => vec![Action::Delete(Arc::clone(last))],
            false => Vec::new(),
        };
        (actions, Then::Wait)
    }

    /// The Pods to delete so that they come back with the new template: the highest ordinal
    /// first, not below the partition, and no more than may be unavailable at once.
    fn outdated(&self, replicas: &[(i32, Option<Arc<Pod>>)]) -> Vec<Arc<Pod>> {
        if self.strategy() == Some("OnDelete") {
            return Vec::new();
        }
        let partition = self.rolling().and_then(|rolling| rolling.partition).unwrap_or(0);
        let partition = usize::try_from(partition).unwrap_or(0).min(replicas.len());
        let targets = replicas[partition..].iter().rev().map(|(_, pod)| pod.as_ref());
        match self.rolling().and_then(|rolling| rolling.max_unavailable.as_ref()) {
            None => self.next_outdated(targets).into_iter().collect(),
            Some(max) => {
                let max = scaled(max, desired(self.set), Round::Down).max(1);
                let missing = |pod: &Option<Arc<Pod>>| {
                    pod.as_ref().is_none_or(|pod| self.is_unavailable(pod))
                };
                let missing = replicas.iter().filter(|(_, pod)| missing(pod)).count();
                let spare = usize::try_from(max).unwrap_or(0).saturating_sub(missing);
                let outdated = targets.flatten().filter(|pod| self.is_outdated(pod));
                outdated.take(spare).cloned().collect()
            }
        }
    }

    /// The first Pod that is outdated, unless one before it is not available.
    fn next_outdated<'p>(
        &self,
        targets: impl Iterator<Item = Option<&'p Arc<Pod>>>,
    ) -> Option<Arc<Pod>> {
        for pod in targets {
            let pod = pod?;
            if self.is_outdated(pod) {
                return Some(Arc::clone(pod));
            }
            if self.is_unavailable(pod) {
                return None;
            }
        }
        None
    }

    fn is_outdated(&self, pod: &Pod) -> bool {
        revision_of(pod) != self.update.name && pod.metadata.deletion_timestamp.is_none()
    }

    fn strategy(&self) -> Option<&str> {
        spec(self.set)?.update_strategy.as_ref()?.type_.as_deref()
    }

    fn rolling(&self) -> Option<&RollingUpdateStatefulSetStrategy> {
        spec(self.set)?.update_strategy.as_ref()?.rolling_update.as_ref()
    }

    /// Whether the Pod with this ordinal is made of the template from before the update.
    fn is_of_current(&self, ordinal: i32) -> bool {
        let index = ordinal - start(self.set);
        match self.rolling() {
            Some(rolling) => index < rolling.partition.unwrap_or(0),
            None => {
                let status = self.set.status.as_ref();
                let current = status.and_then(|status| status.current_replicas).unwrap_or(0);
                self.strategy() == Some("RollingUpdate") && index < current
            }
        }
    }

    /// The Pod with this ordinal.
    fn new_pod(&self, ordinal: i32) -> Pod {
        let revision = if self.is_of_current(ordinal) { &self.current } else { &self.update };
        let mut pod = pod_control::from_template(&self.set.metadata, revision.template.clone());
        pod.metadata.name = Some(pod_name(self.set, ordinal));
        identify(&mut pod, ordinal);
        let labels = pod.metadata.labels.get_or_insert_default();
        labels.insert(REVISION_LABEL.into(), revision.name.clone());
        if let Some(pod_spec) = &mut pod.spec {
            pod_spec.hostname = Some(pod_name(self.set, ordinal));
            let service = spec(self.set).and_then(|spec| spec.service_name.clone());
            pod_spec.subdomain = service.filter(|name| !name.is_empty());
        }
        claims::mount(self.set, &mut pod, ordinal);
        pod
    }

    fn is_available(&self, pod: &Pod) -> bool {
        let min_ready = spec(self.set).and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        pod::availability(pod, min_ready, self.now) == Availability::Available
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        !self.is_available(pod) || pod.metadata.deletion_timestamp.is_some()
    }
}

/// Whether a Pod runs and is ready.
pub(super) fn is_running_and_ready(pod: &Pod) -> bool {
    pod::phase(pod) == "Running" && pod::is_ready(pod)
}
