//! What a kubelet tells people of its Node: that it has started, that the Node is ready or is not any
//! more, and that somebody has closed it for new Pods or opened it again.

use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::{Node, NodeStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use steersman::events::{NewEvent, Recorder, Reference};

use crate::registration::Machine;

/// How people are told, once somebody has said so. Clones are of one mind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Voice(Arc<OnceLock<Recorder>>);

impl Voice {
    /// From now on people are told by this recorder.
    pub(crate) fn speak_by(&self, recorder: &Recorder) {
        self.0.get_or_init(|| recorder.clone());
    }

    /// Tells that the agent of a machine has started.
    pub(super) fn started(&self, machine: &Machine) {
        self.tell(machine, NewEvent::normal("Starting").note("Starting kubelet."));
    }

    /// Tells what became of the Node of a machine.
    pub(super) fn is_now(&self, machine: &Machine, reason: &str) {
        let note = format!("Node {} status is now: {reason}", machine.name);
        self.tell(machine, NewEvent::normal(reason).note(note));
    }

    fn tell(&self, machine: &Machine, event: NewEvent) {
        let Some(recorder) = self.0.get() else { return };
        let recorder = recorder.instance(&machine.name);
        let recorder = match &machine.agent {
            Some(agent) => recorder.acting_as(agent),
            None => recorder,
        };
        let name = Some(machine.name.clone());
        // The name stands for the uid, as a kubelet has it.
        let meta = ObjectMeta { uid: name.clone(), name, ..ObjectMeta::default() };
        recorder.event(Reference::with("v1", "Node", &meta), event);
    }
}

/// What was known of a Node when it was last looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Whether it was closed for new Pods.
    closed: Option<bool>,
}

impl Seen {
    /// Whether new Pods may come, if that has changed.
    pub(super) fn openness(&mut self, node: &Node) -> Option<&'static str> {
        let closed = node.spec.as_ref().and_then(|spec| spec.unschedulable) == Some(true);
        let before = self.closed.replace(closed)?;
        let reason = if closed { "NodeNotSchedulable" } else { "NodeSchedulable" };
        (before != closed).then_some(reason)
    }
}

/// Whether a Node is ready, if it said something else before or somebody else said so of it.
pub(super) fn readiness(before: Option<&NodeStatus>, after: &NodeStatus) -> Option<&'static str> {
    let (before, after) = (ready(before?)?, ready(after)?);
    let reason = if after == "True" { "NodeReady" } else { "NodeNotReady" };
    (before != after).then_some(reason)
}

fn ready(status: &NodeStatus) -> Option<&str> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == "Ready").map(|ready| ready.status.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn who_closes_a_node_is_told_once_it_was_seen_open() {
        let node = |closed: Option<bool>| -> Node {
            serde_json::from_value(json!({"spec": {"unschedulable": closed}})).unwrap()
        };
        let (open, closed) = (node(None), node(Some(true)));
        let mut seen = Seen::default();
        assert_eq!(seen.openness(&closed), None, "it was found so");
        assert_eq!(seen.openness(&open), Some("NodeSchedulable"));
        assert_eq!(seen.openness(&node(Some(false))), None);
        assert_eq!(seen.openness(&closed), Some("NodeNotSchedulable"));
        assert_eq!(seen.openness(&closed), None);
    }

    #[test]
    fn a_node_that_becomes_ready_or_unready_says_so() {
        let status = |ready: &str| -> NodeStatus {
            let conditions = json!([{"type": "Ready", "status": ready}]);
            serde_json::from_value(json!({"conditions": conditions})).unwrap()
        };
        for (before, after, reason) in [
            ("True", "True", None),
            ("False", "False", None),
            ("True", "False", Some("NodeNotReady")),
            ("False", "True", Some("NodeReady")),
            ("Unknown", "True", Some("NodeReady")),
        ] {
            assert_eq!(readiness(Some(&status(before)), &status(after)), reason, "{before}");
        }
        assert_eq!(readiness(None, &status("True")), None, "nothing was said before");
        assert_eq!(readiness(Some(&NodeStatus::default()), &status("True")), None);
    }
}
