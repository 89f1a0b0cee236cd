//! A Pod with gates waits until the last of them is gone.

use k8s_openapi::api::core::v1::Pod;

use super::pod::is_of;
use crate::framework::{Action, ClusterEvent, Hint, Interest, Plugin, Points, Refusal, Resource};

/// Keeps Pods with gates out of the queue.
pub(crate) struct SchedulingGates;

impl Plugin for SchedulingGates {
    fn name(&self) -> &'static str {
        "SchedulingGates"
    }

    fn points(&self) -> Points {
        Points::PRE_ENQUEUE
    }

    fn interests(&self) -> &[Interest] {
        const { &[Interest::new(Resource::UnscheduledPod, Action::POD_GATES_ELIMINATED)] }
    }

    fn hint(&self, pod: &Pod, event: &ClusterEvent) -> Hint {
        is_of(pod, event).into()
    }

    fn pre_enqueue(&self, pod: &Pod) -> Result<(), Refusal> {
        let gates = pod.spec.as_ref().and_then(|spec| spec.scheduling_gates.as_deref());
        let gates: Vec<&str> = gates.unwrap_or_default().iter().map(|it| &*it.name).collect();
        match gates.is_empty() {
            true => Ok(()),
            false => Err(Refusal::unresolvable(format!(
                "waiting for scheduling gates: [{}]",
                gates.join(" ")
            ))),
        }
    }
}
