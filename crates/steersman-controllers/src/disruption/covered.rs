//! Pods by themselves: those that several budgets cover, which people are told of, and those of which
//! it was said that they would go and which are still there.
//!
//! The condition `DisruptionTarget` is written before a Pod is deleted. If it then is not, the
//! condition is taken back after two minutes, unless the kubelet wrote it, which may take longer.

use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use steersman::events::{NewEvent, Reference};
use steersman::{Context, Next, Reconciler, Result, clock};

use super::COMPONENT;
use super::budgets::Budgets;
use crate::pod;
use crate::pod_control::name_of;

/// How long it may take from the condition to the deletion.
const STALE_AFTER: SignedDuration = SignedDuration::from_secs(120);
/// What the kubelet says when it ends a Pod.
const BY_KUBELET: &str = "TerminationByKubelet";
const DISRUPTION_TARGET: &str = "DisruptionTarget";

/// Looks after Pods that budgets cover or that should have gone.
pub(super) struct CoveredPods {
    pub(super) budgets: Budgets,
}

/// Whether there is anything to do about a Pod.
pub(super) fn concerns(pod: &Pod, budgets: &Budgets) -> bool {
    target(pod).is_some() || budgets.of_pod(&pod.metadata).len() > 1
}

impl Reconciler<Pod> for CoveredPods {
    async fn reconcile(&self, pod: Arc<Pod>, ctx: Context<Pod>) -> Result<Next> {
        if let [chosen, _, ..] = self.budgets.of_pod(&pod.metadata).as_slice() {
            let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
            let (name, chosen) = (name_of(&pod), &chosen.name);
            let note = format!(
                "Pod {namespace:?}/{name:?} matches multiple PodDisruptionBudgets.  Chose \
                 {chosen:?} arbitrarily."
            );
            let event = NewEvent::warning("MultiplePodDisruptionBudgets").note(note);
            ctx.recorder().reporting(COMPONENT).event(Reference::of(&*pod), event);
        }
        match stale(&pod, clock::now()) {
            None => Ok(Next::Settled),
            Some(Stale::In(time)) => Ok(Next::After(time)),
            Some(Stale::Now) => {
                let spared = spared(&pod, clock::now());
                ctx.live().update_status(&spared).await.map(|_| Next::Settled)
            }
        }
    }
}

/// When it is clear that a Pod will not go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stale {
    In(Duration),
    Now,
}

/// The condition of a Pod that was to go and has not begun to.
fn target(pod: &Pod) -> Option<&PodCondition> {
    if pod.metadata.deletion_timestamp.is_some() || pod::is_terminal(pod) {
        return None;
    }
    let mut conditions = pod.status.as_ref()?.conditions.iter().flatten();
    let target = conditions.find(|it| it.type_ == DISRUPTION_TARGET && it.status == "True")?;
    (target.reason.as_deref() != Some(BY_KUBELET)).then_some(target)
}

/// When the condition of a Pod that was to go says nothing any more, if it has one.
pub(super) fn stale(pod: &Pod, now: Timestamp) -> Option<Stale> {
    let since = target(pod)?.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |at| at.0);
    let left = Duration::try_from(STALE_AFTER - now.duration_since(since)).unwrap_or_default();
    Some(if left.is_zero() { Stale::Now } else { Stale::In(left) })
}

/// The Pod, which is not going to go.
pub(super) fn spared(pod: &Pod, now: Timestamp) -> Pod {
    let mut pod = pod.clone();
    let generation = pod.metadata.generation;
    let conditions = pod.status.as_mut().and_then(|status| status.conditions.as_mut());
    let mut conditions = conditions.into_iter().flatten();
    if let Some(target) = conditions.find(|condition| condition.type_ == DISRUPTION_TARGET) {
        *target = PodCondition {
            type_: DISRUPTION_TARGET.into(),
            status: "False".into(),
            observed_generation: generation,
            last_transition_time: Some(Time(now)),
            ..PodCondition::default()
        };
    }
    pod
}
