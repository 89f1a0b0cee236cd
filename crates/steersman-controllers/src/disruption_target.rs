//! The condition by which a Pod is told, before it is deleted, that it goes and why.

use k8s_openapi::api::core::v1::{Pod, PodCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

const TYPE: &str = "DisruptionTarget";

/// Why a Pod goes that nobody who runs it has asked to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisruptionTarget {
    pub(crate) reason: &'static str,
    pub(crate) message: &'static str,
}

impl DisruptionTarget {
    /// The condition that the Pod is to have, if it has not. One that says so for another reason
    /// keeps its time.
    pub(crate) fn condition(self, pod: &Pod, now: &Time) -> Option<PodCondition> {
        let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
        let old = conditions.into_iter().flatten().find(|condition| condition.type_ == TYPE);
        let old = old.filter(|old| old.status == "True");
        let says = |old: &PodCondition| {
            old.reason.as_deref() == Some(self.reason)
                && old.message.as_deref() == Some(self.message)
        };
        if old.is_some_and(says) {
            return None;
        }
        let since = old.and_then(|old| old.last_transition_time.clone());
        Some(PodCondition {
            type_: TYPE.into(),
            status: "True".into(),
            reason: Some(self.reason.into()),
            message: Some(self.message.into()),
            observed_generation: pod.metadata.generation,
            last_transition_time: since.or_else(|| Some(now.clone())),
            ..PodCondition::default()
        })
    }
}
