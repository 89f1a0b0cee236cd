//! What a kubelet tells people about a Pod: which containers it started, could not start or stops,
//! and why it ended one or did not take it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, ResourceRequirements};
use serde::Serialize;
use steersman::events::{NewEvent, Recorder, Reference};

use super::plan::Waiting;
use super::status::End;
use crate::duration::go_millis;
use crate::registration::Machine;
use crate::rejection::Rejection;
use crate::runtime::{Pulled, StartError, described, pull_secrets};

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
    /// Whether it was looked for what images are pulled with.
    looked: AtomicBool,
}

impl<'a> Teller<'a> {
    pub(super) fn new(pod: &'a Pod, machine: &Machine, recorder: &Recorder) -> Self {
        let recorder = recorder.instance(&machine.name);
        let recorder = match &machine.agent {
            Some(agent) => recorder.acting_as(agent),
            None => recorder,
        };
        Self { pod, recorder, looked: AtomicBool::new(false) }
    }

    /// Whether it is yet to be looked for the Secrets with which images are pulled: once in a look at
    /// the Pod is enough for all its containers.
    pub(super) fn looks_for_secrets(&self) -> bool {
        !self.looked.swap(true, Ordering::Relaxed)
    }

    /// Tells which of them there are not, if any.
    pub(super) fn without_secrets(&self, names: &[String]) {
        if !names.is_empty() {
            self.recorder.event(self.pod, pull_secrets::missing(names));
        }
    }

    /// Tells of a container that was started.
    pub(super) fn started(&self, name: &str, pulled: Option<Pulled>) {
        self.about(name, |container| [container.pulled(pulled), created(), started()]);
    }

    /// Tells that the image of a container is being pulled.
    pub(super) fn pulling(&self, name: &str) {
        self.about(name, |container| {
            let note = format!("Pulling image {:?}", container.image);
            [NewEvent::normal("Pulling").action("Pulling").note(note)]
        });
    }

    /// Tells why a container could not be started, after what went well of it.
    pub(super) fn not_started(&self, name: &str, why: &StartError, pulled: Option<Pulled>) {
        let failed = |action: &str| NewEvent::warning("Failed").action(action);
        let error = |action: &str| failed(action).note(format!("Error: {why}"));
        match why {
            StartError::ImagePull { image, why } => self.about(name, |_| {
                [
                    failed("Pulling").note(format!("Failed to pull image {image:?}: {why}")),
                    failed("Pulling").note("Error: ErrImagePull"),
                ]
            }),
            StartError::ImageName { .. } => self.about(name, |_| {
                let inspect = NewEvent::warning("InspectFailed").action("Pulling");
                [inspect.note(why.to_string()), failed("Pulling").note("Error: InvalidImageName")]
            }),
            StartError::ImageNeverPull { .. } => self.about(name, |_| {
                let never = NewEvent::warning("ErrImageNeverPull").action("Pulling");
                [never.note(why.to_string()), failed("Pulling").note("Error: ErrImageNeverPull")]
            }),
            StartError::Sandbox(_) => {
                let event = NewEvent::warning("FailedCreatePodSandBox").action("Creating");
                self.recorder.event(self.pod, event.note(why.to_string()));
            }
            StartError::Volumes(_) => {
                let event = NewEvent::warning("FailedMount").action("Mounting");
                self.recorder.event(self.pod, event.note(why.to_string()));
            }
            StartError::Config(_) | StartError::Create(_) => {
                self.about(name, |container| [container.pulled(pulled), error("Creating")]);
            }
            StartError::Run(_) => self
                .about(name, |container| [container.pulled(pulled), created(), error("Starting")]),
            StartError::PostStart(_) => self.about(name, |container| {
                let hook = NewEvent::warning("FailedPostStartHook").action("Starting");
                let hook = hook.note(why.to_string());
                let killing = killing("FailedPostStartHook");
                [container.pulled(pulled), created(), started(), hook, killing]
            }),
        }
    }

    /// Tells of containers that now wait for being tried again.
    pub(super) fn waiting(&self, waiting: &HashMap<String, Waiting>) {
        let before = |name: &str| {
            let status = self.statuses().find(|status| status.name == name)?;
            Some((status.restart_count, status.state.as_ref()?.waiting.as_ref()?.reason.clone()?))
        };
        let mut names: Vec<&String> = waiting.keys().collect();
        names.sort();
        for name in names {
            let Waiting { reason, restarts, .. } = &waiting[name];
            if before(name).is_some_and(|(count, old)| count == *restarts && old == *reason) {
                continue;
            }
            match *reason {
                "CrashLoopBackOff" => self.about(name, |_| {
                    let pod = described(self.pod);
                    let note = format!("Back-off restarting failed container {name} in pod {pod}");
                    [NewEvent::warning("BackOff").action("Starting").note(note)]
                }),
                "ImagePullBackOff" => self.about(name, |container| {
                    let note = format!("Back-off pulling image {:?}", container.image);
                    let failed = NewEvent::warning("Failed").action("Pulling");
                    let back_off = NewEvent::normal("BackOff").action("Pulling").note(note);
                    [back_off, failed.note("Error: ImagePullBackOff")]
                }),
                _ => {}
            }
        }
    }

    /// Tells that what containers share is gone.
    pub(super) fn leaving(&self) {
        let note = "Pod sandbox changed, it will be killed and re-created.";
        let event = NewEvent::normal("SandboxChanged").action("Stopping").note(note);
        self.recorder.event(self.pod, event);
    }

    /// Tells of containers that are stopped.
    pub(super) fn stopping(&self, names: &[String]) {
        for name in names {
            self.killing(name, &format!("Stopping container {name}"));
        }
    }

    /// Tells that a container is stopped, and why.
    pub(super) fn killing(&self, name: &str, why: &str) {
        self.about(name, |_| [killing(why)]);
    }

    /// Tells that the time of a Pod is up, before it is ended for that.
    pub(super) fn overdue(&self) {
        if let Some((reason, message)) = End::DeadlineExceeded.why() {
            let event = NewEvent::normal(reason).action("Stopping").note(message);
            self.recorder.event(self.pod, event);
        }
    }

    /// Tells that the Pod has to go for another.
    pub(super) fn preempted(&self) {
        if let Some((reason, message)) = End::Preempted.why() {
            let event = NewEvent::warning(reason).action("Preempting").note(message);
            self.recorder.event(self.pod, event);
        }
    }

    /// Tells why the node does not take the Pod.
    pub(super) fn rejected(&self, rejection: &Rejection) {
        let event = NewEvent::warning(rejection.reason()).action("Admitting");
        self.recorder.event(self.pod, event.note(rejection.to_string()));
    }

    /// Tells that the node gives the Pod what it wants.
    pub(super) fn resize_started(&self, pod: &Pod) {
        let note = summary("Pod resize started", pod, pod.metadata.generation, None);
        self.of_resize(NewEvent::normal("ResizeStarted"), note);
    }

    /// Tells that its containers have it.
    pub(super) fn resize_completed(&self, pod: &Pod, generation: Option<i64>) {
        let note = summary("Pod resize completed", pod, generation, None);
        self.of_resize(NewEvent::normal("ResizeCompleted"), note);
    }

    /// Tells why the node does not give it to the Pod now.
    pub(super) fn resize_deferred(&self, pod: &Pod, rejection: &Rejection) {
        let what = format!("Pod resize {}", rejection.reason());
        let why = rejection.to_string();
        let note = summary(&what, pod, pod.metadata.generation, Some(&why));
        self.of_resize(NewEvent::warning("ResizeDeferred"), note);
    }

    /// Tells why its containers do not get it.
    pub(super) fn resize_failed(&self, pod: &Pod, generation: Option<i64>, why: &str) {
        let note = summary("Pod resize error", pod, generation, Some(why));
        self.of_resize(NewEvent::warning("ResizeError"), note);
    }

    fn of_resize(&self, event: NewEvent, note: String) {
        self.recorder.event(self.pod, event.action("Resizing").note(note));
    }

    /// Tells something of the container of this name.
    fn about<const N: usize>(&self, name: &str, events: impl FnOnce(&Named<'_>) -> [NewEvent; N]) {
        let Some(container) = self.containers().find(|container| container.name == name) else {
            return;
        };
        let path = format!("spec.{}{{{}}}", container.list, container.name);
        for event in events(&container) {
            let part = Reference::of(self.pod).part(&path);
            self.recorder.event(part, event);
        }
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

impl Named<'_> {
    /// That its image is there.
    fn pulled(&self, pulled: Option<Pulled>) -> NewEvent {
        let image = self.image;
        let note = match pulled {
            Some(Pulled { took, waited, bytes }) => format!(
                "Successfully pulled image {image:?} in {} ({} including waiting). \
                 Image size: {bytes} bytes.",
                go_millis(took),
                go_millis(took + waited)
            ),
            None => format!(
                "Container image {image:?} already present on machine and can be accessed by the pod"
            ),
        };
        NewEvent::normal("Pulled").action("Pulling").note(note)
    }
}

fn created() -> NewEvent {
    NewEvent::normal("Created").action("Creating").note("Container created")
}

fn started() -> NewEvent {
    NewEvent::normal("Started").action("Starting").note("Container started")
}

fn killing(why: &str) -> NewEvent {
    NewEvent::normal("Killing").action("Stopping").note(why)
}

/// The resources of a Pod as Events show them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    init_containers: Vec<Resources<'a>>,
    containers: Vec<Resources<'a>>,
    generation: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct Resources<'a> {
    name: &'a str,
    resources: ResourceRequirements,
}

fn summary(what: &str, pod: &Pod, generation: Option<i64>, error: Option<&str>) -> String {
    let spec = pod.spec.as_ref();
    let sized = |container: &'_ Container| container.resources.clone().unwrap_or_default();
    let init = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
    let main = spec.into_iter().flat_map(|spec| &spec.containers);
    let summary = Summary {
        init_containers: init
            .map(|it| Resources { name: &it.name, resources: sized(it) })
            .collect(),
        containers: main.map(|it| Resources { name: &it.name, resources: sized(it) }).collect(),
        generation: generation.unwrap_or(0),
        error,
    };
    match serde_json::to_string(&summary) {
        Ok(text) => format!("{what}: {text}"),
        Err(_) => what.to_owned(),
    }
}
