//! What a kubelet tells people about a Pod: which containers it started, which it stops, and why
//! it ended one or did not take it.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use steersman::Context;
use steersman::events::{NewEvent, Recorder, Reference};

use super::ended::End;
use crate::addresses::Rejection;
use crate::registration::Machine;

/// A container as Events name it.
struct Named<'a> {
    /// The list it is in.
    list: &'static str,
    name: &'a str,
    image: &'a str,
}

/// Tells of one Pod, as the agent of its node.
pub(super) struct Teller<'a> {
    pod: &'a Pod,
    recorder: Recorder,
}

impl<'a> Teller<'a> {
    pub(super) fn new(pod: &'a Pod, machine: &Machine, ctx: &Context<Pod>) -> Self {
        let recorder = ctx.recorder().instance(&machine.name).acting_as(&machine.agent);
        Self { pod, recorder }
    }

    /// Tells of containers that run for the first time.
    pub(super) fn started(&self) {
        let known = self.known();
        for container in self.containers().filter(|container| !known.contains(&container.name)) {
            let image = container.image;
            let pulled = format!(
                "Container image {image:?} already present on machine and can be accessed by the pod"
            );
            let created = NewEvent::normal("Created").action("Creating");
            let started = NewEvent::normal("Started").action("Starting");
            self.tell_of(&container, NewEvent::normal("Pulled").action("Pulling").note(pulled));
            self.tell_of(&container, created.note("Container created"));
            self.tell_of(&container, started.note("Container started"));
        }
    }

    /// Tells of containers that are stopped.
    pub(super) fn stopping(&self) {
        let running: Vec<&str> = self.running().collect();
        for container in self.containers().filter(|container| running.contains(&container.name)) {
            let note = format!("Stopping container {}", container.name);
            self.tell_of(&container, NewEvent::normal("Killing").action("Stopping").note(note));
        }
    }

    /// Tells why a Pod was ended, unless somebody asked for it.
    pub(super) fn ended(&self, end: &End) {
        if let Some((reason, message)) = end.why() {
            let event = NewEvent::normal(reason).action("Stopping").note(message);
            self.recorder.event(self.pod, event);
        }
    }

    /// Tells why the node does not take the Pod.
    pub(super) fn rejected(&self, rejection: &Rejection) {
        let event = NewEvent::warning(rejection.reason()).action("Admitting");
        self.recorder.event(self.pod, event.note(rejection.to_string()));
    }

    fn tell_of(&self, container: &Named<'_>, event: NewEvent) {
        let path = format!("spec.{}{{{}}}", container.list, container.name);
        let part = Reference::of(self.pod).part(&path);
        self.recorder.event(part, event);
    }

    /// All containers, in the order in which they start.
    fn containers(&self) -> impl Iterator<Item = Named<'a>> {
        let spec = self.pod.spec.as_ref();
        let named = |list, name: &'a String, image: &'a Option<String>| Named {
            list,
            name,
            image: image.as_deref().unwrap_or_default(),
        };
        let init = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
        let main = spec.into_iter().flat_map(|spec| &spec.containers);
        let added = spec.and_then(|spec| spec.ephemeral_containers.as_ref()).into_iter().flatten();
        init.map(move |c| named("initContainers", &c.name, &c.image))
            .chain(main.map(move |c| named("containers", &c.name, &c.image)))
            .chain(added.map(move |c| named("ephemeralContainers", &c.name, &c.image)))
    }

    /// The containers that the Pod's status knows already.
    fn known(&self) -> Vec<&'a str> {
        self.statuses().map(|status| status.name.as_str()).collect()
    }

    fn running(&self) -> impl Iterator<Item = &'a str> {
        let runs = |status: &&ContainerStatus| {
            status.state.as_ref().is_some_and(|state| state.running.is_some())
        };
        self.statuses().filter(runs).map(|status| status.name.as_str())
    }

    fn statuses(&self) -> impl Iterator<Item = &'a ContainerStatus> {
        let status = self.pod.status.as_ref();
        let lists = status.map(|status| {
            [
                &status.init_container_statuses,
                &status.container_statuses,
                &status.ephemeral_container_statuses,
            ]
        });
        lists.into_iter().flatten().flatten().flatten()
    }
}
