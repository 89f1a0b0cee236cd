//! What a kubelet tells people of its Node: that it or its machine has started, that the Node is ready or
//! short of something or is not any more, and that somebody has closed it for new Pods or opened it again.

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

    /// Tells that a machine was started anew.
    pub(super) fn rebooted(&self, machine: &Machine) {
        let (name, boot) = (&machine.name, &machine.system.boot_id);
        let note = format!("Node {name} has been rebooted, boot id: {boot}");
        self.tell(machine, NewEvent::warning("Rebooted").note(note));
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

/// What people are told of a condition.
struct Turn {
    type_: &'static str,
    /// If it holds from now on.
    holds: &'static str,
    /// If it does not.
    ceases: &'static str,
}

/// The conditions of a Node that people are told of. That a new one is ready is nothing to tell.
const TURNS: [Turn; 4] = [
    Turn {
        type_: "MemoryPressure",
        holds: "NodeHasInsufficientMemory",
        ceases: "NodeHasSufficientMemory",
    },
    Turn { type_: "DiskPressure", holds: "NodeHasDiskPressure", ceases: "NodeHasNoDiskPressure" },
    Turn { type_: "PIDPressure", holds: "NodeHasInsufficientPID", ceases: "NodeHasSufficientPID" },
    Turn { type_: READY, holds: "NodeReady", ceases: "NodeNotReady" },
];
const READY: &str = "Ready";

/// What a Node says now, where it said something else before, or somebody else said so of it.
pub(super) fn turns(
    before: Option<&NodeStatus>,
    after: &NodeStatus,
) -> impl Iterator<Item = &'static str> {
    TURNS.iter().filter_map(move |turn| {
        let was = before.and_then(|before| says(before, turn.type_));
        let is = says(after, turn.type_)?;
        let is_news = was != Some(is) && (was.is_some() || turn.type_ != READY);
        is_news.then_some(if is == "True" { turn.holds } else { turn.ceases })
    })
}

fn says<'a>(status: &'a NodeStatus, type_: &str) -> Option<&'a str> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == type_).map(|it| it.status.as_str())
}

/// Whether a machine was started anew since a Node was told of last.
pub(super) fn rebooted(before: Option<&NodeStatus>, after: &NodeStatus) -> bool {
    let boot = |status: &NodeStatus| {
        let boot = status.node_info.as_ref().map(|info| info.boot_id.clone());
        boot.filter(|boot| !boot.is_empty())
    };
    before.and_then(boot).is_some_and(|was| boot(after).is_some_and(|is| is != was))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::NodeSystemInfo;
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

    fn status(type_: &str, says: &str) -> NodeStatus {
        let conditions = json!([{"type": type_, "status": says}]);
        serde_json::from_value(json!({"conditions": conditions})).unwrap()
    }

    fn told(before: Option<&NodeStatus>, after: &NodeStatus) -> Vec<&'static str> {
        turns(before, after).collect()
    }

    #[test]
    fn a_node_that_becomes_ready_or_unready_says_so() {
        let status = |ready: &str| status("Ready", ready);
        for (before, after, reason) in [
            ("True", "True", None),
            ("False", "False", None),
            ("True", "False", Some("NodeNotReady")),
            ("False", "True", Some("NodeReady")),
            ("Unknown", "True", Some("NodeReady")),
        ] {
            let told = told(Some(&status(before)), &status(after));
            assert_eq!(told, Vec::from_iter(reason), "{before}");
        }
        assert!(told(None, &status("True")).is_empty(), "nothing was said before");
        assert!(told(Some(&NodeStatus::default()), &status("True")).is_empty());
    }

    #[test]
    fn a_node_tells_what_it_has_enough_of_and_when_that_changes() {
        let memory = |says: &str| status("MemoryPressure", says);
        assert_eq!(told(None, &memory("False")), ["NodeHasSufficientMemory"]);
        assert_eq!(told(Some(&memory("Unknown")), &memory("False")), ["NodeHasSufficientMemory"]);
        assert_eq!(told(Some(&memory("False")), &memory("True")), ["NodeHasInsufficientMemory"]);
        assert!(told(Some(&memory("True")), &memory("True")).is_empty());
        let (disk, pid) = (status("DiskPressure", "True"), status("PIDPressure", "False"));
        assert_eq!(told(None, &disk), ["NodeHasDiskPressure"]);
        assert_eq!(told(None, &pid), ["NodeHasSufficientPID"]);
    }

    #[test]
    fn a_machine_was_started_anew_if_it_says_so_and_said_something_else_before() {
        let status = |boot: &str| -> NodeStatus {
            let info = NodeSystemInfo { boot_id: boot.into(), ..NodeSystemInfo::default() };
            NodeStatus { node_info: Some(info), ..NodeStatus::default() }
        };
        assert!(rebooted(Some(&status("1")), &status("2")));
        for before in [Some(status("2")), Some(status("")), Some(NodeStatus::default()), None] {
            assert!(!rebooted(before.as_ref(), &status("2")), "{before:?}");
        }
    }
}
